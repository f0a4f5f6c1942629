// The home view: what waits for the user, what runs, the workspaces of all projects, and the activity feed.

/** @import { ActivityFilter, NodeState, Now, Present, SessionLine, WorkspaceNow } from './api-types.js' */
/** @import { Child, View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { request, setProject } from './api.js';
import { ActivityList, coalesce } from './activity.js';
import { bindSession } from './binding.js';
import { h, setChildren, rerender, attempt } from './dom.js';
import { Directory, duration, personName, projectName, sessionLink, setServerTime, timeAgo } from './names.js';
import { SYMBOLS } from './tree.js';
import { t, formatNumber, statusText } from './words.js';

/** The choices of the filter: kinds, separated by commas, and their name. @type {[string, Word][]} */
const KINDS = [['step', 'kindStep'], ['log', 'kindLog'], ['problem,cleared', 'kindProblem'], ['created', 'kindCreated'], ['rule', 'kindRule'], ['fact', 'kindFact'], ['session', 'kindSession'], ['injection', 'kindInjection']];

/** A workspace with its project. @typedef {WorkspaceNow & { project: string, team?: Present[] }} Place */

/** @returns {View} */
export function nowView() {
  const directory = new Directory();
  const feed = new ActivityList(directory, t('activity'));
  const waiting = h('section', { class: 'now-waiting', 'aria-label': t('needsYou') }, h('p', { class: 'empty' }, t('loading')));
  const projects = h('section', { class: 'now-projects', 'aria-label': t('projects') });
  const filters = h('form', { class: 'feed-filters' });
  const element = h('div', { class: 'now' }, waiting, projects,
    h('section', { class: 'now-activity', 'aria-label': t('activity') }, h('div', { class: 'section-head' }, h('h2', {}, t('activity')), feed.count), filters, feed.element));
  /** @type {Now | null} */
  let shown = null;

  async function load() {
    const answer = await attempt(async () => { await directory.load(); return request('GET /now', {}); });
    if (!answer) return;
    shown = answer;
    setServerTime(answer.at);
    render();
    renderFilters();
  }

  function render() {
    const answer = shown;
    if (!answer) return;
    const places = answer.projects.flatMap(({ project, team, workspaces }) => workspaces.map((workspace) => ({ ...workspace, project, team })));
    rerender(waiting, () => setChildren(waiting, waitingPart(places, answer), runningPart(places)));
    rerender(projects, () => setChildren(projects, answer.projects.map(({ project }) => projectPart(project, places.filter((place) => place.project === project))),
      places.length ? completedPart(places) : emptyPart(), h('div', {}, sessionsPart(answer.sessions))));
  }

  /** @param {string} title @param {number} count */
  const head = (title, count) => h('div', { class: 'section-head' }, h('h2', {}, title), count ? h('span', { class: 'meta' }, formatNumber(count)) : null);

  /** @param {string} text @param {string} command */
  const hint = (text, command) => h('p', { class: 'hint' }, text, ' ', h('code', {}, command));

  /**
   * @param {'wait' | 'bad' | 'run'} kind
   * @param {{ key: string, title: Child, side: Child, lines: Child[] }} parts
   */
  const card = (kind, { key, title, side, lines }) => h('article', { class: `card ${kind}`, 'data-key': key },
    h('div', { class: 'card-head' }, h('h3', {}, title), h('span', { class: 'meta' }, side)), lines);

  /** @param {Place} place @param {NodeState} node */
  const nodeLink = (place, node) => h('a', { href: directory.link(place.workspaceId, place.project, node.id) }, h('bdi', {}, node.title));

  /** @param {Place} place */
  const placeLine = (place) => h('p', { class: 'meta' }, h('bdi', {}, `${projectName(place.project)} › ${place.name}`));

  /** @param {string} text @param {Child} [after] */
  const quote = (text, after) => h('p', { class: 'quote', dir: 'auto' }, text, after);

  /** @param {Place[]} places @param {Now} answer */
  function waitingPart(places, answer) {
    const plans = places.filter((place) => place.planWaits).map((place) => card('wait', {
      key: `plan ${place.workspaceId} ${place.project}`, title: t('confirmPlan'), side: timeAgo(place.activeAt),
      lines: [placeLine(place), h('p', { class: 'meta' }, t('planWaits')), h('div', { class: 'buttons' },
        h('a', { class: 'button small', href: directory.link(place.workspaceId, place.project) }, t('reviewPlan')))],
    }));
    const problems = places.flatMap((place) => [
      ...(place.problem ? [card('bad', {
        key: `problem ${place.workspaceId} ${place.project}`, title: h('a', { href: directory.link(place.workspaceId, place.project, 'workspace') }, h('bdi', {}, place.name)),
        side: duration(place.problem.updatedAt), lines: problemLines(place.problem),
      })] : []),
      ...place.problems.nodes.map((node) => card('bad', {
        key: `problem ${node.id} ${place.project}`, title: nodeLink(place, node), side: node.problem ? duration(node.problem.updatedAt) : null,
        lines: [...(node.problem ? problemLines(node.problem) : []), placeLine(place)],
      }))]);
    const failed = places.flatMap((place) => place.failed.nodes.map((node) => card('bad', {
      key: `failed ${node.id} ${place.project}`, title: nodeLink(place, node), side: `${statusText('failed')} · ${duration(node.since)}`,
      lines: [node.conclusion ? quote(node.conclusion) : null, placeLine(place), h('div', { class: 'buttons' },
        h('button', { class: 'small', onclick: () => retry(place, node) }, t('retry')),
        h('a', { class: 'button small', href: directory.link(place.workspaceId, place.project, node.id) }, t('readLog')))],
    })));
    const cards = [...plans, ...problems, ...failed];
    return [head(t('needsYou'), cards.length),
      answer.paused ? h('p', { class: 'hint' }, t('pausedNotice')) : null,
      cards.length ? cards : h('p', { class: 'empty' }, t('nothingWaits'))];
  }

  /** @param {{ description: string, nextStep: string | null }} problem */
  const problemLines = ({ description, nextStep }) => [quote(description), nextStep ? h('p', { class: 'meta', dir: 'auto' }, t('next'), nextStep) : null];

  /** @param {Place} place @param {NodeState} node */
  const retry = (place, node) => attempt(async () => {
    setProject(place.project);
    const params = { workspaceId: place.workspaceId, nodeId: node.id };
    await request('POST /workspaces/{workspaceId}/nodes/{nodeId}/transition', { params, body: { action: 'retry' } });
    await load();
  });

  /** @param {Place[]} places */
  function runningPart(places) {
    const total = places.reduce((sum, place) => sum + place.running.total, 0);
    const cards = places.flatMap((place) => place.running.nodes.map((node) => card('run', {
      key: `run ${node.id} ${place.project}`, title: nodeLink(place, node), side: h('span', { title: statusText(node.status) }, duration(node.since)),
      lines: [h('p', { class: 'chips' }, holderChip(place, node), node.agent ? h('span', { class: 'chip' }, t('subagent', node.agent)) : null,
        node.status === 'validating' ? h('span', { class: 'chip' }, statusText(node.status)) : null),
      node.lastLog ? quote(node.lastLog.text, h('span', { class: 'meta' }, ` · ${timeAgo(node.lastLog.at)}`)) : null, placeLine(place)],
    })));
    const more = total - cards.length;
    return [head(t('running'), total), cards.length ? cards : [h('p', { class: 'empty' }, t('nothingRuns')),
      places.length ? hint(t('startNodeHint'), 'tanmi start') : null],
    more > 0 ? h('p', { class: 'meta' }, t('moreNodes', formatNumber(more))) : null];
  }

  /** Returns who holds a node. @param {Place} place @param {NodeState} node */
  function holderChip(place, node) {
    const present = place.team?.find((session) => session.session === node.holder);
    if (present) return h('span', { class: 'chip', title: present.session }, dot(present.isLive), personName(present.person, present.machine));
    if (!node.holder) return h('span', { class: 'chip' }, t('noAgent'));
    const live = directory.sessions.get(node.holder)?.live;
    if (node.holder === '@person') return h('span', { class: 'chip' }, t('you'));
    return h('a', { class: 'chip', href: sessionLink(node.holder) }, dot(live), directory.sessionName(node.holder));
  }

  /** @param {boolean | undefined} live */
  const dot = (live) => [h('span', { class: `dot ${live ? 'on' : ''}` }), h('span', { class: 'sr-only' }, t(live ? 'activeSession' : 'inactiveSession'))];

  /** @param {SessionLine[]} sessions */
  function sessionsPart(sessions) {
    const lines = sessions.map((line) => h('li', { 'data-key': `session ${line.sessionId}` },
      h('a', { href: sessionLink(line.sessionId) }, dot(line.live), directory.sessionName(line.sessionId)),
      h('span', { class: 'meta' }, line.workspaceId
        ? h('a', { href: directory.link(line.workspaceId, line.project) }, h('bdi', {}, directory.workspace(line.workspaceId, line.project)?.name || line.workspaceId))
        : t('notBound'), ` · ${timeAgo(line.aliveAt)}`),
      line.workspaceId ? null : h('button', { class: 'small', onclick: () => bindSession(line.sessionId, directory, load) }, t('bind'))));
    return [head(t('aliveSessions'), sessions.length), lines.length ? h('ul', { class: 'session-lines' }, lines)
      : [h('p', { class: 'empty' }, t('noSessionsYet')), hint(t('installHint'), 'tanmi install')]];
  }

  /** @param {string} project @param {Place[]} places */
  function projectPart(project, places) {
    if (!places.length) return null;
    return h('div', { class: 'project' }, h('h2', { title: project }, h('bdi', {}, projectName(project))),
      h('ul', { class: 'places' }, places.map((place) => {
        const { done, total } = place.progress;
        const marks = [
          place.running.total ? h('span', {}, t('runningCount', formatNumber(place.running.total))) : null,
          place.problems.total ? h('span', { class: 'bad' }, t('problemCount', formatNumber(place.problems.total))) : null,
          place.failed.total ? h('span', { class: 'bad' }, t('failedCount', formatNumber(place.failed.total))) : null,
        ];
        return h('li', { 'data-key': `place ${place.workspaceId} ${project}` },
          h('a', { class: 'place', href: directory.link(place.workspaceId, project) }, h('bdi', {}, place.name)),
          h('p', { class: 'meta goal', dir: 'auto' }, place.goal),
          h('progress', { max: Math.max(1, total), value: done, 'aria-label': `${t('progress')}: ${place.name}` }),
          h('p', { class: 'meta marks' }, h('span', {}, t('doneOf', formatNumber(done), formatNumber(total))), marks));
      })));
  }

  /** @param {Place[]} places */
  function completedPart(places) {
    const done = places.flatMap((place) => place.completed.nodes.map((node) => ({ place, node }))).sort((a, b) => b.node.since - a.node.since);
    const total = places.reduce((sum, place) => sum + place.completed.total, 0);
    return h('div', { class: 'completed' }, head(t('completedToday'), total),
      done.length ? h('ul', {}, done.map(({ place, node }) => h('li', { 'data-key': `done ${node.id} ${place.project}` },
        h('span', { class: 'symbol', 'data-status': 'completed', 'aria-hidden': 'true' }, SYMBOLS.completed), nodeLink(place, node),
        h('span', { class: 'meta', dir: 'auto' }, node.conclusion || ''), h('span', { class: 'meta when' }, timeAgo(node.since)))))
        : h('p', { class: 'empty' }, '–'));
  }

  const emptyPart = () => h('div', { class: 'empty' }, h('h2', {}, t('noWorkspaces')), hint(t('startHint'), 'tanmi workspace init'), hint(t('installHint'), 'tanmi install'));

  /** @type {Set<string>} */
  const kinds = new Set();

  /** @param {ActivityFilter} change */
  function filter(change) {
    feed.setFilter({ ...feed.filter, ...change });
  }

  /** @param {string} name @param {Word} all @param {[string, string][]} choices @param {string | undefined} value @param {(value: string) => void} choose */
  const select = (name, all, choices, value, choose) => h('select', {
    name, 'aria-label': t(all), onchange: (event) => choose(event.target.value),
  }, h('option', { value: '' }, t(all)), choices.map(([id, label]) => h('option', { value: id, selected: id === value }, label)));

  let choices = '';

  function renderFilters() {
    const sessions = [...directory.sessions.keys()].map((id) => /** @type {[string, string]} */ ([id, directory.sessionName(id)]));
    const folders = (shown?.projects || []).map(({ project }) => /** @type {[string, string]} */ ([project, projectName(project)]));
    const titles = feed.entries.filter((entry) => entry.nodeId && entry.title).map((entry) => /** @type {[string, string]} */ ([entry.nodeId || '', entry.title || '']));
    const nodes = [...new Map(titles)];
    // A list that is open would close.
    const wanted = JSON.stringify([sessions, folders, nodes]);
    if (wanted === choices) return;
    choices = wanted;
    rerender(filters, () => setChildren(filters,
      h('fieldset', { class: 'kinds' }, h('legend', { class: 'sr-only' }, t('kinds')), KINDS.map(([kind, label]) => h('label', { class: 'chip' },
        h('input', { type: 'checkbox', name: kind, checked: kinds.has(kind), onchange: (event) => {
          if (event.target.checked) kinds.add(kind); else kinds.delete(kind);
          filter({ kind: [...kinds].join(',') });
        } }), t(label)))),
      select('project', 'anyProject', folders, feed.filter.project, (project) => filter({ project })),
      select('session', 'allSessions', sessions, feed.filter.sessionId, (sessionId) => filter({ sessionId })),
      select('node', 'allNodes', nodes, feed.filter.nodeId, (nodeId) => filter({ nodeId }))));
  }
  filters.addEventListener('submit', (event) => event.preventDefault());
  feed.onEntries = renderFilters;

  let isLoaded = false;
  const reload = coalesce(async () => { await load(); await feed.reload(); }, 100);
  // Durations and times grow while nothing changes.
  const timer = setInterval(() => { if (element.isConnected) render(); else clearInterval(timer); }, 30000);
  return {
    element,
    route: async () => { if (!isLoaded) { isLoaded = true; await load(); await feed.reload(true); } },
    onChange: reload, onGap: reload, focusSearch: () => feed.element.focus(),
  };
}
