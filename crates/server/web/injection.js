// One injected text: when and why it was injected, its size, and what the same event would inject now.

/** @import { Injection, RuleLine } from './api-types.js' */
/** @import { Directory } from './names.js' */

import { request } from './api.js';
import { h, setChildren, attempt } from './dom.js';
import { sessionLink } from './names.js';
import { t, formatNumber, formatTime } from './words.js';

/** Returns the size of an injected text. @param {{ bytes: number, tokens: number, micros: number }} size */
export const injectionSize = (size) => `${formatNumber(size.tokens)} ${t('tokens')} · ${formatNumber(size.bytes)} B · ${(size.micros / 1000).toFixed(1)} ms`;

/**
 * Opens a dialog that tells why a text was injected.
 * @param {{ at: number, session: string, injection: Injection }} entry
 * @param {Directory} directory
 */
export function showInjection({ at, session, injection }, directory) {
  const text = h('pre', { class: 'injected', dir: 'auto', tabindex: 0, 'aria-label': t('injectedText') }, t('loading'));
  const rules = h('ul', { class: 'reasons' }, injection.rules.map((rule) => h('li', {}, h('code', {}, rule))));
  const explanation = h('div', { 'aria-live': 'polite' });
  const explain = async () => {
    const answer = await attempt(() => request('POST /rules/explain', { params: {}, body: { sessionId: session, event: injection.event } }));
    if (!answer) return;
    setChildren(explanation,
      h('pre', { class: 'injected', dir: 'auto', tabindex: 0, 'aria-label': t('explainNow') }, answer.text || t('nothingInjected')),
      h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': t('rules') }, h('table', {},
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('rule')), h('th', { scope: 'col' }, t('why')))),
        h('tbody', {}, answer.rules.map((rule) => h('tr', { class: rule.matched ? 'matched' : '' }, h('td', {}, h('code', {}, rule.id)), h('td', {}, rule.why)))))));
  };
  /** @type {HTMLDialogElement} */
  const dialog = h('dialog', { class: 'injection', 'aria-label': t('whyTitle'), onclose: () => dialog.remove() },
    h('h2', {}, t('whyTitle')),
    h('p', { class: 'meta' }, h('a', { href: sessionLink(session), onclick: () => dialog.close() }, directory.sessionName(session, injection.platform)), ' · ', formatTime(at), ' · ', injectionSize(injection)),
    h('p', {}, t('whyText', injection.event)), rules, text,
    h('div', { class: 'buttons' },
      h('button', { type: 'button', onclick: explain }, t('explainNow')),
      h('button', { type: 'button', class: 'primary', autofocus: true, onclick: () => dialog.close() }, t('close'))),
    explanation);
  document.body.append(dialog);
  dialog.showModal();
  attempt(async () => {
    const answer = await request('GET /ledger/texts/{digest}', { params: { digest: injection.digest } }).catch(() => null);
    text.textContent = answer ? answer.content : t('textMissing');
    const known = await request('GET /rules', {});
    /** @type {Map<string, RuleLine>} */
    const names = new Map(known.rules.map((rule) => [rule.id, rule]));
    setChildren(rules, injection.rules.map((rule) => h('li', {}, h('code', {}, rule), ' ', names.get(rule)?.name)));
  });
}
