// Helpers to build elements. Text is always inserted as text, never as markup.

/** h('button', {class: 'x', onclick: f, 'aria-label': 's'}, 'text', child, [children], null) */
export function h(name, attributes, ...children) {
  const element = name.startsWith('svg:')
    ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  appendChildren(element, children);
  return element;
}

function appendChildren(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) appendChildren(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function setChildren(element, ...children) {
  element.replaceChildren();
  appendChildren(element, children);
}

const ALLOWED_TAGS = new Set(['p', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'pre', 'ol', 'ul', 'li', 'table', 'thead', 'tr', 'td',
  'em', 'strong', 'del', 'a', 'span', 'div', 'code', 'br', 'hr']);

/** Builds elements from the tree that the server made of Markdown. Unknown tags and attributes are dropped. */
export function renderMarkdown(tree) {
  const build = (part) => {
    if (typeof part === 'string') return document.createTextNode(part);
    if (!Array.isArray(part) || !ALLOWED_TAGS.has(part[0])) return document.createTextNode('');
    const element = document.createElement(part[0]);
    for (const child of part.slice(1)) {
      if (typeof child === 'object' && !Array.isArray(child)) setAttributes(element, child);
      else element.append(build(child));
    }
    return element;
  };
  return h('div', { class: 'markdown', dir: 'auto' }, (tree || []).map(build));
}

function setAttributes(element, given) {
  if (element.tagName === 'A' && /^(https?:\/\/|mailto:)/i.test(given.href || '')) {
    element.setAttribute('href', given.href);
    element.setAttribute('rel', 'noopener noreferrer');
    element.setAttribute('target', '_blank');
  }
  if (given.title) element.setAttribute('title', String(given.title));
  if (given.start) element.setAttribute('start', String(given.start));
}

/** Renders again and keeps the focus, the selection and open `details` elements. */
export function rerender(root, render) {
  const focused = root.contains(document.activeElement) ? document.activeElement : null;
  const selector = focused ? selectorOf(focused) : null;
  const typed = focused && 'selectionStart' in focused ? [focused.value, focused.selectionStart, focused.selectionEnd] : null;
  const open = [...root.querySelectorAll('details[open][data-key]')].map((box) => box.dataset.key);
  render();
  for (const box of root.querySelectorAll('details[data-key]')) if (open.includes(box.dataset.key)) box.open = true;
  if (!focused || root.contains(document.activeElement)) return;
  const replacement = selector ? root.querySelector(selector) : null;
  if (replacement) {
    replacement.focus({ preventScroll: true });
    if (typed && replacement.value === typed[0]) { try { replacement.setSelectionRange(typed[1], typed[2]); } catch { /* not a text field */ } }
  } else {
    const heading = root.querySelector('h2');
    if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
  }
}

/** Returns a selector that finds the same element after a render. */
function selectorOf(element) {
  // `id` is not tried first: a form that is rendered again has new ids.
  for (const name of ['name', 'data-action', 'id', 'data-key']) {
    const value = element.getAttribute(name) || (name === 'data-key' && element.closest('[data-key]') && element.closest('[data-key]').dataset.key);
    if (value) return name === 'data-key' ? `[data-key="${CSS.escape(value)}"] ${element.tagName}, ${element.tagName}[data-key="${CSS.escape(value)}"]` : `[${name}="${CSS.escape(value)}"]`;
  }
  return null;
}

/** Runs `work` unless it is still running for this element, so that a second click does nothing. */
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

/** Shows a message for a few seconds. Screen readers announce it. */
export function toast(text, kind) {
  const place = document.getElementById('toast');
  place.className = kind || '';
  place.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { place.textContent = ''; }, 6000);
}

/** Runs `work` and shows an error, with its hint, as a toast. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    toast(error.hint ? `${error.message} — ${error.hint}` : error.message, 'bad');
    return undefined;
  }
}

/** Returns a function that calls `work` after `delay` ms without another call. */
export function debounce(work, delay) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), delay);
  };
}
