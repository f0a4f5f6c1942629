// A dialog that finds something by typing: the command palette, and the choice of a node.

/** @import { Icon } from './icons.js' */
/** @typedef {{ label: string, hint?: string, icon: Icon, run: () => unknown }} Choice */

import { attempt, h, setChildren } from './dom.js';
import { icon } from './icons.js';
import { t } from './words.js';

const SHOWN = 50;

/** Returns whether a choice contains all words of what was typed. @param {Choice} choice @param {string} typed */
export function isFound(choice, typed) {
  const text = `${choice.label} ${choice.hint || ''}`.toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/**
 * Opens the dialog. `search` returns the choices for what was typed; an earlier search that ends later is ignored.
 * @param {string} title
 * @param {(typed: string) => Promise<Choice[]>} search
 */
export function openPalette(title, search) {
  if (document.querySelector('dialog.palette')) return;
  const list = h('ul', { role: 'listbox', id: 'palette-list', 'aria-label': title });
  const input = h('input', {
    type: 'search', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-autocomplete': 'list',
    'aria-label': title, placeholder: title, autofocus: true, autocomplete: 'off', dir: 'auto',
  });
  const status = h('p', { class: 'meta', role: 'status' });
  /** @type {HTMLDialogElement} */
  const dialog = h('dialog', { class: 'palette', 'aria-label': title, onclose: () => dialog.remove() }, input, list, status);
  /** @type {Choice[]} */
  let choices = [];
  let active = 0;
  let requestCount = 0;

  async function find() {
    const requestId = requestCount += 1;
    const found = await attempt(() => search(input.value.trim()));
    if (!found || requestId !== requestCount) return;
    choices = found.slice(0, SHOWN);
    active = 0;
    render();
  }

  function render() {
    setChildren(list, choices.map((choice, at) => h('li', {
      role: 'option', id: `palette-${at}`, 'aria-selected': String(at === active),
      onclick: () => pick(at), onmousemove: () => { if (at !== active) select(at); },
    }, icon(choice.icon), h('bdi', { class: 'label' }, choice.label), choice.hint ? h('bdi', { class: 'hint' }, choice.hint) : null)));
    status.textContent = choices.length ? '' : t('nothingFound');
    select(active);
  }

  /** @param {number} at */
  function select(at) {
    active = Math.max(0, Math.min(choices.length - 1, at));
    [...list.children].forEach((item, n) => item.setAttribute('aria-selected', String(n === active)));
    list.children[active]?.scrollIntoView({ block: 'nearest' });
    if (choices.length) input.setAttribute('aria-activedescendant', `palette-${active}`);
    else input.removeAttribute('aria-activedescendant');
  }

  /** @param {number} at */
  function pick(at) {
    const choice = choices[at];
    if (!choice) return;
    dialog.close();
    attempt(async () => choice.run());
  }

  input.addEventListener('input', find);
  input.addEventListener('keydown', (event) => {
    /** @type {Record<string, () => void>} */
    const keys = { ArrowDown: () => select(active + 1), ArrowUp: () => select(active - 1), Enter: () => pick(active) };
    if (event.isComposing || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  find();
}
