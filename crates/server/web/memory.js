// What is remembered: search with filters, edit, forget, bring back.

import { get, post, patch, enc } from './api.js';
import { h, show, repaint, attempt, calmly, toast } from './dom.js';
import { ask, field, values } from './forms.js';
import { t, when } from './words.js';

const TYPES = ['W', 'B', 'O', 'S', 'T'];

export function memoryView() {
  const list = h('div', {});
  const projects = h('div', {});
  const form = h('form', { class: 'filters wide', role: 'search' },
    field({ name: 'query', label: t('searchMemory'), type: 'search' }),
    field({ name: 'type', label: t('type'), options: [['', t('any')], ...TYPES.map((type) => [type, `${type} · ${t(`type${type}`)}`])] }),
    field({ name: 'since', label: t('since'), type: 'date' }),
    field({ name: 'until', label: t('until'), type: 'date' }),
    projects,
    h('label', { class: 'check' }, h('input', { type: 'checkbox', name: 'all', value: 'true' }), t('all')));
  const element = h('div', { class: 'view' },
    h('div', { class: 'head' }, h('h2', {}, t('memory')), h('button', { class: 'primary small', onclick: remember }, t('newFact'))), form, list);
  let asked = 0;
  let shown = [];

  const project = () => values(form).project;

  async function load(wide) {
    const turn = asked += 1;
    // What was unfolded stays so when there is news.
    const limit = Math.min(200, Math.max(50, wide ? shown.length : 0));
    const answer = await attempt(() => get('/memory', { ...values(form), limit }));
    if (answer && turn === asked) repaint(list, () => paint(answer));
  }

  async function more() {
    const turn = asked;
    const answer = await attempt(() => get('/memory', { ...values(form), limit: 50, skip: shown.length }));
    if (answer && turn === asked) paint({ results: shown.concat(answer.results), total: answer.total });
  }

  function paint({ results, total }) {
    shown = results;
    show(list,
      results.length === 0 ? h('p', { class: 'empty' }, t('noMemory')) : h('ul', { class: 'memories' }, results.map(one)),
      total > results.length ? h('button', { onclick: more }, t('more')) : null);
  }

  function one(memory) {
    const isFact = TYPES.slice(0, 3).includes(memory.type);
    const path = `/memory/facts/${enc(memory.id)}`;
    const mark = (verb) => attempt(async () => { await post(`${path}/${verb}`, {}, { project: project() }); await load(); });
    return h('li', { class: memory.hidden ? 'hidden' : '', 'data-key': memory.id },
      h('div', { class: 'facts' },
        h('span', { class: `badge type-${memory.type}` }, t(`type${memory.type}`)),
        h('time', {}, memory.timestamp ? when(Date.parse(memory.timestamp)) : '–'),
        memory.speaker ? h('span', {}, memory.speaker) : null,
        memory.confidence !== undefined ? h('span', {}, `${t('confidence')} ${memory.confidence}`) : null,
        memory.hidden ? h('span', { class: 'badge' }, memory.replacedBy ? t('replaced') : t('forgotten')) : null,
        (memory.entities || []).map((entity) => h('span', { class: 'entity' }, entity))),
      h('p', { dir: 'auto' }, memory.before ? h('span', { class: 'around' }, memory.before, '\n') : null, memory.content,
        memory.after ? h('span', { class: 'around' }, '\n', memory.after) : null),
      h('div', { class: 'buttons' },
        isFact && !memory.hidden ? h('button', { class: 'small', onclick: () => edit(memory, path) }, t('edit')) : null,
        memory.type === 'T' ? null : memory.hidden
          ? (memory.replacedBy ? null : h('button', { class: 'small', onclick: () => mark('restore') }, t('restore')))
          : h('button', { class: 'small quiet danger', onclick: () => mark('forget') }, t('forget'))));
  }

  function edit(memory, path) {
    ask({
      title: t('edit'), fields: [{ name: 'content', label: t('content'), rows: 6, value: memory.content, required: true, autofocus: true }],
      done: async (typed) => {
        await patch(path, typed, null, { project: project() });
        toast(t('saved'));
        await load();
      },
    });
  }

  function remember() {
    ask({
      title: t('newFact'),
      fields: [
        { name: 'content', label: t('content'), rows: 5, required: true, autofocus: true },
        { name: 'type', label: t('type'), options: TYPES.slice(0, 3).map((type) => [type, `${type} · ${t(`type${type}`)}`]) },
        { name: 'confidence', label: `${t('confidence')} (O)`, type: 'number', min: 0, max: 1, step: 0.05 },
      ],
      done: async (typed) => {
        const body = { content: typed.content, type: typed.type };
        if (typed.confidence) body.confidence = Number(typed.confidence);
        await post('/memory', body, { project: project() });
        await load();
      },
    });
  }

  async function listProjects() {
    const answer = await attempt(() => get('/projects'));
    if (answer) show(projects, field({ name: 'project', label: t('project'), options: answer.projects.map((path) => [path, path]) }));
  }

  form.addEventListener('input', calmly(() => load(), 200));
  form.addEventListener('submit', (event) => { event.preventDefault(); load(); });
  const again = calmly(() => load(true), 300);
  return {
    element,
    async route() { await listProjects(); await load(); },
    heard(news) { if (news.kind === 'memory') again(); },
    lost: again,
  };
}
