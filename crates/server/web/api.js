// Requests to the server and the change feed. Paths are relative, because the cookie is valid only below the path of
// this page.

/** @import { Change, ErrorBody } from './api-types.js' */
/** @import { Connection, RequestOptions, Routes } from './page-types.js' */

import { language, t } from './words.js';

export class ApiError extends Error {
  /** @param {number} status @param {Partial<ErrorBody>} error */
  constructor(status, error) {
    super(error.message || t('failed'));
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.details = error.details;
  }
}

/**
 * Returns whether the server answered with this error code.
 * @param {unknown} error
 * @param {string} code
 * @returns {error is ApiError}
 */
export function hasCode(error, code) {
  return error instanceof ApiError && error.code === code;
}

/** Returns whether the server answered with this HTTP status. @param {unknown} error @param {number} status */
export const hasStatus = (error, status) => error instanceof ApiError && error.status === status;

/** Returns the message of an error with its hint. @param {unknown} error */
export function errorText(error) {
  if (error instanceof ApiError && error.hint) return `${error.message} — ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

let project = '';

/**
 * Sets the project of the shown workspace. Clones and work trees can hold the same workspace id in several projects.
 * @param {string} path
 */
export function setProject(path) {
  project = path || '';
}

/** Asks the user what to do with the secrets in a text; `null` to save nothing. @type {(error: ApiError) => Promise<'mask' | 'keep' | null>} */
let askAboutSecrets = async () => null;

/** @param {typeof askAboutSecrets} ask */
export function setSecretsQuestion(ask) {
  askAboutSecrets = ask;
}

/**
 * Sends a request. If a text of a workspace contains a secret, the user decides whether it is masked.
 * @template {keyof Routes} R
 * @param {R} route
 * @param {RequestOptions<R>} options
 * @returns {Promise<Routes[R]['response']>}
 */
export async function request(route, options) {
  const writesTexts = 'body' in options && route.includes(' /workspaces') && !/\/(masking|restore|move)$/.test(route);
  if (!writesTexts) return send(route, options);
  try {
    return await send(route, options, 'ask');
  } catch (error) {
    const choice = hasCode(error, 'SECRETS_FOUND') ? await askAboutSecrets(error) : null;
    if (!choice) throw error;
    return send(route, options, choice);
  }
}

/**
 * Sends a request. Parameters that are not in the path go to the query, except empty ones.
 * @template {keyof Routes} R
 * @param {R} route
 * @param {RequestOptions<R>} options
 * @param {'ask' | 'mask' | 'keep'} [secrets]
 * @returns {Promise<Routes[R]['response']>}
 */
async function send(route, options, secrets) {
  const { params, body, version } = /** @type {{ params?: Record<string, any>, body?: object, version?: string }} */ (options);
  const [method, template] = route.split(' ');
  const query = { ...params };
  const path = template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = query[name];
    delete query[name];
    return enc(value);
  });
  const url = new URL(`api/v1${path}`, document.baseURI);
  if (project && path.startsWith('/workspaces/')) url.searchParams.set('project', project);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '' && value !== false) url.searchParams.set(key, value);
  }
  if (secrets) url.searchParams.set('secrets', secrets);
  /** @type {Record<string, string>} */
  const headers = { 'Accept-Language': language() };
  const sent = body || (method === 'POST' ? {} : undefined);
  if (sent) headers['Content-Type'] = 'application/json';
  if (version) headers['If-Match'] = `"${version}"`;
  const response = await fetch(url, { method, headers, body: sent && JSON.stringify(sent) });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) throw new ApiError(401, { code: 'TOKEN_REQUIRED', message: t('closed') });
  if (!response.ok) throw new ApiError(response.status, answer.error || {});
  return answer;
}

export const enc = encodeURIComponent;

/**
 * Subscribes to the change feed. `onChange` gets each change. `onGap` is called when changes may have been missed.
 * A hidden page closes its connection, because a browser opens at most six connections to one server.
 * @param {{ onChange: (change: Change) => void, onGap: () => void, onConnection: (now: Connection) => void }} listener
 */
export function subscribe({ onChange, onGap, onConnection }) {
  /** @type {EventSource | null} */
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
      const error = await request('GET /projects', {}).then(() => null, (reason) => reason);
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
