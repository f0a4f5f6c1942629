// The rules, and an explanation of what they would inject for an event.

/** @import { CheckedRules, RuleLine } from './api-types.js' */
/** @import { View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { request } from './api.js';
import { h, setChildren, rerender, attempt, debounce } from './dom.js';
import { field, formValues } from './forms.js';
import { Directory } from './names.js';
import { t, formatNumber } from './words.js';

const EVENTS = ['prompt_submit', 'session_start', 'status_check', 'subagent_start', 'pre_compact', 'stop', 'session_end'];

/** @param {Word[]} columns */
const tableHead = (columns) => h('thead', {}, h('tr', {}, columns.map((key) => h('th', { scope: 'col' }, t(key)))));

/** @returns {View} */
export function rulesView() {
  const list = h('div', {});
  const explanation = h('div', { 'aria-live': 'polite' });
  const sessions = h('div', { class: 'session-choice' });
  const form = h('form', { class: 'filters wide' }, sessions,
    field({ name: 'event', label: t('event'), choices: EVENTS.map((event) => [event, event]) }),
    field({ name: 'prompt', label: t('prompt') }),
    h('button', { type: 'submit', class: 'primary' }, t('explain')));
  const element = h('div', { class: 'view rules-view' }, h('h2', {}, t('rules')),
    h('section', {}, h('h3', {}, t('explainHelp')), form, explanation), list);

  async function load() {
    const [rules, checks] = await Promise.all([attempt(() => request('GET /rules', {})), attempt(() => request('GET /rules/check', {})), loadSessions()]);
    if (rules && checks) render(rules.rules, checks.files);
  }

  /** Offers the known sessions by name. An id is typed only if none is known. */
  async function loadSessions() {
    const directory = new Directory();
    await directory.load().catch(() => {});
    const value = formValues(form, ['sessionId']).sessionId;
    const choices = [...directory.sessions.keys()].map((id) => /** @type {[string, string]} */ ([id, directory.sessionName(id)]));
    rerender(sessions, () => setChildren(sessions, field({ name: 'sessionId', label: t('session'), required: true, value, choices: choices.length ? choices : undefined })));
  }

  /** @param {RuleLine[]} rules @param {CheckedRules[]} files */
  function render(rules, files) {
    const flaws = files.flatMap((file) => file.flaws.map((flaw) => `${file.path}:${flaw.line} ${flaw.rule || ''} ${flaw.message}`));
    const notes = files.flatMap((file) => (file.notes || []).map((note) => `${file.path} ${note}`));
    setChildren(list,
      notes.length ? h('ul', { class: 'meta' }, notes.map((note) => h('li', {}, note))) : null,
      flaws.length ? h('ul', { class: 'problem' }, flaws.map((flaw) => h('li', {}, flaw))) : null,
      h('table', { class: 'stacked' },
        tableHead(['rule', 'source', 'priority', 'event', 'state']),
        h('tbody', {}, rules.map((rule) => h('tr', {},
          h('th', { scope: 'row' }, h('code', {}, rule.id), h('p', {}, rule.name)), h('td', { 'data-label': t('source') }, rule.source),
          h('td', { class: 'number', 'data-label': t('priority') }, rule.priority), h('td', { 'data-label': t('event') }, rule.events.join(', ')),
          h('td', { 'data-label': t('state') }, h('span', { class: `badge ${rule.state}` }, rule.state)))))));
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const { sessionId, event: kind, prompt } = formValues(form, ['sessionId', 'event', 'prompt']);
    const body = { sessionId, event: kind, prompt: prompt || undefined };
    const answer = await attempt(() => request('POST /rules/explain', { params: {}, body }));
    if (!answer) return;
    setChildren(explanation,
      h('pre', { class: 'injected', dir: 'auto' }, answer.text || t('nothingInjected')),
      answer.text ? h('p', { class: 'meta' }, `${formatNumber(answer.tokens)} ${t('tokens')} · ${formatNumber(answer.bytes)} B`) : null,
      h('table', { class: 'stacked' },
        tableHead(['rule', 'priority', 'why']),
        h('tbody', {}, answer.rules.map((rule) => h('tr', { class: rule.matched ? 'matched' : '' },
          h('th', { scope: 'row' }, h('code', {}, rule.id)), h('td', { class: 'number', 'data-label': t('priority') }, rule.priority), h('td', { 'data-label': t('why') }, rule.why))))));
  });

  const reload = debounce(load, 300);
  return { element, route: load, onChange(change) { if (change.kind === 'rules') reload(); }, onGap: reload };
}
