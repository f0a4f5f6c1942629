// Asking the server, and hearing of changes. Paths are relative: the cookie counts below this page's own path only.

import { language, t } from './words.js';

export class Refused extends Error {
  constructor(status, error) {
    super(error.message || t('failed'));
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.details = error.details;
  }
}

async function ask(method, path, { query, body, version, signal } = {}) {
  const url = new URL(`api/v1${path}`, document.baseURI);
  for (const [key, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== '' && value !== false) url.searchParams.set(key, value);
  }
  const headers = { 'Accept-Language': language() };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (version) headers['If-Match'] = `"${version}"`;
  const response = await fetch(url, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) throw new Refused(401, { code: 'TOKEN_REQUIRED', message: t('closed') });
  if (!response.ok) throw new Refused(response.status, answer.error || {});
  return answer;
}

export const get = (path, query, signal) => ask('GET', path, { query, signal });
export const post = (path, body, query) => ask('POST', path, { body: body || {}, query });
export const put = (path, body) => ask('PUT', path, { body });
export const patch = (path, body, version, query) => ask('PATCH', path, { body, version, query });
export const remove = (path) => ask('DELETE', path);

export const enc = encodeURIComponent;
export const nodePath = (workspace, node) => `/workspaces/${enc(workspace)}/nodes/${enc(node)}`;

/** Hears of changes for ever. `heard` gets each one; `lost` is called when some may have been missed. */
export function listen({ heard, lost, live }) {
  const source = new EventSource(new URL('api/v1/changes', document.baseURI));
  let greeted = false;
  source.addEventListener('hello', () => {
    // A second greeting is that of a server that does not know where we were.
    if (greeted) lost();
    greeted = true;
    live(true);
  });
  source.addEventListener('change', (event) => { live(true); heard(JSON.parse(event.data)); });
  source.addEventListener('gap', () => { live(true); lost(); });
  source.onopen = () => live(true);
  source.onerror = () => live(false);
  return source;
}
