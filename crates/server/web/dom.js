// Building elements. Text goes in as text and nowhere as markup; the policy of the server forbids the rest.

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
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) put(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function show(element, ...children) {
  element.replaceChildren();
  put(element, children);
}

const PLAIN = new Set(['p', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'pre', 'ol', 'ul', 'li', 'table', 'thead', 'tr', 'td',
  'em', 'strong', 'del', 'a', 'span', 'div', 'code', 'br', 'hr']);

/** A tree of elements as the server made it of Markdown. Names and attributes that are not known are dropped. */
export function rendered(tree) {
  const build = (part) => {
    if (typeof part === 'string') return document.createTextNode(part);
    if (!Array.isArray(part) || !PLAIN.has(part[0])) return document.createTextNode('');
    const element = document.createElement(part[0]);
    for (const child of part.slice(1)) {
      if (typeof child === 'object' && !Array.isArray(child)) attributes(element, child);
      else element.append(build(child));
    }
    return element;
  };
  return h('div', { class: 'markdown', dir: 'auto' }, (tree || []).map(build));
}

function attributes(element, given) {
  if (element.tagName === 'A' && /^(https?:\/\/|mailto:)/i.test(given.href || '')) {
    element.setAttribute('href', given.href);
    element.setAttribute('rel', 'noopener noreferrer');
    element.setAttribute('target', '_blank');
  }
  if (given.title) element.setAttribute('title', String(given.title));
  if (given.start) element.setAttribute('start', String(given.start));
}

/** Draws anew without taking the focus, the caret or open boxes away from whoever is at work there. */
export function repaint(root, draw) {
  const focused = root.contains(document.activeElement) ? document.activeElement : null;
  const key = focused ? keyOf(focused) : null;
  const typed = focused && 'selectionStart' in focused ? [focused.value, focused.selectionStart, focused.selectionEnd] : null;
  const open = [...root.querySelectorAll('details[open][data-key]')].map((box) => box.dataset.key);
  draw();
  for (const box of root.querySelectorAll('details[data-key]')) if (open.includes(box.dataset.key)) box.open = true;
  if (!focused || root.contains(document.activeElement)) return;
  const again = key ? root.querySelector(key) : null;
  if (again) {
    again.focus({ preventScroll: true });
    if (typed && again.value === typed[0]) { try { again.setSelectionRange(typed[1], typed[2]); } catch { /* not a text */ } }
  } else {
    const heading = root.querySelector('h2');
    if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
  }
}

function keyOf(element) {
  // Not by `id` first: a form that is drawn anew has new ones.
  for (const name of ['name', 'data-action', 'id', 'data-key']) {
    const value = element.getAttribute(name) || (name === 'data-key' && element.closest('[data-key]') && element.closest('[data-key]').dataset.key);
    if (value) return name === 'data-key' ? `[data-key="${CSS.escape(value)}"] ${element.tagName}, ${element.tagName}[data-key="${CSS.escape(value)}"]` : `[${name}="${CSS.escape(value)}"]`;
  }
  return null;
}

/** Runs it once at a time: a second click while the first is under way does nothing. */
export async function once(element, work) {
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

/** A line for a moment, read aloud too. */
export function toast(text, kind) {
  const place = document.getElementById('toast');
  place.className = kind || '';
  place.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { place.textContent = ''; }, 6000);
}

/** Runs what may fail; what went wrong is shown with what to do. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    toast(error.hint ? `${error.message} — ${error.hint}` : error.message, 'bad');
    return undefined;
  }
}

/** Calls `work` once things have been quiet for a moment. */
export function calmly(work, pause) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), pause);
  };
}
