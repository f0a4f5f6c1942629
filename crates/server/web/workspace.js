// A workspace itself: goal, rules, docs, its own problem and log. Agents that are bound to it are told of a change.

import { get, post, patch, remove, enc } from './api.js';
import { h, show, repaint, attempt, once, toast } from './dom.js';
import { ask, field, values, conflict, asTyped, rulesOf, rulesAsText, docsOf, docsAsText } from './forms.js';
import { t, when, number } from './words.js';

const asText = (board) => ({ name: board.name, goal: asTyped(board.goal), rules: rulesAsText(board.rules), docs: docsAsText(board.docs) });
const LABELS = { name: 'name', goal: 'goal', rules: 'rulesOf', docs: 'docs' };

export function workspaceView(workspace, go, relist) {
  const element = h('div', { class: 'node' }, h('p', { class: 'empty' }, t('loading')));
  const path = `/workspaces/${enc(workspace)}`;
  let changes = () => [];
  let asked = 0;

  async function load() {
    const turn = asked += 1;
    const board = await attempt(() => get(path));
    if (board && turn === asked && !changes().length) repaint(element, () => paint(board));
  }

  function paint(board) {
    const place = h('div', {});
    const was = asText(board);
    let { version } = board;
    const isOpen = board.status === 'active';
    const form = h('form', { class: 'edit' },
      field({ name: 'name', label: t('name'), value: was.name, required: true }),
      field({ name: 'goal', label: t('goal'), value: was.goal, rows: 3, required: true }),
      field({ name: 'rules', label: t('rulesOf'), value: was.rules, rows: 8, help: `${t('rulesHelp')}; ${t('lineBreak')}` }),
      field({ name: 'docs', label: t('docs'), value: was.docs, rows: 4, help: t('docsHelp') }),
      place,
      h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary', disabled: !isOpen }, t('save'))));
    changes = () => { const typed = values(form); return Object.keys(was).filter((name) => asTyped(typed[name]) !== was[name]); };
    form.addEventListener('submit', (event) => { event.preventDefault(); once(form, save); });
    const drop = () => { changes = () => []; return load(); };

    async function save() {
      const typed = values(form);
      const changed = changes();
      if (!changed.length) return;
      const read = { rules: () => rulesOf(typed.rules, board.rules), docs: () => docsOf(typed.docs, board.docs) };
      const body = Object.fromEntries(changed.map((name) => [name, read[name] ? read[name]() : asTyped(typed[name])]));
      try {
        await patch(path, body, version);
      } catch (error) {
        if (error.code !== 'OUTDATED') throw error;
        const now = asText(error.details.current);
        const pairs = changed.map((name) => [t(LABELS[name]), now[name], typed[name]]);
        const keep = () => { version = error.details.version; place.replaceChildren(); once(form, save); };
        conflict(place, pairs, { drop, keep });
        return;
      }
      toast(t('saved'));
      relist();
      await drop();
    }

    show(element,
      h('header', {}, h('h2', {}, h('bdi', {}, board.name)),
        h('div', { class: 'facts' },
          h('span', { class: 'badge' }, t(board.status)),
          h('span', {}, `${t('progress')} ${number(board.progress.done)}/${number(board.progress.total)}`),
          h('code', { title: 'rulesHash' }, board.rulesHash || '–')),
        h('div', { class: 'buttons' },
          isOpen
            ? h('button', { onclick: () => attempt(async () => { await post(`${path}/archive`); relist(); await load(); }) }, t('archive'))
            : h('button', { class: 'primary', onclick: () => attempt(async () => { await post(`${path}/restore`); relist(); await load(); }) }, t('restore')),
          h('button', { class: 'danger quiet', onclick: () => erase(board) }, t('delete')))),
      board.problem ? h('section', { class: 'problem' }, h('h3', {}, `⚠ ${t('problem')}`), h('p', { dir: 'auto' }, board.problem.description)) : null,
      form,
      h('section', { class: 'log' }, h('h3', {}, t('log')), h('ol', { class: 'timeline' }, [...board.log].reverse().map((line) =>
        h('li', { class: line.operator }, h('time', {}, line.timestamp || '–'), h('span', { class: 'who' }, line.operator), h('bdi', {}, line.event))))),
      h('p', { class: 'meta' }, `${board.workspaceId} · ${board.project} · ${t('created')} ${when(board.createdAt)}`));
  }

  function erase(board) {
    ask({
      title: t('delete'), text: t('deleteWorkspace', board.name), yes: t('delete'), danger: true,
      done: async () => {
        await remove(path);
        await relist();
        go('#/work');
      },
    });
  }

  load();
  return {
    element,
    unsaved: () => changes().length > 0,
    changed(ids) { if (ids === null || ids.includes('workspace')) load(); },
  };
}
