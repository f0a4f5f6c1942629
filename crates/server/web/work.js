// The main view: the list of workspaces, the tree of one workspace, and one node or the workspace itself.

/** @import { NodeStatus, WorkspaceLine } from './api-types.js' */
/** @import { DetailView, Go, View } from './page-types.js' */

/**
 * What is shown. `project` is empty for the project of the server; `key` identifies the workspace and its project.
 * @typedef {object} Shown
 * @property {string} [key]
 * @property {string | null} workspace
 * @property {string} project
 * @property {string | null} node
 * @property {string} serverProject
 * @property {Tree | null} tree
 * @property {DetailView | null} view
 * @property {WorkspaceLine[]} list
 * @property {HTMLElement} [heading]
 * @property {(isRefresh?: boolean) => Promise<void>} [filter]
 */

import { request, enc, errorText, setProject } from './api.js';
import { h, setChildren, rerender, attempt, debounce, runExclusive } from './dom.js';
import { openDialog, parseRules } from './forms.js';
import { nodeView } from './node.js';
import { workspaceView } from './workspace.js';
import { Tree, SYMBOLS } from './tree.js';
import { icon } from './icons.js';
import { progressBar } from './tree-rows.js';
import { filterTree } from './tree-search.js';
import { t, statusText, formatNumber } from './words.js';

const UNFINISHED = 'pending,planning,monitoring,implementing,validating';

