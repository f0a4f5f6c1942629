// Requests to the server and the change feed. Paths are relative, because the cookie is valid only below the path of
// this page.

import { language, t } from './words.js';

export class ApiError extends Error {
  constructor(status, error) {
    super(error.message || t('failed'));
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.details = error.details;
  }
}

let project = '';

/** Sets the project of the shown workspace. Clones and work trees can hold the same workspace id in several projects. */
export function setProject(path) {
  project = path || '';
}

async function request(method, path, { query, body, version } = {}) {
  const url = new URL(`api/v1${path}`, document.baseURI);
  if (project && path.startsWith('/workspaces/')) url.searchParams.set('project', project);
  for (const [key, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== '' && value !== false) url.searchParams.set(key, value);
  }
  const headers = { 'Accept-Language': language() };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (version) headers['If-Match'] = `"${version}"`;
  const response = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) throw new ApiError(401, { code: 'TOKEN_REQUIRED', message: t('closed') });
  if (!response.ok) throw new ApiError(response.status, answer.error || {});
  return answer;
}

export const get = (path, query) => request('GET', path, { query });
export const post = (path, body, query) => request('POST', path, { body: body || {}, query });
export const put = (path, body) => request('PUT', path, { body });
export const patch = (path, body, version, query) => request('PATCH', path, { body, version, query });
export const remove = (path, query) => request('DELETE', path, { query });

export const enc = encodeURIComponent;
export const nodePath = (workspace, node) => `/workspaces/${enc(workspace)}/nodes/${enc(node)}`;

/**
 * Subscribes to the change feed. `onChange` gets each change. `onGap` is called when changes may have been missed.
 * `onConnection` gets 'on', 'off', or 'closed' if the server no longer accepts this page. A hidden page closes its
 * connection, because a browser opens at most six connections to one server.
 */
export function subscribe({ onChange, onGap, onConnection }) {
  let source = null;
  let wasConnected = false;
  const open = () => {
    source = new EventSource(new URL('api/v1/changes', document.baseURI));
    source.addEventListener('hello', () => {
      // A second 'hello' comes from a server that does not know the last change this page received.
      if (wasConnected) onGap();
      wasConnected = true;
      onConnection('on');
    });
    source.addEventListener('change', (event) => { onConnection('on'); onChange(JSON.parse(event.data)); });
    source.addEventListener('gap', () => { onConnection('on'); onGap(); });
    source.onerror = async () => {
      onConnection('off');
      if (!source || source.readyState !== EventSource.CLOSED) return;
      close();
      // The browser does not reconnect by itself. Either the page is no longer accepted, or the server has too many
      // subscribers.
      const error = await get('/projects').then(() => null, (reason) => reason);
      if (error && error.status === 401) onConnection('closed');
      else setTimeout(() => { if (!source && document.visibilityState !== 'hidden') open(); }, 5000);
    };
  };
  const close = () => { if (source) source.close(); source = null; };
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') close();
    else if (!source) open();
  });
  window.addEventListener('pagehide', close);
  open();
}
