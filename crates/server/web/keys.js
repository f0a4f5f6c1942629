// The keys of the whole page, the list of all keys, and the command palette.

/** @import { Choice } from './palette.js' */
/** @import { Go, View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { enc, request } from './api.js';
import { h } from './dom.js';
import { isFound, openPalette } from './palette.js';
import { t } from './words.js';
import { undoLast } from './undo.js';

/** @type {[keys: string, about: Word][]} */
const KEYS = [
  ['Ctrl K', 'keyPalette'], ['/', 'keySearch'], ['z', 'keyUndo'], ['?', 'keyHelp'],
  ['↑ ↓', 'keyMove'], ['← →', 'keyFold'], ['Enter', 'keyOpen'], ['s', 'keyStatus'], ['Alt ↑ ↓', 'keyOrder'], ['Alt ← →', 'keyLevel'],
  ['e', 'keyEdit'], ['Delete', 'keyForget'], ['h', 'keyHistory'],
];

/** Shows all keys. */
export function showKeys() {
  if (document.querySelector('dialog')) return;
  /** @type {HTMLDialogElement} */
  const dialog = h('dialog', { class: 'keys', 'aria-label': t('keys'), onclose: () => dialog.remove() },
    h('h2', {}, t('keys')),
    h('dl', {}, KEYS.map(([keys, about]) => h('div', {}, h('dt', {}, h('kbd', {}, keys)), h('dd', {}, t(about))))),
    h('div', { class: 'buttons' }, h('button', { autofocus: true, onclick: () => dialog.close() }, t('close'))));
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Handles the keys of the whole page. `views` are the names in the navigation.
 * @param {{ go: Go, views: Word[], view: () => View | undefined, actions: () => Choice[] }} page
 */
export function handleKeys(page) {
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      openCommands(page);
      return;
    }
    const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select, dialog, [contenteditable]');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const focusSearch = page.view()?.focusSearch;
    /** @type {Record<string, (() => void) | undefined>} */
    const keys = { '/': focusSearch, z: undoLast, '?': showKeys };
    const run = keys[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
}

/** Opens the command palette: views, actions, workspaces, sessions, and the nodes of the shown workspace. @param {Parameters<typeof handleKeys>[0]} page */
export function openCommands({ go, views, view, actions }) {
  const fixed = loadFixed(go, views, actions(), view()?.actions?.() || []);
  openPalette(t('palette'), async (typed) => {
    const found = (await fixed).filter((choice) => isFound(choice, typed));
    return typed ? [...found.slice(0, 20), ...await findNodes(go, typed)] : found;
  });
}

/** @param {Go} go @param {Word[]} views @param {Choice[]} actions @param {Choice[]} own @returns {Promise<Choice[]>} */
async function loadFixed(go, views, actions, own) {
  const [workspaces, sessions] = await Promise.all([
    request('GET /workspaces', { params: { all: true, limit: 1000 } }).then((answer) => answer.workspaces, () => []),
    request('GET /bindings', { params: { limit: 100 } }).then((answer) => answer.bindings, () => []),
  ]);
  return [
    ...own,
    ...views.map((name) => /** @type {Choice} */ ({ label: t(name), hint: t('view'), icon: 'view', run: () => go(`#/${name}`) })),
    ...workspaces.sort((a, b) => Number(a.status === 'archived') - Number(b.status === 'archived')).map((line) => /** @type {Choice} */ ({
      label: line.name, hint: `${t('workspace')} · ${line.project}`, icon: 'workspace',
      run: () => go(`#/work/${enc(line.workspaceId)}?project=${enc(line.project)}`),
    })),
    ...sessions.map((line) => /** @type {Choice} */ ({
      label: `${line.client || line.platform || t('session')} ${line.sessionId}`, hint: t('session'), icon: 'session',
      run: () => go(line.focusedNodeId
        ? `#/work/${enc(line.workspaceId)}/${enc(line.focusedNodeId)}?project=${enc(line.project)}` : `#/work/${enc(line.workspaceId)}?project=${enc(line.project)}`),
    })),
    ...actions,
  ];
}

/** Returns nodes of the shown workspace whose title contains the words. @param {Go} go @param {string} typed @returns {Promise<Choice[]>} */
async function findNodes(go, typed) {
  const [, workspaceId] = location.hash.match(/^#\/work\/([^/?]+)/) || [];
  if (!workspaceId) return [];
  const project = location.hash.split('?')[1];
  const page = await request('GET /workspaces/{workspaceId}/nodes', {
    params: { workspaceId: decodeURIComponent(workspaceId), query: typed, limit: 30 },
  }).catch(() => ({ nodes: [] }));
  return page.nodes.map((row) => ({
    label: row.title, hint: (row.ancestors || []).slice(1).map((above) => above.title).join(' › ') || t('aNode'),
    icon: row.status, run: () => go(`#/work/${workspaceId}/${enc(row.id)}${project ? `?${project}` : ''}`),
  }));
}
