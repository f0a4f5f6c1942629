// Memory: search with filters, edit, forget and restore.

/** @import { FactType, Memory, MemoryFilter, MemoryResults, NewFact } from './api-types.js' */
/** @import { View } from './page-types.js' */

import { request } from './api.js';
import { h, setChildren, rerender, attempt, debounce, toast } from './dom.js';
import { openDialog, field, formValues } from './forms.js';
import { t, formatTime } from './words.js';

/** @satisfies {readonly (keyof MemoryFilter)[]} */
const FILTERS = /** @type {const} */ (['query', 'type', 'since', 'until', 'project', 'all']);
/** @type {Memory['type'][]} */
const TYPES = ['W', 'B', 'O', 'S', 'T'];

/** @param {Memory['type'][]} types @returns {[string, string][]} */
const typeChoices = (types) => types.map((type) => [type, `${type} · ${t(`type${type}`)}`]);

/** @returns {View} */
export function memoryView() {
  const list = h('div', {});
  const projects = h('div', {});
  const form = h('form', { class: 'filters wide', role: 'search' },
    field({ name: 'query', label: t('searchMemory'), type: 'search' }),
    field({ name: 'type', label: t('type'), choices: [['', t('any')], ...typeChoices(TYPES)] }),
    field({ name: 'since', label: t('since'), type: 'date' }),
    field({ name: 'until', label: t('until'), type: 'date' }),
    projects,
    h('label', { class: 'check' }, h('input', { type: 'checkbox', name: 'all', value: 'true' }), t('all')));
  const element = h('div', { class: 'view' },
    h('div', { class: 'head' }, h('h2', {}, t('memory')), h('button', { class: 'primary small', onclick: openFactDialog }, t('newFact'))), form, list);
  let requestCount = 0;
  /** @type {Memory[]} */
  let shown = [];

  function filter() {
    const { all, ...values } = formValues(form, FILTERS);
    return { ...values, all: all === 'true' };
  }

  const project = () => filter().project;

  /** @param {boolean} [keepCount] */
  async function load(keepCount) {
    const requestId = requestCount += 1;
    // After a change, at least as many results are loaded as were shown before.
    const limit = Math.min(200, Math.max(50, keepCount ? shown.length : 0));
    const answer = await attempt(() => request('GET /memory', { params: { ...filter(), limit } }));
    if (answer && requestId === requestCount) rerender(list, () => render(answer));
  }

  async function loadMore() {
    const requestId = requestCount;
    const answer = await attempt(() => request('GET /memory', { params: { ...filter(), limit: 50, skip: shown.length } }));
    if (answer && requestId === requestCount) render({ results: shown.concat(answer.results), total: answer.total });
  }

  /** @param {MemoryResults} found */
  function render({ results, total }) {
    shown = results;
    setChildren(list,
      results.length === 0 ? h('p', { class: 'empty' }, t('noMemory')) : h('ul', { class: 'memories' }, results.map(memoryItem)),
      total !== undefined && total > results.length ? h('button', { onclick: loadMore }, t('more')) : null);
  }

  /** @param {Memory} memory */
  function memoryItem(memory) {
    const isFact = TYPES.slice(0, 3).includes(memory.type);
    /** @param {'forget' | 'restore'} verb */
    const change = (verb) => attempt(async () => {
      await request(`POST /memory/facts/{id}/${verb}`, { params: { id: memory.id, project: project() } });
      await load();
    });
    return h('li', { class: memory.hidden ? 'hidden' : '', 'data-key': memory.id },
      h('div', { class: 'facts' },
        h('span', { class: `badge type-${memory.type}` }, t(`type${memory.type}`)),
        h('time', {}, memory.timestamp ? formatTime(Date.parse(memory.timestamp)) : '–'),
        memory.scope === 'user' ? h('span', { class: 'badge' }, t('allProjects')) : null,
        memory.speaker ? h('span', {}, memory.speaker) : null,
        memory.confidence !== undefined ? h('span', {}, `${t('confidence')} ${memory.confidence}`) : null,
        memory.hidden ? h('span', { class: 'badge' }, memory.replacedBy ? t('superseded') : t('forgotten')) : null,
        memory.replaced ? h('span', { class: 'badge', title: memory.replaced.by }, `${t('replacedOn')} ${memory.replaced.on}`) : null,
        (memory.files || []).map((file) => h('span', { class: file.state === 'same' ? 'entity' : 'badge' },
          file.state === 'same' ? file.path : `${file.path} ${t(file.state === 'gone' ? 'fileGone' : 'fileChanged')}`)),
        (memory.entities || []).map((entity) => h('span', { class: 'entity' }, entity))),
      h('p', { dir: 'auto' }, memory.before ? h('span', { class: 'surrounding' }, memory.before, '\n') : null, memory.content,
        memory.after ? h('span', { class: 'surrounding' }, '\n', memory.after) : null),
      h('div', { class: 'buttons' },
        isFact && !memory.hidden ? h('button', { class: 'small', onclick: () => edit(memory) }, t('edit')) : null,
        memory.type === 'T' ? null : memory.hidden
          ? (memory.replacedBy ? null : h('button', { class: 'small', onclick: () => change('restore') }, t('restore')))
          : h('button', { class: 'small quiet danger', onclick: () => change('forget') }, t('forget'))));
  }

  /** @param {Memory} memory */
  function edit(memory) {
    openDialog({
      title: t('edit'), fields: [{ name: 'content', label: t('content'), rows: 6, value: memory.content, required: true, autofocus: true }],
      onSubmit: async (typed) => {
        await request('PATCH /memory/facts/{id}', { params: { id: memory.id, project: project() }, body: typed });
        toast(t('saved'));
        await load();
      },
    });
  }

  function openFactDialog() {
    openDialog({
      title: t('newFact'),
      fields: [
        { name: 'content', label: t('content'), rows: 5, required: true, autofocus: true },
        { name: 'type', label: t('type'), choices: typeChoices(TYPES.slice(0, 3)) },
        { name: 'confidence', label: `${t('confidence')} (O)`, type: 'number', min: 0, max: 1, step: 0.05 },
      ],
      onSubmit: async (typed) => {
        /** @type {NewFact} */
        const body = { content: typed.content, type: /** @type {FactType} */ (typed.type) };
        if (typed.confidence) body.confidence = Number(typed.confidence);
        await request('POST /memory', { params: { project: project() }, body });
        await load();
      },
    });
  }

  async function listProjects() {
    const answer = await attempt(() => request('GET /projects', {}));
    if (answer) setChildren(projects, field({ name: 'project', label: t('project'), choices: answer.projects.map((path) => [path, path]) }));
  }

  form.addEventListener('input', debounce(() => load(), 200));
  form.addEventListener('submit', (event) => { event.preventDefault(); load(); });
  const reload = debounce(() => load(true), 300);
  return {
    element,
    async route() { await listProjects(); await load(); },
    onChange(change) { if (change.kind === 'memory') reload(); },
    onGap: reload,
  };
}
