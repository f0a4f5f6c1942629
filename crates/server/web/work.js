// The view of work: workspaces, the tree of one, and a node or the workspace itself. Who shows what is decided here; how
// a tree, a node or a workspace looks is not.

import { get, post, enc, setProject } from './api.js';
import { h, show, repaint, attempt, calmly } from './dom.js';
import { ask, rulesOf } from './forms.js';
import { nodeView } from './node.js';
import { workspaceView } from './workspace.js';
import { Tree, SYMBOLS } from './tree.js';
import { t, statusWord, number } from './words.js';

export function workView(go) {
  const spaces = h('nav', { class: 'pane spaces', 'aria-label': t('workspaces') });
  const middle = h('section', { class: 'pane middle', 'aria-label': t('tree') });
  const detail = h('article', { class: 'pane detail', 'aria-live': 'off' });
  const element = h('div', { class: 'work' }, spaces, middle, detail);
  const at = { key: undefined, workspace: null, project: '', node: null, own: '', tree: null, view: null, list: [] };

  let turn = 0;

  async function route(workspace, node, project) {
    const mine = turn += 1;
    const isLate = () => mine !== turn;
    element.dataset.shows = node ? 'detail' : workspace ? 'middle' : 'spaces';
    if (!at.list.length) await listSpaces();
    if (isLate()) return;
    // Named or not, the server's own project is one place.
    const place = project === at.own ? '' : project;
    if (`${workspace} ${place}` !== at.key) await openWorkspace(workspace, node, place);
    if (isLate()) return;
    if (node !== at.node || !at.view) openNode(node);
  }

  /** Where a workspace, or something in it, is shown. The project is named where it is not the server's own. */
  function way(workspace, project, node) {
    const query = project && project !== at.own ? `?project=${enc(project)}` : '';
    return `#/work/${enc(workspace)}${node ? `/${enc(node)}` : ''}${query}`;
  }

  async function listSpaces() {
    const [answer, projects] = await Promise.all([
      attempt(() => get('/workspaces', { all: true, limit: 10000 })),
      at.own ? null : get('/projects').catch(() => null),
    ]);
    if (projects) [at.own] = projects.projects;
    if (!answer) return;
    at.list = answer.workspaces;
    repaint(spaces, paintSpaces);
    const shown = current();
    if (at.workspace && at.heading) at.heading.textContent = shown ? shown.name : t('goneWorkspace');
  }

  function current() {
    return at.list.find((space) => space.workspaceId === at.workspace && space.project === (at.project || at.own))
      || at.list.find((space) => space.workspaceId === at.workspace && !at.project);
  }

  let showArchived = false;

  function paintSpaces() {
    const groups = new Map();
    for (const space of at.list.filter((space) => showArchived || space.status !== 'archived')) {
      groups.set(space.project, [...(groups.get(space.project) || []), space]);
    }
    const hidden = at.list.some((space) => space.status === 'archived');
    show(spaces,
      h('div', { class: 'head' }, h('h2', {}, t('workspaces')),
        h('button', { class: 'primary small', onclick: createWorkspace }, t('newWorkspace'))),
      at.list.length ? null : h('p', { class: 'empty' }, t('noWorkspaces')),
      [...groups].map(([project, list]) => h('section', {},
        h('h3', { title: project }, h('bdi', {}, project.split(/[\\/]/).filter(Boolean).pop() || project)),
        h('ul', {}, list.map(spaceLine)))),
      hidden ? h('label', { class: 'check' },
        h('input', { type: 'checkbox', checked: showArchived, onchange: (event) => { showArchived = event.target.checked; paintSpaces(); } }),
        t('showArchived')) : null);
  }

  /** The project of what is shown: a link may name a workspace alone. */
  function home() {
    const shown = current();
    return shown ? shown.project : at.project || at.own;
  }

  function spaceLine(space) {
    const { done, total } = space.progress;
    const share = total ? Math.round((100 * done) / total) : 0;
    return h('li', {}, h('a', {
      href: way(space.workspaceId, space.project), class: 'space', 'data-key': `${space.workspaceId} ${space.project}`,
      'aria-current': space === current() ? 'page' : null,
    },
    h('bdi', { class: 'name' }, space.name),
    space.status === 'active' ? null : h('span', { class: 'badge' }, t(space.status)),
    h('span', { class: 'numbers' }, `${number(done)}/${number(total)}`),
    h('progress', { max: 100, value: share, 'aria-label': t('progress') }, `${share} %`)));
  }

  async function createWorkspace() {
    const answer = await attempt(() => get('/projects'));
    if (!answer) return;
    ask({
      title: t('newWorkspace'), yes: t('create'),
      fields: [
        { name: 'name', label: t('name'), required: true, autofocus: true },
        { name: 'goal', label: t('goal'), rows: 2, required: true },
        { name: 'rules', label: t('rulesOf'), rows: 3, help: t('rulesHelp') },
        { name: 'project', label: t('project'), options: answer.projects.map((project) => [project, project]) },
      ],
      done: async (typed) => {
        const body = { name: typed.name, goal: typed.goal, rules: rulesOf(typed.rules) };
        const made = await post('/workspaces', body, { project: typed.project });
        await listSpaces();
        go(way(made.workspaceId, typed.project));
      },
    });
  }

  async function openWorkspace(workspace, node, project) {
    at.key = `${workspace} ${project}`;
    at.workspace = workspace;
    at.project = project;
    setProject(project);
    at.node = null;
    at.view = null;
    paintSpaces();
    if (!workspace) {
      at.tree = null;
      show(middle, h('p', { class: 'empty' }, t('choose')));
      show(detail);
      return;
    }
    const tree = new Tree(workspace, (id) => go(way(workspace, project, id)));
    at.tree = tree;
    show(middle, toolbar(workspace, tree, current()), tree.element);
    const isNode = node && node !== 'workspace' && node !== 'root';
    const shown = isNode ? await get(`/workspaces/${enc(workspace)}/nodes/${enc(node)}`).catch(() => null) : null;
    // Somebody may have gone on to another node meanwhile; only another workspace makes this one idle.
    if (at.tree !== tree) return;
    await attempt(() => tree.load(shown ? shown.ancestors.map((above) => above.id) : [], node));
    if (at.tree === tree) await bindings();
  }

  function toolbar(workspace, tree, space) {
    const found = h('span', { class: 'found', role: 'status' });
    const search = h('input', { type: 'search', id: 'search', placeholder: t('searchNodes'), 'aria-label': t('searchNodes') });
    const status = h('select', { 'aria-label': t('status') }, h('option', { value: '' }, `${t('status')}: ${t('any')}`),
      Object.keys(SYMBOLS).map((word) => h('option', { value: word }, `${SYMBOLS[word]} ${statusWord(word)}`)));
    const run = at.filter = async () => {
      const outcome = await attempt(() => tree.filter(search.value.trim(), status.value));
      if (outcome === undefined) return;
      found.textContent = outcome ? t('matches', `${number(outcome.count)}${outcome.more ? '+' : ''}`) : '';
    };
    search.addEventListener('input', calmly(run, 150));
    status.addEventListener('change', run);
    return h('div', { class: 'toolbar' },
      h('div', { class: 'head' },
        h('a', { class: 'back', href: '#/work' }, `‹ ${t('workspaces')}`),
        h('h2', {}, at.heading = h('bdi', {}, space ? space.name : workspace)),
        h('a', { class: 'button small', href: way(workspace, at.project, 'workspace') }, t('settings'))),
      h('div', { class: 'filters' }, search, status, found));
  }

  function openNode(node) {
    at.node = node;
    if (!at.workspace) return;
    const { workspace, tree } = at;
    at.view = null;
    if (!node) {
      show(detail, h('p', { class: 'empty' }, t('treeKeys')));
    } else if (node === 'workspace') {
      at.view = workspaceView(workspace, go, listSpaces);
    } else {
      at.view = nodeView(workspace, node, go, {
        way: (id) => way(workspace, at.project, id),
        project: at.project,
        found: (ancestors) => attempt(() => tree.lead(ancestors, node)),
      });
      tree.select(node);
    }
    if (at.view) {
      show(detail, h('a', { class: 'back', href: way(workspace, at.project) }, `‹ ${t('tree')}`), at.view.element);
      detail.scrollTop = 0;
    }
  }

  async function bindings() {
    if (!at.tree) return;
    const answer = await get('/bindings', { workspaceId: at.workspace, live: true }).catch(() => null);
    if (!answer || !at.tree) return;
    at.tree.bound = new Map();
    for (const line of answer.bindings.filter((line) => line.project === home())) {
      const id = line.focusedNodeId || 'root';
      at.tree.bound.set(id, (at.tree.bound.get(id) || 0) + 1);
    }
    at.tree.paint();
  }

  const relist = calmly(listSpaces, 200);
  let waiting = new Set();
  let filtering = false;
  const flush = calmly(async () => {
    const ids = [...waiting];
    waiting = new Set();
    const { tree, view } = at;
    if (tree) await attempt(() => tree.refresh(ids));
    if (tree && tree.found && !filtering) {
      filtering = true;
      await at.filter();
      filtering = false;
    }
    if (view && view === at.view) view.changed(ids);
  }, 60);

  return {
    element, route,
    heard(news) {
      if (news.kind === 'workspaces' || news.kind === 'workspace') relist();
      if (news.kind === 'bindings') bindings();
      if (news.kind !== 'workspace' || news.workspaceId !== at.workspace) return;
      if (news.project !== home()) return;
      if (news.gap) { this.lost(); return; }
      news.nodes.forEach((id) => waiting.add(id));
      flush();
    },
    lost() {
      relist();
      if (at.tree) attempt(() => at.tree.reload());
      if (at.view) at.view.changed(null);
      bindings();
    },
    unsaved() {
      return Boolean(at.view && at.view.unsaved());
    },
    focusSearch() {
      const search = middle.querySelector('#search');
      if (search) search.focus();
    },
  };
}
