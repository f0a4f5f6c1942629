// Names for people: sessions and workspaces by their ids, and times relative to the clock of the server.

/** @import { SessionLine, WorkspaceLine } from './api-types.js' */

import { request, enc } from './api.js';
import { language, t } from './words.js';

/** How far the clock of the server is ahead of the clock of the browser, in ms. */
let ahead = 0;

/** @param {number} serverTime */
export function setServerTime(serverTime) {
  ahead = serverTime - Date.now();
}

export const serverNow = () => Date.now() + ahead;

const locale = () => (language() === 'zh' ? 'zh-CN' : 'en');

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [['day', 86400000], ['hour', 3600000], ['minute', 60000], ['second', 1000]];

/** Returns how long ago a time was, such as `3 min. ago`. @param {number} at */
export function timeAgo(at) {
  const passed = Math.max(0, serverNow() - at);
  const [unit, size] = UNITS.find(([, size]) => passed >= size) || UNITS[3];
  return new Intl.RelativeTimeFormat(locale(), { style: 'short', numeric: 'auto' }).format(-Math.floor(passed / size), unit);
}

/** Returns how long something lasts since a time, such as `3 min`. @param {number} at */
export function duration(at) {
  const passed = Math.max(0, serverNow() - at);
  const [unit, size] = UNITS.find(([, size]) => passed >= size) || UNITS[3];
  return new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: 'short' }).format(Math.floor(passed / size));
}

/** Formats by language and options, because building one takes long. @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/** @param {number} at @param {Intl.DateTimeFormatOptions} options */
function formatDate(at, options) {
  const key = `${locale()} ${JSON.stringify(options)}`;
  const format = formats.get(key) || new Intl.DateTimeFormat(locale(), { hourCycle: 'h23', ...options });
  formats.set(key, format);
  return format.format(at);
}

/** Returns the time of day. @param {number} at */
export const clockTime = (at) => formatDate(at, { hour: '2-digit', minute: '2-digit' });

/** Returns the local day of a time, which is equal for times of the same day. @param {number} at */
export const dayKey = (at) => new Date(at).toDateString();

/** Returns `Today`, `Yesterday` or the date. @param {number} at */
export function dayName(at) {
  if (dayKey(at) === dayKey(serverNow())) return t('today');
  if (dayKey(at) === dayKey(serverNow() - 86400000)) return t('yesterday');
  return formatDate(at, { weekday: 'short', month: 'short', day: 'numeric' });
}

/** Returns the time of day, with the date unless it is today. @param {number} at */
const shortTime = (at) => (dayKey(at) === dayKey(serverNow()) ? clockTime(at)
  : formatDate(at, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }));

/** The holder of a node that a person claimed. */
const PERSON = '@person';

/** Returns the end of an id that tells it apart. @param {string} id */
export const shortId = (id) => (id.length > 10 ? `…${id.slice(-5)}` : id);

/** Returns a person of the team with the machine. @param {string} person @param {string} [machine] */
export const personName = (person, machine) => (machine ? `${person} (${machine})` : person);

/** Sessions and workspaces by their ids. */
export class Directory {
  constructor() {
    /** @type {Map<string, SessionLine>} */
    this.sessions = new Map();
    /** @type {WorkspaceLine[]} */
    this.workspaces = [];
  }

  async load() {
    const [sessions, workspaces] = await Promise.all([
      request('GET /sessions', { params: { limit: 1000 } }),
      request('GET /workspaces', { params: { all: true, limit: 10000 } }),
    ]);
    this.sessions = new Map(sessions.sessions.map((line) => [line.sessionId, line]));
    this.workspaces = workspaces.workspaces;
  }

  /** Returns the client of a session. @param {string} id @param {string} [platform] */
  client(id, platform) {
    const line = this.sessions.get(id);
    return line?.client || line?.platform || platform || t('unknownClient');
  }

  /** Returns the name of a session: its client, when it started, and the end of its id. @param {string} id @param {string} [platform] */
  sessionName(id, platform) {
    if (id === PERSON) return t('you');
    const line = this.sessions.get(id);
    const since = line?.startedAt || line?.boundAt || line?.aliveAt;
    return [this.client(id, platform), since ? shortTime(since) : null, shortId(id)].filter(Boolean).join(' · ');
  }

  /** @param {string} id @param {string} [project] */
  workspace(id, project) {
    return this.workspaces.find((line) => line.workspaceId === id && (!project || line.project === project));
  }

  /** Returns the link to a workspace or a node. @param {string} workspace @param {string} [project] @param {string} [node] */
  link(workspace, project, node) {
    const folder = project || this.workspace(workspace)?.project;
    return `#/work/${enc(workspace)}${node ? `/${enc(node)}` : ''}${folder ? `?project=${enc(folder)}` : ''}`;
  }
}

/** @param {string} id */
export const sessionLink = (id) => `#/sessions/${enc(id)}`;

/** Returns the last part of the path of a project. @param {string} project */
export const projectName = (project) => project.split(/[\\/]/).filter(Boolean).pop() || project;
