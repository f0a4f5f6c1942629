// Bound sessions.

/** @import { Binding } from './api-types.js' */
/** @import { View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { request, enc } from './api.js';
import { h, setChildren, rerender, attempt, debounce } from './dom.js';
import { t, formatTime, formatNumber } from './words.js';

/** @returns {View} */
export function sessionsView() {
  const element = h('div', { class: 'view' }, h('h2', {}, t('sessions')), h('p', { class: 'empty' }, t('loading')));
  /** @type {Map<string, string>} */
  let names = new Map();

  async function load() {
    const answer = await attempt(async () => {
      const answer = await request('GET /workspaces', { params: { all: true, limit: 10000 } });
      names = new Map(answer.workspaces.map((workspace) => [`${workspace.workspaceId} ${workspace.project}`, workspace.name]));
      return request('GET /bindings', { params: { limit: 500 } });
    });
    if (answer) rerender(element, () => render(answer.bindings));
  }

  /** @param {Binding[]} lines */
  function render(lines) {
    /** @type {Word[]} */
    const columns = ['session', 'platform', 'boundTo', 'focus', 'lastActivity', 'prompts', 'unbind'];
    setChildren(element, h('h2', {}, t('sessions')),
      lines.length === 0 ? h('p', { class: 'empty' }, t('noSessions')) : h('div', { class: 'scroll' }, h('table', {},
        h('thead', {}, h('tr', {}, columns.map((key) => h('th', { scope: 'col' }, key === 'unbind' ? h('span', { class: 'sr-only' }, t(key)) : t(key))))),
        h('tbody', {}, lines.map((line) => h('tr', { 'data-key': line.sessionId },
          h('td', {}, h('span', { class: `dot ${line.live ? 'on' : ''}`, title: line.live ? t('activeSession') : t('inactiveSession') }),
            h('span', { class: 'sr-only' }, line.live ? t('activeSession') : t('inactiveSession')), h('code', {}, line.sessionId)),
          h('td', {}, line.platform || '–'),
          h('td', {}, h('a', { href: `#/work/${enc(line.workspaceId)}?project=${enc(line.project)}` }, h('bdi', {}, names.get(`${line.workspaceId} ${line.project}`) || line.workspaceId))),
          h('td', {}, line.focusedNodeId
            ? h('a', { href: `#/work/${enc(line.workspaceId)}/${enc(line.focusedNodeId)}?project=${enc(line.project)}` }, line.focusedNodeId) : '–'),
          h('td', {}, formatTime(line.aliveAt)),
          h('td', { class: 'number' }, formatNumber(line.prompts)),
          h('td', {}, h('button', {
            class: 'small', onclick: () => attempt(async () => { await request('DELETE /sessions/{sessionId}/binding', { params: { sessionId: line.sessionId } }); await load(); }),
          }, t('unbind')))))))));
  }

  const reload = debounce(load, 200);
  return { element, route: load, onChange(change) { if (['bindings', 'ledger'].includes(change.kind)) reload(); }, onGap: reload };
}
