// Memory by day: search with filters, edit, forget and restore, the history of a fact, and the digests of sessions.

/** @import { FactType, Memory, MemoryFilter, MemoryResults, NewFact, SessionDigest } from './api-types.js' */
/** @import { View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { request } from './api.js';
import { h, setChildren, rerender, attempt, debounce, toast } from './dom.js';
import { openDialog, field, formValues } from './forms.js';
import { formatClock, formatDay, groupByDay } from './time.js';
import { offerUndo } from './undo.js';
import { t, formatNumber, formatTime } from './words.js';

/** @satisfies {readonly (keyof MemoryFilter)[]} */
const FILTERS = /** @type {const} */ (['query', 'type', 'since', 'until', 'project', 'all']);
/** @type {Memory['type'][]} */
const TYPES = ['W', 'B', 'O', 'S', 'T'];

/** The number of memories that are loaded at once. */
const PAGE = 50;

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
  const numbers = h('span', { class: 'meta' });
  const digests = h('details', { class: 'digests', 'data-key': 'digests', hidden: true });
  const element = h('div', { class: 'view memory' },
    h('div', { class: 'head' }, h('h2', {}, t('memory')), numbers, h('button', { class: 'primary small', onclick: openFactDialog }, t('newFact'))), form, digests, list);
  let requestCount = 0;
  /** @type {Memory[]} */
  let shown = [];
  /** Whether the results are ordered by how well they match. */
  let isRanked = false;

  function filter() {
    const { all, ...values } = formValues(form, FILTERS);
    return { ...values, all: all === 'true' };
  }

  const project = () => filter().project;

  /** @param {boolean} [keepCount] */
  async function load(keepCount) {
    const requestId = requestCount += 1;
    // After a change, at least as many results are loaded as were shown before.
    const limit = Math.min(200, Math.max(PAGE, keepCount ? shown.length : 0));
    const answer = await attempt(() => request('GET /memory', { params: { ...filter(), limit } }));
    if (answer && requestId === requestCount) rerender(list, () => render(answer));
  }

  async function loadMore() {
    const requestId = requestCount;
    const answer = await attempt(() => request('GET /memory', { params: { ...filter(), limit: PAGE, skip: shown.length } }));
    if (answer && requestId === requestCount) render({ ...answer, results: shown.concat(answer.results) });
  }

  /** @param {MemoryResults} found */
  function render({ results, total, notice }) {
    shown = results;
    const hasMore = total !== undefined && total > results.length;
    // A search ranks; a list has an order in time.
    isRanked = total === undefined;
    // A search tells no total: if it fills its limit, there may be more.
    const isCut = hasMore || (isRanked && results.length >= PAGE);
    const groups = isRanked ? [{ day: t('bestFirst'), items: results }] : groupByDay(results, timeOf);
    setChildren(list,
      notice ? h('p', { class: 'hint notice', role: 'status', dir: 'auto' }, notice) : null,
      results.length ? null : h('p', { class: 'empty' }, t('noMemory'), filter().query ? '' : ['. ', t('saveOneWith'), ' ', h('code', {}, 'tanmi memory save-fact "…"')]),
      results.length ? groups.map(({ day, items }, at) => h('section', { class: 'memory-day' },
        h('h3', {}, day, h('span', { class: 'count' }, `${formatNumber(items.length)}${isCut && at === groups.length - 1 ? '+' : ''}`)),
        h('ul', { class: isRanked ? 'memories ranked' : 'memories' }, items.map(memoryItem)))) : null,
      hasMore ? h('button', { onclick: loadMore }, t('more')) : null);
  }

  /** @param {Memory} memory */
  const timeOf = (memory) => (memory.timestamp && !Number.isNaN(Date.parse(memory.timestamp)) ? Date.parse(memory.timestamp) : null);

  /** @param {Memory} memory @param {'forget' | 'restore' | 'promote'} verb */
  const mark = async (memory, verb) => {
    await request(`POST /memory/facts/{id}/${verb}`, { params: { id: memory.id, project: project() } });
    await load(true);
  };

  /** @param {Memory} memory */
  const forget = (memory) => attempt(async () => {
    await mark(memory, 'forget');
    offerUndo(t('forgot', memory.content.slice(0, 60)), () => mark(memory, 'restore'));
  });

  /** @param {Memory} memory */
  function memoryItem(memory) {
    const isFact = TYPES.slice(0, 3).includes(memory.type);
    const time = timeOf(memory);
    const canForget = memory.type !== 'T' && !memory.hidden;
    /** @type {Record<string, (() => unknown) | false>} */
    const keys = {
      e: isFact && !memory.hidden && (() => edit(memory)), Delete: canForget && (() => forget(memory)), h: isFact && (() => showHistory(memory)),
      ArrowDown: () => focusItem(memory.id, 1), ArrowUp: () => focusItem(memory.id, -1),
    };
    return h('li', {
      class: memory.hidden ? 'hidden' : '', 'data-key': memory.id, tabindex: memory.id === shown[0]?.id ? 0 : -1,
      onkeydown: (event) => {
        const run = event.target === event.currentTarget && !event.ctrlKey && !event.metaKey && keys[event.key];
        if (run) { event.preventDefault(); run(); }
      },
    },
    h('time', { title: time === null ? null : formatTime(time) }, time === null ? memory.timestamp || '–' : isRanked ? formatDay(time) : formatClock(time)),
    h('span', { class: 'kind', 'data-type': memory.type, title: t(`type${memory.type}`) }, memory.type, h('span', { class: 'sr-only' }, t(`type${memory.type}`))),
    h('div', { class: 'content' },
      memory.parts ? summaryParts(memory.parts) : h('p', { dir: 'auto' }, memory.before ? h('span', { class: 'surrounding' }, memory.before, '\n') : null, memory.content,
        memory.after ? h('span', { class: 'surrounding' }, '\n', memory.after) : null),
      h('div', { class: 'meta' },
        memory.speaker ? h('span', {}, memory.speaker) : null,
        memory.author ? h('span', { title: memory.author.machine || '' }, `— ${memory.author.person}`) : null,
        memory.queued ? h('span', { class: 'badge' }, t('notDelivered')) : null,
        memory.confidence !== undefined ? h('span', {}, `${t('confidence')} ${memory.confidence}`) : null,
        memory.scope === 'user' ? h('span', { class: 'badge' }, t('allProjects')) : null,
        memory.hidden ? h('span', { class: 'badge' }, memory.replacedBy ? t('superseded') : t('forgotten')) : null,
        memory.replaced ? h('span', { class: 'badge', title: memory.replaced.by }, `${t('replacedOn')} ${memory.replaced.on}`) : null,
        (memory.files || []).map((file) => h('span', { class: file.state === 'same' ? 'entity' : 'badge' },
          file.state === 'same' ? file.path : `${file.path} ${t(file.state === 'gone' ? 'fileGone' : 'fileChanged')}`)),
        (memory.entities || []).map((entity) => h('span', { class: 'entity' }, entity)))),
    h('div', { class: 'buttons' },
      isFact && !memory.hidden ? h('button', { class: 'small', title: 'e', onclick: () => edit(memory) }, t('edit')) : null,
      isFact ? h('button', { class: 'small quiet', title: 'h', 'data-action': 'history', onclick: () => showHistory(memory) }, t('history')) : null,
      isFact && !memory.hidden && memory.scope !== 'user' ? h('button', { class: 'small quiet', title: t('promoteHelp'), 'data-action': 'promote', onclick: () => attempt(() => mark(memory, 'promote')) }, t('promote')) : null,
      canForget ? h('button', { class: 'small quiet danger', title: 'Delete', onclick: () => forget(memory) }, t('forget')) : null,
      memory.hidden && !memory.replacedBy && memory.type !== 'T' ? h('button', { class: 'small', onclick: () => attempt(() => mark(memory, 'restore')) }, t('restore')) : null));
  }

  /** Moves the focus to the next or previous memory. @param {string} id @param {number} step */
  function focusItem(id, step) {
    /** @type {HTMLElement[]} */
    const items = [...list.querySelectorAll('.memories > li')].filter((item) => item instanceof HTMLElement);
    const at = items.findIndex((item) => item.dataset.key === id) + step;
    if (!items[at]) return;
    items.forEach((item, n) => { item.tabIndex = n === at ? 0 : -1; });
    items[at].focus();
  }

  /** @param {NonNullable<Memory['parts']>} parts */
  function summaryParts({ topic, summary, decisions, todos }) {
    /** @param {string} label @param {string[]} lines */
    const lines = (label, lines) => (lines.length ? [h('h4', {}, label), h('ul', {}, lines.map((line) => h('li', { dir: 'auto' }, line)))] : null);
    return [topic ? h('h4', { class: 'topic', dir: 'auto' }, topic) : null, summary ? h('p', { dir: 'auto' }, summary) : null, lines(t('decisions'), decisions), lines(t('todos'), todos)];
  }

  /** Shows all versions of a fact, the one in force first. @param {Memory} memory */
  const showHistory = (memory) => attempt(async () => {
    const { versions } = await request('GET /memory/facts/{id}/history', { params: { id: memory.id, project: project() } });
    /** @type {HTMLDialogElement} */
    const dialog = h('dialog', { class: 'history', 'aria-label': t('history'), onclose: () => dialog.remove() },
      h('h2', {}, t('history')),
      versions.length > 1 ? null : h('p', { class: 'meta' }, t('noHistory')),
      h('ol', { class: 'timeline' }, versions.map((version) => h('li', { class: version.hidden ? 'expired' : 'Human' },
        h('span', { class: 'when' }, h('time', {}, version.timestamp ? formatTime(Date.parse(version.timestamp)) : '–'),
          h('span', {}, version.hidden ? (version.replacedBy ? t('superseded') : t('forgotten')) : t('inForce'))),
        h('bdi', { class: 'plain' }, version.content)))),
      h('div', { class: 'buttons' }, h('button', { autofocus: true, onclick: () => dialog.close() }, t('close'))));
    document.body.append(dialog);
    dialog.showModal();
  });

  async function loadDigests() {
    const params = { project: project() };
    const [stats, answer] = await Promise.all([
      request('GET /memory/stats', { params }).catch(() => null), request('GET /memory/digests', { params }).catch(() => null),
    ]);
    numbers.textContent = stats ? t('memoryNumbers', formatNumber(stats.facts), formatNumber(stats.summaries), formatNumber(stats.turns)) : '';
    const found = answer ? answer.digests : [];
    digests.hidden = !found.length;
    setChildren(digests, h('summary', {}, t('digests'), h('span', { class: 'count' }, formatNumber(found.length))), h('ul', { class: 'memories' }, found.map(digestItem)));
  }

  /** @param {SessionDigest} digest */
  function digestItem(digest) {
    /** @type {[Word, string[]][]} */
    const lists = [['digestMoved', digest.moved], ['problem', digest.problems]];
    return h('li', {}, h('span', { class: 'kind', title: t('digests'), 'aria-hidden': 'true' }, '≡'),
      h('div', { class: 'content' },
        lists.map(([label, lines]) => (lines.length ? [h('h4', {}, t(label)), h('ul', {}, lines.map((line) => h('li', { dir: 'auto' }, line)))] : null)),
        digest.moreMoved ? h('p', { class: 'meta' }, t('otherNodes', digest.moreMoved)) : null,
        digest.lastLog ? h('p', { dir: 'auto' }, digest.lastLog) : null,
        h('div', { class: 'meta' }, h('time', {}, digest.at), h('span', {}, digest.platform || t('session')), h('code', {}, digest.sessionId),
          h('span', {}, t('digestNumbers', digest.logLines, digest.facts)))));
  }

  /** @param {Memory} memory */
  function edit(memory) {
    openDialog({
      title: t('edit'), fields: [{ name: 'content', label: t('content'), rows: 6, value: memory.content, required: true, autofocus: true }],
      onSubmit: async (typed) => {
        await request('PATCH /memory/facts/{id}', { params: { id: memory.id, project: project() }, body: typed });
        toast(t('saved'));
        await load(true);
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
  form.addEventListener('change', (event) => { if (event.target instanceof HTMLSelectElement && event.target.name === 'project') loadDigests(); });
  const reload = debounce(() => Promise.all([load(true), loadDigests()]), 300);
  return {
    element,
    async route() { await listProjects(); await Promise.all([load(), loadDigests()]); },
    onChange(change) { if (change.kind === 'memory') reload(); },
    onGap: reload,
    focusSearch: () => form.querySelector('input')?.focus(),
    actions: () => [{ label: t('newFact'), icon: 'action', run: openFactDialog }],
  };
}
