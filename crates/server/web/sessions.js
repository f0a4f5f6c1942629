// Who is bound where.

import { get, remove, enc } from './api.js';
import { h, show, repaint, attempt, calmly } from './dom.js';
import { t, when, number } from './words.js';

export function sessionsView() {
  const element = h('div', { class: 'view' }, h('h2', {}, t('sessions')), h('p', { class: 'empty' }, t('loading')));
  let names = new Map();

  async function load() {
    const answer = await attempt(async () => {
      const spaces = await get('/workspaces', { all: true, limit: 10000 });
      names = new Map(spaces.workspaces.map((space) => [`${space.workspaceId} ${space.project}`, space.name]));
      return get('/bindings', { limit: 500 });
    });
    if (answer) repaint(element, () => paint(answer.bindings));
  }

  function paint(lines) {
    const columns = ['session', 'platform', 'boundTo', 'focus', 'heard', 'prompts', 'unbind'];
    show(element, h('h2', {}, t('sessions')),
      lines.length === 0 ? h('p', { class: 'empty' }, t('noSessions')) : h('div', { class: 'scroll' }, h('table', {},
        h('thead', {}, h('tr', {}, columns.map((key) => h('th', { scope: 'col' }, key === 'unbind' ? h('span', { class: 'sr' }, t(key)) : t(key))))),
        h('tbody', {}, lines.map((line) => h('tr', { 'data-key': line.sessionId },
          h('td', {}, h('span', { class: `dot ${line.live ? 'on' : ''}`, title: line.live ? t('atWork') : t('silent') }),
            h('span', { class: 'sr' }, line.live ? t('atWork') : t('silent')), h('code', {}, line.sessionId)),
          h('td', {}, line.platform || '–'),
          h('td', {}, h('a', { href: `#/work/${enc(line.workspaceId)}?project=${enc(line.project)}` }, h('bdi', {}, names.get(`${line.workspaceId} ${line.project}`) || line.workspaceId))),
          h('td', {}, line.focusedNodeId
            ? h('a', { href: `#/work/${enc(line.workspaceId)}/${enc(line.focusedNodeId)}?project=${enc(line.project)}` }, line.focusedNodeId) : '–'),
          h('td', {}, when(line.aliveAt)),
          h('td', { class: 'number' }, number(line.prompts)),
          h('td', {}, h('button', {
            class: 'small', onclick: () => attempt(async () => { await remove(`/sessions/${enc(line.sessionId)}/binding`); await load(); }),
          }, t('unbind')))))))));
  }

  const again = calmly(load, 200);
  return { element, route: load, heard(news) { if (['bindings', 'ledger'].includes(news.kind)) again(); }, lost: again };
}
