// Fields with their labels, and questions in a dialog. What happens with the answers is not decided here.

import { h, show } from './dom.js';
import { t } from './words.js';

let count = 0;

/** {name, label, value, rows, options: [[value, label]], required, help, type, autofocus} → an element with its label */
export function field(given) {
  const id = `field-${count += 1}`;
  const shared = {
    id, name: given.name, required: given.required, autofocus: given.autofocus,
    'aria-describedby': given.help ? `${id}-help` : null,
  };
  let input;
  if (given.options) {
    input = h('select', shared, given.options.map(([value, label]) => h('option', { value, selected: value === given.value }, label)));
  } else if (given.rows) {
    input = h('textarea', { ...shared, rows: given.rows, dir: 'auto' });
    input.value = given.value || '';
  } else {
    input = h('input', { ...shared, type: given.type || 'text', dir: 'auto', step: given.step, min: given.min, max: given.max, value: given.value || '' });
  }
  return h('div', { class: 'field' }, h('label', { for: id }, given.label), input,
    given.help ? h('small', { id: `${id}-help` }, given.help) : null);
}

export function values(form) {
  return Object.fromEntries(new FormData(form).entries());
}

/** Asks in a dialog. Closes when `done` has worked; what the person typed stays where it has not. */
export function ask({ title, text, fields, yes, danger, done }) {
  const problem = h('p', { class: 'bad', role: 'alert' });
  const form = h('form', { method: 'dialog' },
    h('h2', {}, title), text ? h('p', { dir: 'auto' }, text) : null, (fields || []).map(field), problem,
    h('div', { class: 'buttons' },
      h('button', { type: 'button', onclick: () => dialog.close() }, t('cancelEdit')),
      h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, yes || t('save'))));
  const dialog = h('dialog', { 'aria-label': title, onclose: () => dialog.remove() }, form);
  let busy = false;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    try {
      await done(values(form));
      dialog.close();
    } catch (error) {
      // In the dialog: nothing behind it can be read now.
      problem.textContent = error.hint ? `${error.message} — ${error.hint}` : error.message;
    } finally {
      busy = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** What a text area makes of a text: it knows one kind of line end. */
export const asTyped = (text) => (text || '').replace(/\r\n?/g, '\n');

// A list is edited with one entry in a line. Entries that nobody touched stay what they are, byte for byte.
const inLine = (text) => asTyped(text).replace(/\n/g, '⏎');
const outOfLine = (line) => line.replace(/⏎/g, '\n');

function entries(text, was, show, read) {
  const known = new Map((was || []).map((entry) => [show(entry), entry]));
  const typed = asTyped(text).split('\n').filter((line) => line.trim());
  return typed.map((line) => (known.has(line) ? known.get(line) : read(outOfLine(line.trim()))));
}

export const rulesAsText = (rules) => (rules || []).map(inLine).join('\n');
export const rulesOf = (text, was) => entries(text, was, inLine, (line) => line);

const docInLine = (doc) => `${doc.status === 'expired' ? '[expired] ' : ''}${inLine(doc.path)}${doc.description ? `: ${inLine(doc.description)}` : ''}`;

export const docsAsText = (docs) => (docs || []).map(docInLine).join('\n');
export const docsOf = (text, was) => entries(text, was, docInLine, (line) => {
  const [, expired, rest] = line.match(/^(\[expired\]\s*)?([^]*)$/);
  // `https://…` and `C:\…` have a colon too; the one that counts has a space behind it.
  const [, path, description] = rest.match(/^([^]*?)(?::\s+|：)([^]*)$/) || [null, rest, ''];
  return { path: path.trim(), description: description.trim(), status: expired ? 'expired' : 'active' };
});

/**
 * An edit that somebody else got ahead of: what it is now beside what was typed. Nothing is lost on either side.
 * `pairs` are [label, theirs, yours] of what differs.
 */
export function conflict(place, pairs, { drop, keep }) {
  show(place, h('div', { class: 'conflict', role: 'alert' },
    h('p', {}, t('changedMeanwhile')),
    h('table', {}, h('thead', {}, h('tr', {}, h('th', {}, ''), h('th', {}, t('theirs')), h('th', {}, t('yours')))),
      h('tbody', {}, pairs.map(([label, theirs, yours]) =>
        h('tr', {}, h('th', {}, label), h('td', { dir: 'auto' }, theirs || '–'), h('td', { dir: 'auto' }, yours || '–'))))),
    h('div', { class: 'buttons' },
      h('button', { type: 'button', onclick: drop }, t('takeTheirs')),
      h('button', { type: 'button', class: 'danger', onclick: keep }, t('keepMine')))));
  place.scrollIntoView({ block: 'nearest' });
}
