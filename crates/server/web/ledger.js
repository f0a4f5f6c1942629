// What agents were told: a time line with sizes and the exact texts, and what it cost per day.

import { get, enc } from './api.js';
import { h, show, repaint, attempt, calmly } from './dom.js';
import { field, values } from './forms.js';
import { plot } from './plot.js';
import { t, when, number } from './words.js';

const EVENTS = ['session_start', 'prompt_submit', 'task_complete', 'status_check', 'subagent_start', 'pre_tool_use', 'pre_compact', 'stop', 'session_end'];
const CLIENTS = ['claude-code', 'cursor', 'codex', 'gemini-cli', 'copilot-cli', 'web', 'api'];

/** Days on which nothing was said count too. */
function everyDay(found) {
  const known = new Map(found.map((day) => [day.day, day]));
  const days = [];
  const last = Date.parse(found[found.length - 1].day);
  for (let at = Date.parse(found[0].day); at <= last; at += 86400000) {
    const day = new Date(at).toISOString().slice(0, 10);
    days.push(known.get(day) || { day, tokens: 0, median: 0, p95: 0 });
  }
  return days;
}

export function ledgerView() {
  const plots = h('div', { class: 'plots' });
  const list = h('div', {});
  const options = (words) => [['', t('any')], ...words.map((word) => [word, word])];
  const form = h('form', { class: 'filters wide' },
    field({ name: 'event', label: t('event'), options: options(EVENTS) }),
    field({ name: 'platform', label: t('platform'), options: options(CLIENTS) }),
    field({ name: 'sessionId', label: t('session') }),
    field({ name: 'since', label: t('since'), type: 'date' }),
    field({ name: 'until', label: t('until'), type: 'date' }));
  const element = h('div', { class: 'view' }, h('h2', {}, t('ledger')), plots, form, list);
  let limit = 100;

  let asked = 0;

  async function load() {
    const turn = asked += 1;
    const [days, ledger] = await Promise.all([
      attempt(() => get('/ledger/days', { days: 30 })),
      attempt(() => get('/ledger', { ...values(form), limit })),
    ]);
    if (turn !== asked) return;
    if (days) paintPlots(days.days);
    if (ledger) repaint(list, () => paint(ledger));
  }

  function paintPlots(found) {
    if (!found.length) { show(plots); return; }
    const days = everyDay(found);
    const labels = days.map((day) => day.day);
    const ms = (key) => days.map((day) => day[key] / 1000);
    show(plots,
      plot(t('perDay'), labels, [{ key: 'tokens', label: t('tokens'), values: days.map((day) => day.tokens) }], { bars: true }),
      plot(t('durations'), labels, [
        { key: 'median', label: t('median'), values: ms('median') },
        { key: 'p95', label: t('p95'), values: ms('p95') },
      ], { digits: 2 }));
  }

  function paint(ledger) {
    const { entries, total } = ledger;
    if (!entries.length) { show(list, h('p', { class: 'empty' }, t('noLedger'))); return; }
    show(list,
      h('p', { class: 'meta' }, `${t('total')}: ${number(total.decisions)} · ${number(total.tokens)} ${t('tokens')} · ${number(total.bytes)} B`),
      h('ol', { class: 'said-list' }, [...entries].reverse().map((entry) => h('li', {}, line(entry)))),
      entries.length < total.decisions && limit < 1000
        ? h('button', { onclick: () => { limit = Math.min(1000, limit * 2); load(); } }, t('more')) : null);
  }

  function line(entry) {
    const text = h('pre', { class: 'said', dir: 'auto' });
    const key = `${entry.at}-${entry.session}-${entry.event}-${entry.text}`;
    const box = h('details', { 'data-key': key },
      h('summary', {},
        h('time', {}, when(entry.at)), h('span', { class: 'badge' }, entry.platform), h('span', { class: 'badge event' }, entry.event),
        h('span', { class: 'rules' }, entry.rules.join(', ')),
        h('span', { class: 'numbers' }, `${number(entry.tokens)} ${t('tokens')} · ${number(entry.bytes)} B · ${(entry.micros / 1000).toFixed(2)} ms`)),
      h('p', { class: 'meta' }, `${t('session')} ${entry.session}`, entry.workspace ? [' · ', h('a', { href: `#/work/${enc(entry.workspace)}` }, entry.workspace)] : null),
      text);
    box.addEventListener('toggle', async () => {
      if (!box.open || text.textContent) return;
      const answer = await get(`/ledger/texts/${enc(entry.text)}`).catch(() => null);
      text.textContent = answer ? answer.content : t('textGone');
    });
    return box;
  }

  form.addEventListener('input', calmly(load, 250));
  form.addEventListener('submit', (event) => event.preventDefault());
  const again = calmly(load, 300);
  return { element, route: load, heard(news) { if (news.kind === 'ledger') again(); }, lost: again };
}
