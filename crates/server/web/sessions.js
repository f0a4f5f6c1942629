// The sessions: all that are known, and one of them with its timeline.

/** @import { SessionLine } from './api-types.js' */
/** @import { View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { request, setProject } from './api.js';
import { ActivityList, coalesce } from './activity.js';
import { bindSession, unbindSession } from './binding.js';
import { h, setChildren, rerender, attempt } from './dom.js';
import { Directory, sessionLink, setServerTime, timeAgo } from './names.js';
import { t, formatTime, formatNumber } from './words.js';

/** @returns {View} */
export function sessionsView() {
  const directory = new Directory();
  const body = h('div', { class: 'sessions-body' }, h('p', { class: 'empty' }, t('loading')));
  const element = h('div', { class: 'view sessions-view' }, body);
  /** The titles of focused nodes. @type {Map<string, string>} */
  const titles = new Map();
  /** @type {ActivityList | null} */
  let timeline = null;
  /** @type {string | null} */
  let shown = null;
  let query = '';
  let onlyLive = false;

  async function load() {
    const isLoaded = await attempt(async () => {
      await directory.load();
      setServerTime((await request('GET /now', {})).at);
      await loadTitles();
      return true;
    });
    if (isLoaded) rerender(body, () => (shown ? renderSession(shown) : renderList()));
  }

  /** Fetches the titles of the nodes that sessions are focused on. */
  async function loadTitles() {
    /** @type {Map<string, { workspaceId: string, project: string, ids: Set<string> }>} */
    const groups = new Map();
    for (const { workspaceId, project, focusedNodeId } of directory.sessions.values()) {
      if (!workspaceId || !project || !focusedNodeId) continue;
      const key = `${workspaceId} ${project}`;
      const group = groups.get(key) || { workspaceId, project, ids: new Set() };
      groups.set(key, group);
      group.ids.add(focusedNodeId);
    }
    await Promise.all([...groups.values()].map(async ({ workspaceId, project, ids }) => {
      setProject(project);
      // A workspace that was deleted has no titles.
      const page = await request('GET /workspaces/{workspaceId}/nodes', { params: { workspaceId, ids: [...ids].join(',') } }).catch(() => null);
      for (const node of page ? page.nodes : []) titles.set(`${workspaceId} ${node.id}`, node.title);
    }));
  }

  /** @param {SessionLine} line */
  const focusTitle = (line) => titles.get(`${line.workspaceId} ${line.focusedNodeId}`) || line.focusedNodeId || '–';

  /** @param {SessionLine} line */
  const dot = (line) => [h('span', { class: `dot ${line.live ? 'on' : ''}` }), h('span', { class: 'sr-only' }, t(line.live ? 'activeSession' : 'inactiveSession'))];

  /** @param {SessionLine} line */
  const workspaceLink = (line) => (line.workspaceId
    ? h('a', { href: directory.link(line.workspaceId, line.project) }, h('bdi', {}, directory.workspace(line.workspaceId, line.project)?.name || line.workspaceId))
    : h('span', { class: 'meta' }, t('notBound')));

  /** @param {SessionLine} line */
  const focusLink = (line) => (line.workspaceId && line.focusedNodeId
    ? h('a', { href: directory.link(line.workspaceId, line.project, line.focusedNodeId) }, h('bdi', {}, focusTitle(line))) : '–');

  /** @param {SessionLine} line */
  const bindingButton = (line) => (line.workspaceId
    ? h('button', { class: 'small', 'data-action': `unbind ${line.sessionId}`, onclick: () => unbindSession(line, load) }, t('unbind'))
    : h('button', { class: 'small', 'data-action': `bind ${line.sessionId}`, onclick: () => bindSession(line.sessionId, directory, load) }, t('bind')));

  /** @param {SessionLine} line */
  function matches(line) {
    const text = `${directory.sessionName(line.sessionId)} ${line.sessionId} ${directory.workspace(line.workspaceId || '', line.project)?.name || ''} ${focusTitle(line)}`;
    return (!onlyLive || line.live) && text.toLowerCase().includes(query.toLowerCase());
  }

  function renderList() {
    const lines = [...directory.sessions.values()];
    const search = h('input', { type: 'search', name: 'query', placeholder: t('searchSessions'), 'aria-label': t('searchSessions'), value: query, oninput: () => { query = search.value; renderTable(); } });
    const table = h('div', {});
    /** @type {Word[]} */
    const columns = ['session', 'boundTo', 'focus', 'lastActivity', 'prompts', 'bindSave'];
    const renderTable = () => setChildren(table, h('table', { class: 'sessions stacked' },
      h('thead', {}, h('tr', {}, columns.map((key) => h('th', { scope: 'col' }, key === 'bindSave' ? h('span', { class: 'sr-only' }, t(key)) : t(key))))),
      h('tbody', {}, lines.filter(matches).map((line) => h('tr', { 'data-key': line.sessionId },
        h('th', { scope: 'row' }, h('a', { href: sessionLink(line.sessionId), title: line.sessionId }, dot(line), directory.sessionName(line.sessionId))),
        h('td', { 'data-label': t('boundTo') }, workspaceLink(line)),
        h('td', { 'data-label': t('focus') }, focusLink(line)),
        h('td', { 'data-label': t('lastActivity'), title: formatTime(line.aliveAt) }, timeAgo(line.aliveAt)),
        h('td', { 'data-label': t('prompts'), class: 'number' }, formatNumber(line.prompts)),
        h('td', {}, bindingButton(line)))))));
    renderTable();
    setChildren(body, h('h2', {}, t('sessions')), lines.length === 0
      ? h('div', { class: 'empty' }, h('p', {}, t('noSessionsYet')), h('p', { class: 'hint' }, t('installHint'), ' ', h('code', {}, 'tanmi install')))
      : [h('div', { class: 'filters' }, search, h('label', { class: 'check' },
        h('input', { type: 'checkbox', name: 'live', checked: onlyLive, onchange: (event) => { onlyLive = event.target.checked; renderTable(); } }), t('onlyLive'))), table]);
  }

  /** @param {string} id */
  function renderSession(id) {
    const back = h('p', {}, h('a', { href: '#/sessions' }, `← ${t('backToSessions')}`));
    const line = directory.sessions.get(id);
    if (!line) { setChildren(body, back, h('h2', {}, t('unknownSession', id))); return; }
    /** @type {[Word, Node | string][]} */
    const facts = [
      ['boundTo', workspaceLink(line)], ['focus', focusLink(line)], ['started', line.startedAt ? formatTime(line.startedAt) : '–'],
      ['lastActivity', `${formatTime(line.aliveAt)} (${timeAgo(line.aliveAt)})`], ['prompts', formatNumber(line.prompts)], ['sessionId', h('code', {}, id)],
    ];
    setChildren(body, back,
      h('div', { class: 'head' }, h('h2', {}, dot(line), directory.sessionName(id)), bindingButton(line)),
      h('dl', { class: 'session-facts' }, facts.map(([key, value]) => h('div', {}, h('dt', {}, t(key)), h('dd', {}, value)))),
      h('div', { class: 'section-head' }, h('h2', {}, t('timeline')), timeline?.count), timeline?.element);
  }

  /** @param {string | null} id */
  async function route(id) {
    shown = id;
    element.classList.toggle('one', Boolean(id));
    timeline = id ? new ActivityList(directory, t('timeline')) : null;
    await load();
    if (timeline && id && directory.sessions.has(id)) await timeline.setFilter({ sessionId: id });
  }

  const reload = coalesce(async () => { await load(); await timeline?.reload(); }, 150);
  return {
    element, route,
    onChange(change) { if (shown || ['bindings', 'ledger'].includes(change.kind)) reload(); },
    onGap: reload,
    focusSearch: () => /** @type {HTMLElement | null} */ (body.querySelector('[name=query]'))?.focus(),
  };
}
