// The ledger: injected texts by time, session, rule and node, their sizes, and the durations of hooks.

/** @import { Ledger, LedgerDay, LedgerEntry, LedgerFilter, NodeTotals, Totals } from './api-types.js' */
/** @import { View } from './page-types.js' */

import { request, setProject } from './api.js';
import { h, setChildren, rerender, attempt, debounce } from './dom.js';
import { field, formValues } from './forms.js';
import { injectionSize, showInjection } from './injection.js';
import { Directory, serverNow, sessionLink, setServerTime } from './names.js';
import { plot } from './plot.js';
import { t, formatTime, formatNumber } from './words.js';

const EVENTS = ['session_start', 'prompt_submit', 'task_complete', 'status_check', 'subagent_start', 'pre_tool_use', 'pre_compact', 'stop', 'session_end'];
const CLIENTS = ['claude-code', 'cursor', 'codex', 'gemini-cli', 'copilot-cli', 'web', 'api'];
/** @satisfies {readonly (keyof LedgerFilter)[]} */
const FILTERS = /** @type {const} */ (['event', 'platform', 'sessionId', 'rule', 'since', 'until']);
const RANGES = [1, 7, 30];
/** The number of lines of a breakdown. */
const TOP = 8;
/** @typedef {'tokens' | 'bytes' | 'decisions'} Measure */
/** @typedef {Pick<LedgerDay, 'day' | 'tokens' | 'bytes' | 'decisions' | 'median' | 'p95'>} Plotted */

const DAY = 86400000;

/** @param {number} at */
const utcDay = (at) => new Date(at).toISOString().slice(0, 10);

/** Node ids are unique in a workspace only. @param {NodeTotals} line */
const nodeKey = (line) => `${line.workspaceId} ${line.nodeId}`;

/** @param {string} text */
const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Adds the days without entries. @param {LedgerDay[]} found @param {string} since @param {string} until */
function fillDays(found, since, until) {
  const known = new Map(found.map((day) => [day.day, day]));
  /** @type {Plotted[]} */
  const days = [];
  for (let at = Date.parse(since); at <= Date.parse(until) && days.length < 366; at += DAY) {
    const day = utcDay(at);
    days.push(known.get(day) || { day, tokens: 0, bytes: 0, decisions: 0, median: 0, p95: 0 });
  }
  return days;
}

