// Form fields, dialogs, and lists that are edited as text.

/** @import { Doc } from './api-types.js' */
/** @import { DialogOptions, FieldOptions } from './page-types.js' */

import { errorText } from './api.js';
import { h, setChildren } from './dom.js';
import { t } from './words.js';

let count = 0;

/** Builds a labelled field. @param {FieldOptions} options */
export function field(options) {
  const id = `field-${count += 1}`;
  const shared = {
    id, name: options.name, required: options.required, autofocus: options.autofocus,
    'aria-describedby': options.help ? `${id}-help` : null,
  };
  let input;
  if (options.choices) {
    input = h('select', shared, options.choices.map(([value, label]) => h('option', { value, selected: value === options.value }, label)));
  } else if (options.rows) {
    input = h('textarea', { ...shared, rows: options.rows, dir: 'auto' });
    input.value = options.value || '';
  } else {
    input = h('input', { ...shared, type: options.type || 'text', dir: 'auto', step: options.step, min: options.min, max: options.max, value: options.value || '' });
  }
  return h('div', { class: 'field' }, h('label', { for: id }, options.label), input,
    options.help ? h('small', { id: `${id}-help` }, options.help) : null);
}

/**
 * Returns the values of these fields; empty for a field that is missing or not checked.
 * @template {string} N
 * @param {HTMLFormElement} form
 * @param {readonly N[]} names
 */
export function formValues(form, names) {
  const data = new FormData(form);
  return /** @type {Record<N, string>} */ (Object.fromEntries(names.map((name) => [name, data.get(name) || ''])));
}

/**
 * Opens a dialog. It closes when `onSubmit` succeeds; after an error it stays open with the typed values.
 * @template {string} N
 * @param {DialogOptions<N>} options
 */
export function openDialog({ title, text, fields = [], confirmLabel, danger, onSubmit }) {
  const problem = h('p', { class: 'bad', role: 'alert' });
  const form = h('form', { method: 'dialog' },
    h('h2', {}, title), text ? h('p', { dir: 'auto' }, text) : null, fields.map(field), problem,
    h('div', { class: 'buttons' },
      h('button', { type: 'button', onclick: () => dialog.close() }, t('cancelEdit')),
      h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, confirmLabel || t('save'))));
  /** @type {HTMLDialogElement} */
  const dialog = h('dialog', { 'aria-label': title, onclose: () => dialog.remove() }, form);
  let isBusy = false;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    try {
      await onSubmit(formValues(form, fields.map((options) => options.name)));
      dialog.close();
    } catch (error) {
      // Shown in the dialog, because the dialog covers the toast.
      problem.textContent = errorText(error);
    } finally {
      isBusy = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Asks what to do with the secrets in a text that was not saved.
 * @param {Error} found
 * @returns {Promise<'mask' | 'keep' | null>}
 */
export function askAboutSecrets(found) {
  return new Promise((resolve) => {
    /** @param {'mask' | 'keep' | null} choice */
    const choose = (choice) => { resolve(choice); dialog.close(); };
    const dialog = h('dialog', { 'aria-label': t('secretsFound'), onclose: () => { resolve(null); dialog.remove(); } },
      h('h2', {}, t('secretsFound')), h('p', { dir: 'auto' }, found.message),
      h('div', { class: 'buttons' },
        h('button', { type: 'button', onclick: () => choose(null) }, t('cancelEdit')),
        h('button', { type: 'button', 'data-action': 'keep-secrets', onclick: () => choose('keep') }, t('keepSecrets')),
        h('button', { type: 'button', class: 'primary', 'data-action': 'mask-secrets', onclick: () => choose('mask') }, t('maskSecrets'))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Replaces all line ends with `\n`, as a text area does. @param {string | null} [text] */
export const normalizeLineEnds = (text) => (text || '').replace(/\r\n?/g, '\n');

// A list is edited as text with one entry per line. Entries that were not edited keep their exact bytes.
/** @param {string} text */
const joinLines = (text) => normalizeLineEnds(text).replace(/\n/g, '⏎');
/** @param {string} line */
const splitLines = (line) => line.replace(/⏎/g, '\n');

/**
 * @template T
 * @param {string} text
 * @param {T[]} before
 * @param {(entry: T) => string} format
 * @param {(line: string) => T} parse
 */
function parseList(text, before, format, parse) {
  const known = new Map(before.map((entry) => [format(entry), entry]));
  const typed = normalizeLineEnds(text).split('\n').filter((line) => line.trim());
  return typed.map((line) => known.get(line) ?? parse(splitLines(line.trim())));
}

/** @param {string[]} rules */
export const formatRules = (rules) => rules.map(joinLines).join('\n');
/** @param {string} text @param {string[]} before */
export const parseRules = (text, before) => parseList(text, before, joinLines, (line) => line);

/** @param {Doc} doc */
const formatDoc = (doc) => `${doc.status === 'expired' ? '[expired] ' : ''}${joinLines(doc.path)}${doc.description ? `: ${joinLines(doc.description)}` : ''}`;

/** @param {Doc[]} docs */
export const formatDocs = (docs) => docs.map(formatDoc).join('\n');
/** @param {string} text @param {Doc[]} before @returns {Doc[]} */
export const parseDocs = (text, before) => parseList(text, before, formatDoc, (line) => {
  const [expired] = line.match(/^\[expired\]\s*/) || [''];
  const rest = line.slice(expired.length);
  // The separator is a colon followed by a space: `https://…` and `C:\…` contain a colon too.
  const [, path, description] = rest.match(/^([^]*?)(?::\s+|：)([^]*)$/) || ['', rest, ''];
  return { path: path.trim(), description: description.trim(), status: expired ? 'expired' : 'active' };
});

/**
 * Shows an edit conflict: the current content beside the typed content, and buttons to resolve it. `pairs` are
 * [label, current, typed] of the fields that differ.
 * @param {HTMLElement} container
 * @param {[label: string, current: string, typed: string][]} pairs
 * @param {{ discard: () => unknown, overwrite: () => unknown }} actions
 */
export function showConflict(container, pairs, { discard, overwrite }) {
  setChildren(container, h('div', { class: 'conflict', role: 'alert' },
    h('p', {}, t('changedMeanwhile')),
    h('table', {}, h('thead', {}, h('tr', {}, h('th', {}, ''), h('th', {}, t('currentContent')), h('th', {}, t('yourContent')))),
      h('tbody', {}, pairs.map(([label, current, typed]) =>
        h('tr', {}, h('th', {}, label), h('td', { dir: 'auto' }, current || '–'), h('td', { dir: 'auto' }, typed || '–'))))),
    h('div', { class: 'buttons' },
      h('button', { type: 'button', onclick: discard }, t('discardMine')),
      h('button', { type: 'button', class: 'danger', onclick: overwrite }, t('overwrite')))));
  container.scrollIntoView({ block: 'nearest' });
}
