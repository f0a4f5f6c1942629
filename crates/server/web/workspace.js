// One workspace: its goal, rules, docs, problem and log. Bound agents get changes of the goal, rules and docs.

/** @import { OutdatedWorkspace, StoredWorkspace, TrashEntry, WorkspaceDetail, WorkspaceEdit } from './api-types.js' */
/** @import { DetailView, Go } from './page-types.js' */

import { errorText, hasCode, request, setProject } from './api.js';
import { h, setChildren, rerender, attempt, runExclusive, toast } from './dom.js';
import { openDialog, field, formValues, showConflict, normalizeLineEnds, parseRules, formatRules, parseDocs, formatDocs } from './forms.js';
import { icon } from './icons.js';
import { logList } from './node-log.js';
import { progressBar } from './tree-rows.js';
import { offerUndo } from './undo.js';
import { t, formatTime, formatNumber } from './words.js';

const EDITED = /** @type {const} */ (['name', 'goal', 'rules', 'docs']);

/** Returns the editable fields as they are typed. @param {WorkspaceDetail | StoredWorkspace} view */
const asText = (view) => ({ name: view.name, goal: normalizeLineEnds(view.goal), rules: formatRules(view.rules), docs: formatDocs(view.docs) });

/**
 * @param {string} workspace
 * @param {Go} go
 * @param {() => Promise<void>} reloadWorkspaces
 * @returns {DetailView}
 */
