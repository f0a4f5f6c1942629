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

let project = '';

/** The project whose workspace is shown: the same one may be in several, as clones or work trees. */
export function setProject(path) {
  project = path || '';
}

async function ask(method, path, { query, body, version } = {}) {
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
  if (response.status === 401) throw new Refused(401, { code: 'TOKEN_REQUIRED', message: t('closed') });
  if (!response.ok) throw new Refused(response.status, answer.error || {});
  return answer;
}

export const get = (path, query) => ask('GET', path, { query });
export const post = (path, body, query) => ask('POST', path, { body: body || {}, query });
export const put = (path, body) => ask('PUT', path, { body });
export const patch = (path, body, version, query) => ask('PATCH', path, { body, version, query });
export const remove = (path) => ask('DELETE', path);

export const enc = encodeURIComponent;
export const nodePath = (workspace, node) => `/workspaces/${enc(workspace)}/nodes/${enc(node)}`;

/**
 * Hears of changes for ever. `heard` gets each one; `lost` is called when some may have been missed; `live` gets 'on',
 * 'off', or 'closed' where the server does not let us in any more. A page that nobody sees does not listen: a browser has
 * six connections to a server for all of its pages.
 */
export function listen({ heard, lost, live }) {
  let source = null;
  let greeted = false;
  const open = () => {
    source = new EventSource(new URL('api/v1/changes', document.baseURI));
    source.addEventListener('hello', () => {
      // A second greeting is that of a server that does not know where we were.
      if (greeted) lost();
      greeted = true;
      live('on');
    });
    source.addEventListener('change', (event) => { live('on'); heard(JSON.parse(event.data)); });
    source.addEventListener('gap', () => { live('on'); lost(); });
    source.onerror = async () => {
      live('off');
      if (!source || source.readyState !== EventSource.CLOSED) return;
      close();
      // It does not come back by itself. Either we are not let in any more, or the server had no room for us.
      const refused = await get('/projects').then(() => null, (error) => error);
      if (refused && refused.status === 401) live('closed');
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
