// The dialog that binds a session to a workspace.

/** @import { SessionLine } from './api-types.js' */
/** @import { Directory } from './names.js' */

import { request } from './api.js';
import { attempt, toast } from './dom.js';
import { openDialog } from './forms.js';
import { projectName } from './names.js';
import { offerUndo } from './undo.js';
import { t } from './words.js';

/**
 * Asks for a workspace and binds a session to it.
 * @param {string} sessionId
 * @param {Directory} directory
 * @param {() => Promise<unknown>} onBound
 */
export function bindSession(sessionId, directory, onBound) {
  const open = directory.workspaces.filter((line) => line.status === 'active');
  if (!open.length) { toast(`${t('noWorkspaceToBind')} tanmi workspace init`, 'bad'); return; }
  openDialog({
    title: t('bindTitle', directory.sessionName(sessionId)), confirmLabel: t('bindSave'),
    fields: [
      // Clones have the same ids, so the choice is a position in the list.
      { name: 'workspace', label: t('boundTo'), choices: open.map((line, at) => [String(at), `${line.name} (${projectName(line.project)})`]) },
      { name: 'nodeId', label: t('focusNode'), help: t('focusNodeHelp') },
    ],
    onSubmit: async (typed) => {
      const { workspaceId, project } = open[Number(typed.workspace)];
      const body = { workspaceId, nodeId: typed.nodeId || undefined };
      await request('PUT /sessions/{sessionId}/binding', { params: { sessionId, project }, body });
      await onBound();
    },
  });
}

/** Unbinds a session, and offers to bind it again. @param {SessionLine} line @param {() => Promise<unknown>} onChanged */
export const unbindSession = (line, onChanged) => attempt(async () => {
  const { sessionId, workspaceId, project, focusedNodeId } = line;
  await request('DELETE /sessions/{sessionId}/binding', { params: { sessionId } });
  await onChanged();
  if (!workspaceId) return;
  offerUndo(t('unbound'), async () => {
    const body = { workspaceId, nodeId: focusedNodeId || undefined };
    await request('PUT /sessions/{sessionId}/binding', { params: { sessionId, project }, body });
    await onChanged();
  });
});