export function workspaceView(workspace, go, reloadWorkspaces) {
  const element = h('div', { class: 'node' }, h('p', { class: 'empty' }, t('loading')));
  const params = { workspaceId: workspace };
  /** Returns the names of the edited fields, while the workspace is edited. @type {(() => (typeof EDITED)[number][]) | null} */
  let editing = null;
  let requestCount = 0;
  /** @type {WorkspaceDetail | null} */
  let shown = null;

  async function load() {
    const requestId = requestCount += 1;
    try {
      const view = await request('GET /workspaces/{workspaceId}', { params });
      if (requestId !== requestCount || editing) return;
      shown = view;
      rerender(element, () => render(view));
    } catch (error) {
      if (editing) toast(errorText(error), 'bad');
      else setChildren(element, h('p', { class: 'empty', role: 'alert' }, errorText(error)));
    }
  }

  /** @param {WorkspaceDetail} view */
  function render(view) {
    const isActive = view.status === 'active';
    setChildren(element,
      h('header', {}, h('h2', {}, h('bdi', {}, view.name)),
        h('div', { class: 'facts' },
          h('span', { class: 'badge' }, t(view.status)),
          view.maskSecrets === false ? h('span', { class: 'badge' }, t('maskingIsOff')) : null,
          h('span', {}, `${t('progress')} ${formatNumber(view.progress.done)}/${formatNumber(view.progress.total)}`),
          progressBar(view.progress.done, view.progress.total)),
        h('div', { class: 'buttons' },
          isActive
            ? h('button', { class: 'primary', 'data-action': 'edit-workspace', onclick: () => edit(view) }, t('edit'))
            : h('button', { class: 'primary', onclick: () => change('restore') }, t('restore')),
          isActive ? h('button', { onclick: () => change('archive') }, t('archive')) : null,
          isActive ? maskingButton(view.maskSecrets === false) : null,
          h('button', { class: 'danger quiet', 'data-action': 'delete', onclick: () => confirmDelete(view) }, t('delete')))),
      view.problem ? h('section', { class: 'problem' }, h('h3', {}, icon('warning'), ` ${t('problem')}`), h('p', { dir: 'auto' }, view.problem.description)) : null,
      h('section', { class: 'goal' }, h('h3', {}, t('goal')), h('p', { class: 'text', dir: 'auto' }, view.goal)),
      h('section', { class: 'workspace-rules' }, h('h3', {}, t('workspaceRules'), view.rulesHash ? h('code', { class: 'meta', title: 'rulesHash' }, ` ${view.rulesHash}`) : null),
        view.rules.length ? h('ol', {}, view.rules.map((rule) => h('li', { class: 'text', dir: 'auto' }, rule))) : h('p', { class: 'meta' }, t('noRules'))),
      view.docs.length ? h('section', {}, h('h3', {}, t('docs')), h('ul', {}, view.docs.map((doc) =>
        h('li', { class: doc.status }, h('code', {}, doc.path), doc.description ? ` — ${doc.description}` : '')))) : null,
      h('section', { class: 'log' }, h('h3', {}, t('log')), view.log.length ? logList(view.log, view.isUtc === true) : h('p', { class: 'meta' }, t('noLog'))),
      isActive ? trashBox(view) : null,
      h('p', { class: 'meta' }, `${view.workspaceId} · ${view.project} · ${t('created')} ${formatTime(view.createdAt)}`));
  }

  /** @param {WorkspaceDetail} view */
  function edit(view) {
    const conflictBox = h('div', {});
    const before = asText(view);
    let { version } = view;
    const end = () => { editing = null; return load(); };
    const form = h('form', { class: 'edit' },
      field({ name: 'name', label: t('name'), value: before.name, required: true }),
      field({ name: 'goal', label: t('goal'), value: before.goal, rows: 3, required: true }),
      field({ name: 'rules', label: t('workspaceRules'), value: before.rules, rows: 8, help: `${t('rulesHelp')} ${t('lineBreak')}` }),
      field({ name: 'docs', label: t('docs'), value: before.docs, rows: 4, help: t('docsHelp') }),
      conflictBox,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', onclick: end }, t('cancelEdit')),
        h('button', { type: 'submit', class: 'primary' }, t('save'))));
    const changes = editing = () => { const typed = formValues(form, EDITED); return EDITED.filter((name) => normalizeLineEnds(typed[name]) !== before[name]); };
    form.addEventListener('submit', (event) => { event.preventDefault(); runExclusive(form, save); });
    setChildren(element, h('h2', {}, t('edit')), form);
    form.querySelector('input')?.focus();

    async function save() {
      const typed = formValues(form, EDITED);
      const changed = changes();
      if (!changed.length) { await end(); return; }
      /** @type {WorkspaceEdit} */
      const body = {};
      for (const name of changed) {
        if (name === 'rules') body.rules = parseRules(typed.rules, view.rules);
        else if (name === 'docs') body.docs = parseDocs(typed.docs, view.docs);
        else body[name] = normalizeLineEnds(typed[name]);
      }
      try {
        await request('PATCH /workspaces/{workspaceId}', { params, body, version });
      } catch (error) {
        if (!hasCode(error, 'OUTDATED')) throw error;
        const outdated = /** @type {OutdatedWorkspace} */ (error.details);
        const now = asText(outdated.current);
        /** @type {[string, string, string][]} */
        const pairs = changed.map((name) => [t(name === 'rules' ? 'workspaceRules' : name), now[name], typed[name]]);
        const overwrite = () => { version = outdated.version; conflictBox.replaceChildren(); runExclusive(form, save); };
        showConflict(conflictBox, pairs, { discard: end, overwrite });
        return;
      }
      toast(t('saved'));
      reloadWorkspaces();
      await end();
    }
  }

  /** @param {'archive' | 'restore'} verb */
  const change = (verb) => attempt(async () => {
    if (verb === 'archive') await request('POST /workspaces/{workspaceId}/archive', { params });
    else await request('POST /workspaces/{workspaceId}/restore', { params, body: {} });
    reloadWorkspaces();
    await load();
  });

  /** Returns the list of deleted nodes, which is fetched when it is opened. @param {WorkspaceDetail} view */
  function trashBox(view) {
    const list = h('ul', { class: 'trash' });
    const box = h('details', { 'data-key': 'trash' }, h('summary', {}, t('deletedNodes')), list);
    const show = () => attempt(async () => {
      const answer = await request('GET /trash', { params: { ...params, limit: 100, project: view.project } });
      setChildren(list, answer.entries.length ? answer.entries.map(trashItem) : h('li', { class: 'meta' }, t('noDeletedNodes')));
    });
    /** @param {TrashEntry} entry */
    const trashItem = (entry) => h('li', {}, h('bdi', {}, entry.title), ` · ${t('nodeCount', entry.count)} · ${formatTime(entry.deletedAt)} `,
      h('button', { class: 'small', 'data-action': 'restore-node', onclick: (event) => runExclusive(event.currentTarget, async () => {
        await request('POST /workspaces/{workspaceId}/restore', { params, body: { nodeId: entry.nodeId } });
        await show();
      }) }, t('restore')));
    box.addEventListener('toggle', () => { if (box.open) show(); });
    return box;
  }

  /** @param {boolean} on */
  async function setMasking(on) {
    await request('PUT /workspaces/{workspaceId}/masking', { params, body: { on } });
    await load();
  }

  /** @param {boolean} isOff */
  function maskingButton(isOff) {
    if (isOff) return h('button', { 'data-action': 'masking', onclick: () => attempt(() => setMasking(true)) }, t('turnMaskingOn'));
    const confirm = () => openDialog({
      title: t('turnMaskingOff'), text: t('maskingText'), confirmLabel: t('turnMaskingOff'), danger: true,
      onSubmit: () => setMasking(false),
    });
    return h('button', { class: 'quiet', 'data-action': 'masking', onclick: confirm }, t('turnMaskingOff'));
  }

  /** @param {WorkspaceDetail} view */
  function confirmDelete(view) {
    openDialog({
      title: t('delete'), text: t('deleteWorkspace', view.name), confirmLabel: t('delete'), danger: true,
      onSubmit: async () => {
        await request('DELETE /workspaces/{workspaceId}', { params });
        const back = location.hash;
        await reloadWorkspaces();
        go('#/work');
        offerUndo(t('movedToTrash', view.name), async () => {
          // The project of the request is that of the shown workspace, which is no longer shown.
          setProject(view.project);
          await request('POST /workspaces/{workspaceId}/restore', { params, body: {} });
          await reloadWorkspaces();
          go(back);
        });
      },
    });
  }

  load();
  return {
    element,
    hasUnsaved: () => Boolean(editing && editing().length),
    actions: () => (shown?.status === 'active' && !editing
      ? [{ label: `${t('edit')}: ${shown.name}`, icon: 'action', run: () => edit(/** @type {WorkspaceDetail} */ (shown)) }] : []),
    refresh(ids) { if (ids === null || ids.includes('workspace')) load(); },
  };
}