/** @param {Go} go @returns {View} */
export function workView(go) {
  const workspacesPane = h('nav', { class: 'pane workspaces', 'aria-label': t('workspaces') });
  const treePane = h('section', { class: 'pane tree-pane', 'aria-label': t('tree') });
  const detailPane = h('article', { class: 'pane detail-pane', 'aria-live': 'off' });
  const element = h('div', { class: 'work' }, workspacesPane, treePane, detailPane);
  /** @type {Shown} */
  const current = { key: undefined, workspace: null, project: '', node: null, serverProject: '', tree: null, view: null, list: [] };

  let requestCount = 0;

  /** @param {string | null} workspace @param {string | null} node @param {string} project */
  async function route(workspace, node, project) {
    const requestId = requestCount += 1;
    const isOutdated = () => requestId !== requestCount;
    element.dataset.pane = node ? 'detail' : workspace ? 'tree' : 'workspaces';
    const listed = current.list.length ? undefined : loadWorkspaces();
    // The project of the server may be named in the link or not. Only then the tree waits for the list.
    if (project || !workspace) await listed;
    if (isOutdated()) return;
    const otherProject = project === current.serverProject ? '' : project;
    if (`${workspace} ${otherProject}` !== current.key) await openWorkspace(workspace, node, otherProject, listed);
    if (isOutdated()) return;
    if (node !== current.node || !current.view) openNode(node);
  }

  /**
   * Returns the link to a workspace or a node. It names the project unless it is the project of the server.
   * @param {string} workspace
   * @param {string} project
   * @param {string} [node]
   */
  function linkTo(workspace, project, node) {
    const query = project && project !== current.serverProject ? `?project=${enc(project)}` : '';
    return `#/work/${enc(workspace)}${node ? `/${enc(node)}` : ''}${query}`;
  }

  async function loadWorkspaces() {
    const [answer, projects] = await Promise.all([
      attempt(() => request('GET /workspaces', { params: { all: true, limit: 10000 } })),
      current.serverProject ? null : request('GET /projects', {}).catch(() => null),
    ]);
    if (projects) [current.serverProject] = projects.projects;
    if (!answer) return;
    current.list = answer.workspaces;
    rerender(workspacesPane, renderWorkspaces);
    const shown = shownWorkspace();
    if (current.workspace && current.heading) current.heading.textContent = shown ? shown.name : t('missingWorkspace');
  }

  function shownWorkspace() {
    return current.list.find((item) => item.workspaceId === current.workspace && item.project === (current.project || current.serverProject))
      || current.list.find((item) => item.workspaceId === current.workspace && !current.project);
  }

  let showArchived = false;

  function renderWorkspaces() {
    /** @type {Map<string, WorkspaceLine[]>} */
    const groups = new Map();
    for (const item of current.list.filter((item) => showArchived || item.status !== 'archived')) {
      groups.set(item.project, [...(groups.get(item.project) || []), item]);
    }
    const hidden = current.list.some((item) => item.status === 'archived');
    setChildren(workspacesPane,
      h('div', { class: 'head' }, h('h2', {}, t('workspaces')),
        h('button', { class: 'primary small', onclick: createWorkspace }, t('newWorkspace'))),
      current.list.length ? null : h('p', { class: 'empty' }, t('noWorkspaces'), ' ', h('code', {}, 'tanmi workspace init')),
      [...groups].map(([project, list]) => h('section', {},
        h('h3', { title: project }, h('bdi', {}, project.split(/[\\/]/).filter(Boolean).pop() || project)),
        h('ul', {}, list.map(workspaceItem)))),
      hidden ? h('label', { class: 'check' },
        h('input', { type: 'checkbox', checked: showArchived, onchange: (event) => { showArchived = event.target.checked; renderWorkspaces(); } }),
        t('showArchived')) : null);
  }

  /** Returns the project of the shown workspace. A link may name a workspace without its project. */
  function shownProject() {
    const shown = shownWorkspace();
    return shown ? shown.project : current.project || current.serverProject;
  }

  /** @param {WorkspaceLine} item */
  function workspaceItem(item) {
    const { done, total } = item.progress;
    return h('li', {}, h('a', {
      href: linkTo(item.workspaceId, item.project), class: 'workspace-link', 'data-key': `${item.workspaceId} ${item.project}`,
      'aria-current': item === shownWorkspace() ? 'page' : null,
    },
    h('bdi', { class: 'name' }, item.name),
    item.status === 'active' ? null : h('span', { class: 'badge' }, t(item.status)),
    h('span', { class: 'numbers' }, `${formatNumber(done)}/${formatNumber(total)}`),
    progressBar(done, total)));
  }

  async function createWorkspace() {
    const answer = await attempt(() => request('GET /projects', {}));
    if (!answer) return;
    openDialog({
      title: t('newWorkspace'), confirmLabel: t('create'),
      fields: [
        { name: 'name', label: t('name'), required: true, autofocus: true },
        { name: 'goal', label: t('goal'), rows: 2, required: true },
        { name: 'rules', label: t('workspaceRules'), rows: 3, help: t('rulesHelp') },
        { name: 'project', label: t('project'), choices: answer.projects.map((project) => [project, project]) },
      ],
      onSubmit: async (typed) => {
        const body = { name: typed.name, goal: typed.goal, rules: parseRules(typed.rules, []) };
        const made = await request('POST /workspaces', { params: { project: typed.project }, body });
        await loadWorkspaces();
        go(linkTo(made.workspaceId, typed.project));
      },
    });
  }

  /**
   * @param {string | null} workspace
   * @param {string | null} node
   * @param {string} project
   * @param {Promise<void>} [listed] ends when the list of workspaces is known
   */
  async function openWorkspace(workspace, node, project, listed) {
    current.key = `${workspace} ${project}`;
    current.workspace = workspace;
    current.project = project;
    setProject(project);
    current.node = null;
    current.view = null;
    if (current.list.length) renderWorkspaces();
    if (!workspace) {
      current.tree = null;
      setChildren(treePane, h('p', { class: 'empty' }, t('choose')));
      setChildren(detailPane);
      return;
    }
    const matchCount = h('span', { class: 'match-count', role: 'status' });
    const tree = new Tree(workspace, (id) => go(linkTo(workspace, project, id)), (found) => {
      const count = found ? t('matches', `${formatNumber(found.count)}${found.more ? '+' : ''}`) : '';
      matchCount.textContent = found?.searching ? `${count} · ${t('searching')}` : count;
    });
    current.tree = tree;
    setChildren(treePane, toolbar(workspace, tree, matchCount, shownWorkspace()), tree.element);
    const shown = node && node !== 'workspace' && node !== 'root'
      ? await request('GET /workspaces/{workspaceId}/nodes/{nodeId}', { params: { workspaceId: workspace, nodeId: node } }).catch(() => null) : null;
    // The user may have opened another node in the meantime; only another workspace makes this load obsolete.
    if (current.tree !== tree) return;
    try {
      await tree.load(shown ? shown.ancestors.map((ancestor) => ancestor.id) : [], node, Promise.resolve(listed).then(loadBindings));
    } catch (error) {
      if (current.tree === tree) setChildren(treePane, h('p', { class: 'empty', role: 'alert' }, errorText(error)), h('p', { class: 'empty' }, h('a', { href: '#/work' }, t('workspaces'))));
    }
  }

  /** @param {string} workspace @param {Tree} tree @param {HTMLElement} matchCount @param {WorkspaceLine} [item] */
  function toolbar(workspace, tree, matchCount, item) {
    const search = h('input', { type: 'search', id: 'search', placeholder: t('searchNodes'), 'aria-label': t('searchNodes') });
    const status = h('select', { 'aria-label': t('status') }, h('option', { value: '' }, `${t('status')}: ${t('any')}`),
      h('option', { value: UNFINISHED }, t('unfinished')),
      /** @type {NodeStatus[]} */ (Object.keys(SYMBOLS)).map((word) => h('option', { value: word }, `${SYMBOLS[word]} ${statusText(word)}`)));
    const applyFilter = current.filter = async (/** @type {boolean | undefined} */ isRefresh = false) => {
      await attempt(() => filterTree(tree, { query: search.value.trim(), status: status.value }, isRefresh));
    };
    search.addEventListener('input', debounce(() => applyFilter(), 150));
    search.addEventListener('keydown', (event) => {
      if (event.key !== 'ArrowDown' && event.key !== 'Enter') return;
      event.preventDefault();
      tree.element.focus();
      tree.moveTo(0);
    });
    status.addEventListener('change', () => applyFilter());
    /** @param {'expand' | 'collapse'} name @param {() => Promise<void> | void} run */
    const fold = (name, run) => h('button', {
      class: 'quiet square', 'data-action': `${name}-all`, title: t(`${name}All`), 'aria-label': t(`${name}All`),
      onclick: (event) => runExclusive(event.currentTarget, async () => run()),
    }, icon(name));
    return h('div', { class: 'toolbar' },
      h('div', { class: 'head' },
        h('a', { class: 'back', href: '#/work' }, `‹ ${t('workspaces')}`),
        h('h2', {}, current.heading = h('bdi', {}, item ? item.name : current.list.length ? workspace : '')),
        h('a', { class: 'button small', href: linkTo(workspace, current.project, 'workspace') }, t('settings'))),
      h('div', { class: 'filters' }, search, status, fold('expand', () => tree.expandAll()), fold('collapse', () => tree.collapseAll())),
      matchCount);
  }

  /** @param {string | null} node */
  function openNode(node) {
    current.node = node;
    const { workspace, tree } = current;
    if (!workspace || !tree) return;
    current.view = null;
    if (!node || node === 'workspace') tree.deselect();
    if (!node) {
      setChildren(detailPane, h('p', { class: 'empty' }, t('treeKeys'), ' ', t('moreKeys')));
    } else if (node === 'workspace') {
      current.view = workspaceView(workspace, go, loadWorkspaces);
    } else {
      current.view = nodeView(workspace, node, go, {
        linkTo: (id) => linkTo(workspace, current.project, id),
        project: current.project,
        onLoad: (ancestors) => attempt(() => tree.expandTo(ancestors, node)),
      });
      tree.select(node);
    }
    if (current.view) {
      setChildren(detailPane, h('a', { class: 'back', href: linkTo(workspace, current.project) }, `‹ ${t('tree')}`), current.view.element);
      detailPane.scrollTop = 0;
    }
  }

  async function loadBindings() {
    if (!current.tree || !current.workspace) return;
    const answer = await request('GET /bindings', { params: { workspaceId: current.workspace, live: true } }).catch(() => null);
    if (!answer || !current.tree) return;
    const { tree } = current;
    tree.bound = new Map();
    for (const line of answer.bindings.filter((line) => line.project === shownProject())) {
      const id = line.focusedNodeId || 'root';
      tree.bound.set(id, [...(tree.bound.get(id) || []), line]);
    }
    await attempt(() => countAgents(tree));
    tree.render();
  }

  /** Counts the sessions below each node. @param {Tree} tree */
  async function countAgents(tree) {
    /** @type {Map<string, number>} */
    const below = new Map();
    const rows = await tree.fetchByIds([...tree.bound.keys()].filter((id) => id !== 'root').slice(0, 60));
    rows.forEach((row) => (row.ancestors || []).forEach((above) => below.set(above.id, (below.get(above.id) || 0) + (tree.bound.get(row.id)?.length || 0))));
    tree.agentsBelow = below;
  }

  const reloadWorkspaces = debounce(loadWorkspaces, 200);
  /** @type {Set<string>} */
  let changedIds = new Set();
  let isFiltering = false;
  const applyChanges = debounce(async () => {
    const ids = [...changedIds];
    changedIds = new Set();
    const { tree, view } = current;
    if (tree) await attempt(() => tree.refresh(ids));
    if (tree && tree.matches && current.filter && !isFiltering) {
      isFiltering = true;
      await current.filter(true);
      isFiltering = false;
    }
    if (view && view === current.view) view.refresh(ids);
  }, 60);

  function onGap() {
    const { tree, view } = current;
    reloadWorkspaces();
    if (tree) attempt(() => tree.reload());
    if (view) view.refresh(null);
    loadBindings();
  }

  return {
    element, route,
    onChange(change) {
      if (change.kind === 'workspaces' || change.kind === 'workspace') reloadWorkspaces();
      if (change.kind === 'bindings') loadBindings();
      if (change.kind !== 'workspace' || change.workspaceId !== current.workspace) return;
      if (change.project !== shownProject()) return;
      if (change.gap) { onGap(); return; }
      change.nodes.forEach((id) => changedIds.add(id));
      applyChanges();
    },
    onGap,
    hasUnsaved() {
      return Boolean(current.view && current.view.hasUnsaved());
    },
    actions() {
      const { tree } = current;
      return [
        ...(current.view?.actions?.() || []),
        ...(tree ? [
          { label: t('expandAll'), icon: /** @type {const} */ ('action'), run: () => tree.expandAll() },
          { label: t('collapseAll'), icon: /** @type {const} */ ('action'), run: () => tree.collapseAll() },
        ] : []),
        { label: t('newWorkspace'), icon: 'action', run: createWorkspace },
      ];
    },
    focusSearch() {
      /** @type {HTMLElement | null} */
      const search = treePane.querySelector('#search');
      if (search) search.focus();
    },
  };
}
