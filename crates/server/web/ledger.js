// The ledger: injected texts with their sizes, and tokens and hook durations per day.

/** @import { Ledger, LedgerDay, LedgerEntry, LedgerFilter } from './api-types.js' */
/** @import { View } from './page-types.js' */

import { request, enc } from './api.js';
import { h, setChildren, rerender, attempt, debounce } from './dom.js';
import { field, formValues } from './forms.js';
import { plot } from './plot.js';
import { t, formatTime, formatNumber } from './words.js';

const EVENTS = ['session_start', 'prompt_submit', 'task_complete', 'status_check', 'subagent_start', 'pre_tool_use', 'pre_compact', 'stop', 'session_end'];
const CLIENTS = ['claude-code', 'cursor', 'codex', 'gemini-cli', 'copilot-cli', 'web', 'api'];
/** @satisfies {readonly (keyof LedgerFilter)[]} */
const FILTERS = /** @type {const} */ (['event', 'platform', 'sessionId', 'since', 'until']);

/** @typedef {Pick<LedgerDay, 'day' | 'tokens' | 'median' | 'p95'>} Plotted */

/** Adds the days without entries. @param {Plotted[]} found */
function fillDays(found) {
  const known = new Map(found.map((day) => [day.day, day]));
  /** @type {Plotted[]} */
  const days = [];
  const last = Date.parse(found[found.length - 1].day);
  for (let at = Date.parse(found[0].day); at <= last; at += 86400000) {
    const day = new Date(at).toISOString().slice(0, 10);
    days.push(known.get(day) || { day, tokens: 0, median: 0, p95: 0 });
  }
  return days;
}

/** @returns {View} */
export function ledgerView() {
  const plots = h('div', { class: 'plots' });
  const list = h('div', {});
  /** @param {string[]} words @returns {[string, string][]} */
  const withAll = (words) => [['', t('any')], ...words.map((word) => /** @type {[string, string]} */ ([word, word]))];
  const form = h('form', { class: 'filters wide' },
    field({ name: 'event', label: t('event'), choices: withAll(EVENTS) }),
    field({ name: 'platform', label: t('platform'), choices: withAll(CLIENTS) }),
    field({ name: 'sessionId', label: t('session') }),
    field({ name: 'since', label: t('since'), type: 'date' }),
    field({ name: 'until', label: t('until'), type: 'date' }));
  const element = h('div', { class: 'view' }, h('h2', {}, t('ledger')), plots, form, list);
  let limit = 100;

  let requestCount = 0;

  async function load() {
    const requestId = requestCount += 1;
    const [days, ledger] = await Promise.all([
      attempt(() => request('GET /ledger/days', { params: { days: 30 } })),
      attempt(() => request('GET /ledger', { params: { ...formValues(form, FILTERS), limit } })),
    ]);
    if (requestId !== requestCount) return;
    if (days) renderPlots(days.days);
    if (ledger) rerender(list, () => render(ledger));
  }

  /** @param {LedgerDay[]} found */
  function renderPlots(found) {
    if (!found.length) { setChildren(plots); return; }
    const days = fillDays(found);
    const labels = days.map((day) => day.day);
    /** @param {'median' | 'p95'} key */
    const ms = (key) => days.map((day) => day[key] / 1000);
    setChildren(plots,
      plot(t('perDay'), labels, [{ key: 'tokens', label: t('tokens'), values: days.map((day) => day.tokens) }], { bars: true }),
      plot(t('durations'), labels, [
        { key: 'median', label: t('median'), values: ms('median') },
        { key: 'p95', label: t('p95'), values: ms('p95') },
      ], { digits: 2 }));
  }

  /** @param {Ledger} ledger */
  function render(ledger) {
    const { entries, total } = ledger;
    if (!entries.length) { setChildren(list, h('p', { class: 'empty' }, t('noLedger'))); return; }
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
    const box = h('details', { 'data-key': key },
      h('summary', {},
        h('time', {}, formatTime(entry.at)), h('span', { class: 'badge' }, entry.platform), h('span', { class: 'badge event' }, entry.event),
        h('span', { class: 'rules' }, entry.rules.join(', ')),
        h('span', { class: 'numbers' }, `${formatNumber(entry.tokens)} ${t('tokens')} · ${formatNumber(entry.bytes)} B · ${(entry.micros / 1000).toFixed(2)} ms`)),
      h('p', { class: 'meta' }, `${t('session')} ${entry.session}`, entry.workspace ? [' · ', h('a', { href: `#/work/${enc(entry.workspace)}` }, entry.workspace)] : null),
      text);
    box.addEventListener('toggle', async () => {
      if (!box.open || text.textContent) return;
      const answer = await request('GET /ledger/texts/{digest}', { params: { digest: entry.text } }).catch(() => null);
      text.textContent = answer ? answer.content : t('textMissing');
    });
    return box;
  }

  form.addEventListener('input', debounce(load, 250));
  form.addEventListener('submit', (event) => event.preventDefault());
  const reload = debounce(load, 300);
  return { element, route: load, onChange(change) { if (change.kind === 'ledger') reload(); }, onGap: reload };
}
