// Fields with their labels, and questions in a dialog. What happens with the answers is not decided here.

import { h, show, attempt } from './dom.js';
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
  const form = h('form', { method: 'dialog' },
    h('h2', {}, title), text ? h('p', { dir: 'auto' }, text) : null, (fields || []).map(field),
    h('div', { class: 'buttons' },
      h('button', { type: 'button', onclick: () => dialog.close() }, t('cancelEdit')),
      h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, yes || t('save'))));
  const dialog = h('dialog', { 'aria-label': title, onclose: () => dialog.remove() }, form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const worked = await attempt(async () => { await done(values(form)); return true; });
    if (worked) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export const lines = (text) => (text || '').split('\n').map((line) => line.trim()).filter((line) => line);

export function docsOf(text) {
  return lines(text).map((line) => {
    const [, expired, rest] = line.match(/^(\[expired\]\s*)?(.*)$/);
    const at = rest.search(/[:：]/);
    const [path, description] = at < 0 ? [rest, ''] : [rest.slice(0, at), rest.slice(at + 1)];
    return { path: path.trim(), description: description.trim(), status: expired ? 'expired' : 'active' };
  });
}

export function docsAsText(docs) {
  return (docs || []).map((doc) => `${doc.status === 'expired' ? '[expired] ' : ''}${doc.path}${doc.description ? `: ${doc.description}` : ''}`).join('\n');
}

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
