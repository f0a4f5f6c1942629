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