/** @returns {View} */
export function ledgerView() {
  const directory = new Directory();
  const plots = h('div', { class: 'plots' });
  const breakdowns = h('div', { class: 'breakdowns' });
  const list = h('div', {}, h('p', { class: 'empty' }, t('loading')));
  const filters = h('div', { class: 'filters wide' });
  const form = h('form', {}, filters);
  const element = h('div', { class: 'view ledger-view' }, h('h2', {}, t('ledger')), form, plots, breakdowns, list);
  let limit = 100;
  /** Node titles. @type {Map<string, string>} */
  const titles = new Map();
  /** The chosen values, because the choices change with the data. @type {Record<string, string>} */
  let values = { range: '7', measure: 'tokens' };

  /** @param {string[]} words @returns {[string, string][]} */
  const withAll = (words) => [['', t('any')], ...words.map((word) => /** @type {[string, string]} */ ([word, word]))];

  /** Returns the filter that the values stand for. @returns {LedgerFilter & { since: string, until: string }} */
  function currentFilter() {
    const today = utcDay(serverNow());
    const since = values.range === 'custom' ? values.since : utcDay(serverNow() - (Number(values.range) - 1) * DAY);
    const until = values.range === 'custom' ? values.until : today;
    const { event, platform, sessionId, rule } = values;
    const [workspaceId, nodeId] = (values.node || '').split(' ');
    return { event, platform, sessionId, rule, workspaceId, nodeId, since: since || utcDay(serverNow() - 29 * DAY), until: until || today };
  }

  /** @param {Ledger} ledger */
  function renderFilters(ledger) {
    const sessions = new Set([...Object.keys(ledger.sessions), values.sessionId].filter(Boolean));
    const rules = new Set([...Object.keys(ledger.rules), values.rule].filter(Boolean));
    const nodes = new Set([...ledger.nodes.map(nodeKey), values.node].filter(Boolean));
    /** @param {Iterable<string>} ids @param {(id: string) => string} name @returns {[string, string][]} */
    const named = (ids, name) => [['', t('any')], ...[...ids].map((id) => /** @type {[string, string]} */ ([id, name(id)]))];
    /** @type {[string, string][]} */
    const ranges = [...RANGES.map((days) => /** @type {[string, string]} */ ([String(days), days === 1 ? t('today') : t('lastDays', days)])), ['custom', t('customRange')]];
    const custom = values.range === 'custom';
    const value = (/** @type {string} */ name) => values[name];
    rerender(filters, () => setChildren(filters,
      field({ name: 'range', label: t('range'), choices: ranges, value: value('range') }),
      custom ? field({ name: 'since', label: t('since'), type: 'date', value: value('since') }) : null,
      custom ? field({ name: 'until', label: t('until'), type: 'date', value: value('until') }) : null,
      field({ name: 'sessionId', label: t('session'), choices: named(sessions, (id) => directory.sessionName(id)), value: value('sessionId') }),
      field({ name: 'rule', label: t('rule'), choices: named(rules, (id) => id), value: value('rule') }),
      field({ name: 'node', label: t('node'), choices: named(nodes, nodeTitle), value: value('node') }),
      field({ name: 'event', label: t('event'), choices: withAll(EVENTS), value: value('event') }),
      field({ name: 'platform', label: t('platform'), choices: withAll(CLIENTS), value: value('platform') }),
      field({ name: 'measure', label: t('measure'), choices: [['tokens', t('tokens')], ['bytes', t('bytes')], ['decisions', t('injections')]], value: value('measure') }),
      h('button', { type: 'button', 'data-action': 'clear', onclick: () => { values = { range: values.range, measure: values.measure, since: values.since, until: values.until }; load(); } }, t('clearFilters'))));
  }

  /** Returns the title of a node. @param {string} key */
  const nodeTitle = (key) => titles.get(key) || t('unknownNode', key.length > 10 ? `…${key.slice(-6)}` : key);

  let requestCount = 0;

  async function load() {
    const requestId = requestCount += 1;
    const answer = await attempt(async () => {
      const [now] = await Promise.all([request('GET /now', {}), directory.load()]);
      setServerTime(now.at);
      const filter = currentFilter();
      const [days, ledger] = await Promise.all([request('GET /ledger/days', { params: filter }), request('GET /ledger', { params: { ...filter, limit } })]);
      await loadTitles(ledger);
      return { days: days.days, ledger, filter };
    });
    if (!answer || requestId !== requestCount) return;
    const { days, ledger, filter } = answer;
    renderFilters(ledger);
    rerender(plots, () => renderPlots(fillDays(days, filter.since, filter.until)));
    rerender(breakdowns, () => renderBreakdowns(ledger));
    rerender(list, () => render(ledger));
  }

  /** Fetches the titles of nodes that are not known yet. @param {Ledger} ledger */
  async function loadTitles(ledger) {
    /** @type {Map<string, string[]>} */
    const missing = new Map();
    for (const line of ledger.nodes.filter((line) => !titles.has(nodeKey(line)))) missing.set(line.workspaceId, [...(missing.get(line.workspaceId) || []), line.nodeId]);
    await Promise.all([...missing].map(async ([workspaceId, ids]) => {
      setProject(directory.workspace(workspaceId)?.project || '');
      // A workspace that was deleted has no titles.
      const page = await request('GET /workspaces/{workspaceId}/nodes', { params: { workspaceId, ids: ids.slice(0, 100).join(',') } }).catch(() => null);
      for (const node of page ? page.nodes : []) titles.set(`${workspaceId} ${node.id}`, node.title);
    }));
  }

  /** @param {Plotted[]} days */
  function renderPlots(days) {
    const labels = days.map((day) => day.day);
    const measure = /** @type {Measure} */ (values.measure);
    const name = t(measure === 'decisions' ? 'injections' : measure);
    /** @param {'median' | 'p95'} key */
    const ms = (key) => days.map((day) => day[key] / 1000);
    setChildren(plots,
      plot(capitalize(t('perDayOf', name)), labels, [{ key: 'tokens', label: name, values: days.map((day) => day[measure]) }], { bars: true }),
      plot(t('durations'), labels, [
        { key: 'median', label: t('median'), values: ms('median') },
        { key: 'p95', label: t('p95'), values: ms('p95') },
      ], { digits: 2 }));
  }

  /** @param {Ledger} ledger */
  function renderBreakdowns(ledger) {
    if (!ledger.total.decisions) { setChildren(breakdowns); return; }
    setChildren(breakdowns,
      breakdown(t('bySession'), 'sessionId', Object.entries(ledger.sessions), (id) => directory.sessionName(id)),
      breakdown(t('byRule'), 'rule', Object.entries(ledger.rules), (id) => id, t('ruleShared')),
      breakdown(t('byNode'), 'node', ledger.nodes.map((line) => [nodeKey(line), line]), nodeTitle));
  }

  /**
   * Shows the largest parts of a total; a click filters by one.
   * @param {string} title
   * @param {'sessionId' | 'rule' | 'node'} key
   * @param {[id: string, total: Totals][]} totals
   * @param {(id: string) => string} name
   * @param {string} [note]
   */
  function breakdown(title, key, totals, name, note) {
    const measure = /** @type {Measure} */ (values.measure);
    const lines = totals.map(([id, total]) => ({ id, value: total[measure] })).sort((a, b) => b.value - a.value).slice(0, TOP);
    if (!lines.length) return null;
    return h('section', { class: 'breakdown' }, h('h3', {}, title), note ? h('p', { class: 'meta' }, note) : null, h('ul', {}, lines.map(({ id, value }) =>
      h('li', {}, h('button', {
        class: 'quiet', 'data-action': `${key} ${id}`, 'aria-pressed': values[key] === id ? 'true' : 'false',
        onclick: () => { values[key] = values[key] === id ? '' : id; load(); },
      }, h('bdi', { class: 'name' }, name(id)), h('span', { class: 'number' }, formatNumber(value)),
      h('progress', { max: Math.max(1, lines[0].value), value, 'aria-hidden': 'true' }))))));
  }

  /** @param {Ledger} ledger */
  function render(ledger) {
    const { entries, total } = ledger;
    if (!entries.length) {
      setChildren(list, h('p', { class: 'empty' }, t('noLedger')), h('p', { class: 'hint' }, t('installHint'), ' ', h('code', {}, 'tanmi install')));
      return;
    }
    setChildren(list,
      h('p', { class: 'meta' }, `${t('total')}: ${formatNumber(total.decisions)} · ${formatNumber(total.tokens)} ${t('tokens')} · ${formatNumber(total.bytes)} B`),
      h('ol', { class: 'ledger-list' }, [...entries].reverse().map((entry) => h('li', {}, entryBox(entry)))),
      entries.length < total.decisions && limit < 1000
        ? h('button', { onclick: () => { limit = Math.min(1000, limit * 2); load(); } }, t('more')) : null);
  }

  /** @param {LedgerEntry} entry */
  function entryBox(entry) {
    const text = h('pre', { class: 'injected', dir: 'auto' });
    const key = `${entry.at}-${entry.session}-${entry.event}-${entry.text}`;
    const injection = { ...entry, digest: entry.text };
    const box = h('details', { 'data-key': key },
      h('summary', {},
        h('time', {}, formatTime(entry.at)), h('span', { class: 'badge' }, directory.client(entry.session, entry.platform)), h('span', { class: 'badge event' }, entry.event),
        h('span', { class: 'rules' }, entry.rules.join(', ')), h('span', { class: 'numbers' }, injectionSize(entry))),
      h('p', { class: 'meta' }, h('a', { href: sessionLink(entry.session) }, directory.sessionName(entry.session, entry.platform)),
        entry.workspace ? [' · ', h('a', { href: directory.link(entry.workspace, undefined, entry.node) }, h('bdi', {}, entry.node ? nodeTitle(`${entry.workspace} ${entry.node}`) : directory.workspace(entry.workspace)?.name || entry.workspace))] : null,
        ' · ', h('button', { class: 'link', onclick: () => showInjection({ at: entry.at, session: entry.session, injection }, directory) }, t('whyInjected'))),
      text);
    box.addEventListener('toggle', async () => {
      if (!box.open || text.textContent) return;
      const answer = await request('GET /ledger/texts/{digest}', { params: { digest: entry.text } }).catch(() => null);
      text.textContent = answer ? answer.content : t('textMissing');
    });
    return box;
  }

  form.addEventListener('input', debounce(() => {
    values = { ...values, ...formValues(form, [...FILTERS, 'node', 'range', 'measure']) };
    load();
  }, 250));
  form.addEventListener('submit', (event) => event.preventDefault());
  const reload = debounce(load, 300);
  /** A link from a node shows its entries. @param {string | null} workspace @param {string | null} node */
  const route = (workspace, node) => {
    if (workspace && node) values = { ...values, node: `${workspace} ${node}` };
    return load();
  };
  return { element, route, onChange(change) { if (change.kind === 'ledger') reload(); }, onGap: reload };
}
