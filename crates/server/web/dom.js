// Helpers to build elements. Text is always inserted as text, never as markup.

/** @import { Markdown, MarkdownAttributes, MarkdownPart } from './api-types.js' */
/** @import { Attributes, Child, ElementOf } from './page-types.js' */

import { errorText } from './api.js';

/**
 * Builds an element: h('button', {class: 'x', onclick: f, 'aria-label': 's'}, 'text', child, [children], null)
 * @template {keyof HTMLElementTagNameMap | `svg:${string}`} N
 * @param {N} name
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {ElementOf<N>}
 */
export function h(name, attributes, ...children) {
  const element = name.startsWith('svg:')
    ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(key.slice(2), value);
    else if (key === 'value') /** @type {HTMLInputElement} */ (element).value = String(value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  appendChildren(element, children);
  return /** @type {ElementOf<N>} */ (element);
}

/** @param {Element} element @param {Child[]} children */
function appendChildren(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) appendChildren(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {Element} element @param {Child[]} children */
export function setChildren(element, ...children) {
  element.replaceChildren();
  appendChildren(element, children);
}

const ALLOWED_TAGS = new Set(['p', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'pre', 'ol', 'ul', 'li', 'table', 'thead', 'tr', 'td',
  'em', 'strong', 'del', 'a', 'span', 'div', 'code', 'br', 'hr']);

/**
 * Builds elements from the tree that the server made of Markdown. Unknown tags and attributes are dropped.
 * @param {Markdown | undefined} tree
 */
export function renderMarkdown(tree) {
  /** @param {MarkdownPart} part @returns {Node} */
  const build = (part) => {
    if (typeof part === 'string') return document.createTextNode(part);
    const tag = Array.isArray(part) ? part[0] : null;
    if (!Array.isArray(part) || typeof tag !== 'string' || !ALLOWED_TAGS.has(tag)) return document.createTextNode('');
    const element = document.createElement(tag);
    for (const child of part.slice(1)) {
      if (typeof child === 'object' && !Array.isArray(child)) setAttributes(element, child);
      else element.append(build(child));
    }
    return element;
  };
  return h('div', { class: 'markdown', dir: 'auto' }, (tree || []).map(build));
}

/** @param {HTMLElement} element @param {MarkdownAttributes} given */
function setAttributes(element, given) {
  if (element.tagName === 'A' && given.href && /^(https?:\/\/|mailto:)/i.test(given.href)) {
    element.setAttribute('href', given.href);
    element.setAttribute('rel', 'noopener noreferrer');
    element.setAttribute('target', '_blank');
  }
  if (given.title) element.setAttribute('title', String(given.title));
  if (given.start) element.setAttribute('start', String(given.start));
}

/**
 * Renders again and keeps the focus, the selection and open `details` elements.
 * @param {HTMLElement} root
 * @param {() => void} render
 */
export function rerender(root, render) {
  const focused = root.contains(document.activeElement) ? document.activeElement : null;
  const selector = focused ? selectorOf(focused) : null;
  const typed = isTextField(focused) ? { value: focused.value, start: focused.selectionStart, end: focused.selectionEnd } : null;
  const open = [...detailsIn(root, '[open]')].map((box) => box.dataset.key);
  render();
  for (const box of detailsIn(root, '')) if (open.includes(box.dataset.key)) box.open = true;
  if (!focused || root.contains(document.activeElement)) return;
  const replacement = selector ? root.querySelector(selector) : null;
  if (replacement instanceof HTMLElement) {
    replacement.focus({ preventScroll: true });
    if (typed && isTextField(replacement) && replacement.value === typed.value) {
      try { replacement.setSelectionRange(typed.start, typed.end); } catch { /* not a text field */ }
    }
  } else {
    const heading = root.querySelector('h2');
    if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
  }
}

/** @type {(element: Element | null) => element is HTMLInputElement | HTMLTextAreaElement} */
const isTextField = (element) => element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;

/** @param {HTMLElement} root @param {string} condition @returns {NodeListOf<HTMLDetailsElement>} */
const detailsIn = (root, condition) => root.querySelectorAll(`details${condition}[data-key]`);

/** Returns a selector that finds the same element after a render. @param {Element} element */
function selectorOf(element) {
  // `id` is not tried first: a form that is rendered again has new ids.
  for (const name of ['name', 'data-action', 'id', 'data-key']) {
    const owner = name === 'data-key' ? element.closest('[data-key]') : element;
    const value = owner && owner.getAttribute(name);
    if (value) return name === 'data-key' ? `[data-key="${CSS.escape(value)}"] ${element.tagName}, ${element.tagName}[data-key="${CSS.escape(value)}"]` : `[${name}="${CSS.escape(value)}"]`;
  }
  return null;
}

/**
 * Runs `work` unless it is still running for this element, so that a second click does nothing.
 * @param {HTMLElement} element
 * @param {() => Promise<unknown>} work
 */
export async function runExclusive(element, work) {
  if (element.dataset.busy) return undefined;
  element.dataset.busy = 'true';
  element.setAttribute('aria-busy', 'true');
  try {
    return await attempt(work);
  } finally {
    delete element.dataset.busy;
    element.removeAttribute('aria-busy');
  }
}

let toastTimer = 0;

/** Returns an element of index.html. @param {string} id @returns {HTMLElement} */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Shows a message for a few seconds, with a button if there is an action. Screen readers announce it.
 * @param {string} text
 * @param {'bad'} [kind]
 * @param {{ label: string, run: () => Promise<unknown> }} [action]
 */
export function toast(text, kind, action) {
  const place = byId('toast');
  place.className = kind || '';
  place.textContent = text;
  if (action) {
    const run = () => { place.textContent = ''; attempt(action.run); };
    place.append(' ', h('button', { class: 'small', 'data-action': 'undo', onclick: run }, action.label));
  }
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { place.textContent = ''; }, 6000);
}

/**
 * Runs `work` and shows an error, with its hint, as a toast.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T | undefined>}
 */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    toast(errorText(error), 'bad');
    return undefined;
  }
}

/**
 * Returns a function that calls `work` after `delay` ms without another call.
 * @param {() => unknown} work
 * @param {number} delay
 */
export function debounce(work, delay) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, delay);
  };
}
