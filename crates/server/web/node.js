// One node: its texts, steps, children, dependencies, problem and log. A change from the feed never replaces an unsaved edit.

/** @import { AllowedAction, NodeBrief, NodeDetail, NodeHolder, NodePage, NodeType, NodeView, Problem, RenderedTexts } from './api-types.js' */
/** @import { Child, DetailView, Go } from './page-types.js' */

import { enc, errorText, hasCode, request } from './api.js';
import { h, setChildren, rerender, renderMarkdown, attempt, runExclusive, toast } from './dom.js';
import { openDialog, formValues } from './forms.js';
import { icon, statusIcon } from './icons.js';
import { editNode } from './node-edit.js';
import { logList } from './node-log.js';
import { personName } from './names.js';
import { openPalette } from './palette.js';
import { sessionLink, shortId } from './names.js';
import { formatAgo } from './time.js';
import { confirmTakeOver, nextStep, takeStep } from './transitions.js';
import { branchCounts } from './tree-rows.js';
import { offerUndo } from './undo.js';
import { t, statusText, typeText, formatTime } from './words.js';

const CHILDREN = 200;

/**
 * Returns a text of a node as Markdown. If the text is too long for that, its rest follows as plain text.
 * @param {Exclude<keyof RenderedTexts, 'plainFrom' | 'log'>} name
 * @param {string} text
 * @param {RenderedTexts | undefined} rendered
 */
function longText(name, text, rendered) {
  const from = rendered?.plainFrom?.[name];
  const rest = from === undefined ? null : [h('p', { class: 'meta' }, t('plainRest')), h('pre', { class: 'injected', dir: 'auto' }, text.slice(from))];
  return [renderMarkdown(rendered?.[name]), rest];
}

/**
 * @param {string} workspace
 * @param {string} id
 * @param {Go} go
 * @param {{ linkTo: (id: string) => string, project: string, onLoad: (ancestors: string[]) => unknown }} options
 * @returns {DetailView}
 */
export function nodeView(workspace, id, go, { linkTo, project, onLoad }) {
  const element = h('div', { class: 'node' }, h('p', { class: 'empty' }, t('loading')));
  const params = { workspaceId: workspace, nodeId: id };
  // Created once, so that its text is kept when the node is rendered again.
  const logForm = createLogForm();
  /** Returns the names of the edited fields, while the node is edited. @type {(() => string[]) | null} */
  let editing = null;
  let requestCount = 0;
  /** The node as it is shown. @type {NodeView | null} */
  let shown = null;

  async function load() {
    const requestId = requestCount += 1;
    try {
      const view = await request('GET /workspaces/{workspaceId}/nodes/{nodeId}', { params: { ...params, render: true } });
      const children = view.children.total ? await request('GET /workspaces/{workspaceId}/nodes', {
        params: { workspaceId: workspace, parentId: id, depth: 1, limit: CHILDREN, conclusions: true },
      }) : null;
      if (!editing && requestId === requestCount) rerender(element, () => render(view, children));
      if (!shown) onLoad(view.ancestors.map((ancestor) => ancestor.id));
      shown = view;
    } catch (error) {
      if (editing) toast(errorText(error), 'bad');
      else if (hasCode(error, 'NODE_NOT_FOUND')) await renderMissing();
      else setChildren(element, h('p', { class: 'empty', role: 'alert' }, errorText(error)));
    }
  }

  /** Says that the node was deleted, or that there is no such node. */
  async function renderMissing() {
    const trash = await request('GET /trash', { params: { workspaceId: workspace, limit: 1000, project } }).catch(() => null);
    const isDeleted = Boolean(shown) || trash?.entries.some((entry) => entry.nodeId === id);
    setChildren(element, h('p', { class: 'empty', role: 'alert' }, isDeleted ? t('deletedNode') : t('missingNode', id)),
      h('p', { class: 'empty' }, isDeleted
        ? h('button', { 'data-action': 'restore', onclick: (event) => runExclusive(event.currentTarget, restore) }, t('restore'))
        : h('a', { href: linkTo('workspace') }, t('deletedNodes'))));
  }

  async function restore() {
    await request('POST /workspaces/{workspaceId}/restore', { params: { workspaceId: workspace }, body: { nodeId: id } });
    await load();
  }

  /** @param {NodeView} view @param {NodePage | null} children */
  function render(view, children) {
    const { node, rendered } = view;
    setChildren(element,
      view.ancestors.length ? h('nav', { class: 'breadcrumbs', 'aria-label': 'breadcrumb' },
        view.ancestors.map((ancestor) => [h('a', { href: linkTo(ancestor.id) }, h('bdi', {}, ancestor.title)), ' › '])) : null,
      h('header', {},
        h('h2', {}, h('bdi', {}, node.title)),
        h('div', { class: 'facts' },
          h('span', { class: 'status', 'data-status': node.status }, statusIcon(node.status), ` ${statusText(node.status)}`),
          h('span', { class: 'badge' }, typeText(node.type)),
          node.role ? h('span', { class: 'badge' }, node.role) : null,
          view.writable ? null : h('span', { class: 'badge' }, t('readOnly')),
          node.isolated ? h('span', { class: 'badge' }, t('isolated')) : null,
          holder(node, view.holder)),
        buttons(view)),
      problem(view),
      section(t('requirement'), node.requirement && longText('requirement', node.requirement, rendered)),
      section(t('conclusion'), node.conclusion && longText('conclusion', node.conclusion, rendered), `conclusion ${node.status}`),
      section(t('note'), node.note && longText('note', node.note, rendered)),
      children ? section(t('children', view.children.total, view.children.done), childList(children), 'children') : null,
      dependencies(view),
      section(t('docs'), node.docs.length > 0 && h('ul', {}, node.docs.map((doc) =>
        h('li', { class: doc.status }, h('code', {}, doc.path), doc.description ? ` — ${doc.description}` : '')))),
      section(t('references'), node.references.length > 0 && h('ul', {}, node.references.map((reference) =>
        h('li', { class: reference.status },
          reference.type === 'node' ? h('a', { href: linkTo(reference.targetId) }, reference.targetId) : h('code', {}, reference.targetId),
          reference.description ? ` — ${reference.description}` : '')))),
      log(view),
      contextBox(),
      h('p', { class: 'meta' }, `${node.id} · ${t('created')} ${formatTime(node.createdAt)} · ${t('updated')} ${formatTime(node.updatedAt)} · `,
        h('a', { href: `#/ledger/${enc(workspace)}/${enc(node.id)}` }, t('ledgerOfNode'))));
  }

  /** @param {string} title @param {Child} content @param {string} [kind] */
  function section(title, content, kind) {
    return content ? h('section', { class: kind || '' }, h('h3', {}, title), content) : null;
  }

  /** Returns who holds the node, since when, and from which client. @param {NodeDetail} node @param {NodeHolder | undefined} session */
  function holder(node, session) {
    if (!node.startedBy || ['completed', 'failed', 'cancelled'].includes(node.status)) return null;
    const since = formatAgo(node.statusChangedAt || node.updatedAt);
    if (!session) return h('span', { class: 'holder' }, t('heldByPerson', since));
    return h('span', { class: 'holder', title: session.sessionId },
      h('span', { class: `dot ${session.live ? 'on' : ''}` }),
      t('heldBy', session.person ? personName(session.person, session.machine) : session.client || session.platform || t('session'), since), node.agent ? ` · ${node.agent}` : '',
      session.aliveAt ? ` · ${t(session.live ? 'activeAgo' : 'silentSince', formatAgo(session.aliveAt))}` : '',
      ' · ', h('a', { href: sessionLink(session.sessionId) }, shortId(session.sessionId)));
  }

  /** @param {NodeView} view */
  function buttons(view) {
    const { node, actions } = view;
    if (!view.writable) return null;
    const next = nextStep(actions);
    const blocked = actions.filter((step) => step.blocked);
    const isUnplanned = node.type === 'planning' && !view.children.total && !next;
    return [
      h('div', { class: 'buttons' },
        actions.map((step) => h('button', {
          class: step === next ? 'primary' : '', 'data-action': step.action, disabled: Boolean(step.blocked), title: step.blocked,
          'aria-describedby': step.blocked ? `blocked-${step.action}` : null,
          onclick: (event) => takeStep(event.currentTarget, params, step, load),
        }, t(step.action))),
        h('button', { 'data-action': 'edit', title: 'e', onclick: () => edit(view) }, t('edit')),
        node.type === 'planning' ? h('button', { class: isUnplanned ? 'primary' : '', 'data-action': 'child', onclick: newChild }, t('newChild')) : null,
        node.problem ? null : h('button', { 'data-action': 'problem', onclick: () => setProblem(null) }, t('setProblem')),
        node.id === 'root' ? null : h('button', { class: 'danger quiet', 'data-action': 'delete', onclick: () => confirmDelete(node) }, t('delete'))),
      blocked.map((step) => h('p', { class: 'blocked', id: `blocked-${step.action}` }, h('strong', {}, `${t(step.action)}: `), step.blocked)),
    ];
  }

  function newChild() {
    openDialog({
      title: t('newChild'), confirmLabel: t('create'),
      fields: [
        { name: 'title', label: t('title'), required: true, autofocus: true },
        { name: 'type', label: t('type'), choices: [['execution', typeText('execution')], ['planning', typeText('planning')]] },
        { name: 'requirement', label: t('requirement'), rows: 4 },
      ],
      onSubmit: async (typed) => {
        const body = { ...typed, type: /** @type {NodeType} */ (typed.type), parentId: id };
        const made = await request('POST /workspaces/{workspaceId}/nodes', { params: { workspaceId: workspace }, body });
        go(linkTo(made.nodeId));
      },
    });
  }

  /** @param {NodeDetail} node */
  function confirmDelete(node) {
    openDialog({
      title: t('delete'), text: t('deleteNode', node.title), confirmLabel: t('delete'), danger: true,
      onSubmit: () => confirmTakeOver(async (force) => {
        const shown = location.hash;
        await request('DELETE /workspaces/{workspaceId}/nodes/{nodeId}', { params: { ...params, force } });
        // The user may have gone elsewhere meanwhile.
        if (location.hash === shown) go(linkTo(node.parentId || 'root'));
        offerUndo(t('movedToTrash', node.title), async () => { await restore(); go(linkTo(id)); });
      }),
    });
  }

  /** @param {NodeView} view */
  function problem(view) {
    const found = view.node.problem;
    if (!found) return null;
    return h('section', { class: 'problem', role: 'note' },
      h('h3', {}, icon('warning'), ` ${t('problem')}`, h('span', { class: 'meta' }, ` ${formatAgo(found.updatedAt)}`)), longText('problem', found.description, view.rendered),
      found.nextStep ? [h('h4', {}, t('nextStep')), longText('nextStep', found.nextStep, view.rendered)] : null,
      view.writable ? h('div', { class: 'buttons' },
        h('button', { 'data-action': 'problem-edit', onclick: () => setProblem(found) }, t('edit')),
        h('button', { 'data-action': 'problem-clear', onclick: (event) => runExclusive(event.currentTarget, () => clearProblem(found)) }, t('clearProblem'))) : null);
  }

  /** @param {Problem} found */
  async function clearProblem(found) {
    await request('DELETE /workspaces/{workspaceId}/nodes/{nodeId}/problem', { params });
    await load();
    const body = { description: found.description, nextStep: found.nextStep || '' };
    offerUndo(t('problemCleared'), async () => {
      await request('PUT /workspaces/{workspaceId}/nodes/{nodeId}/problem', { params, body });
      await load();
    });
  }

  /** @param {Problem | null} found */
  function setProblem(found) {
    openDialog({
      title: t('problem'),
      fields: [
        { name: 'description', label: t('problem'), rows: 3, value: found ? found.description : '', autofocus: true },
        { name: 'nextStep', label: t('nextStep'), rows: 2, value: found ? found.nextStep : '' },
      ],
      onSubmit: async (typed) => {
        await request('PUT /workspaces/{workspaceId}/nodes/{nodeId}/problem', { params, body: typed });
        await load();
      },
    });
  }

  /** @param {NodePage} page */
  function childList(page) {
    return [h('ul', { class: 'node-list' }, page.nodes.filter((row) => row.id !== id).map((row) => h('li', {},
      nodeLink(row), row.hasProblem ? h('span', { class: 'mark warn', title: t('problem') }, icon('warning'), h('span', { class: 'sr-only' }, t('problem'))) : null,
      row.branch ? branchCounts(row.branch, 0) : null,
      row.conclusion ? h('p', { class: 'excerpt', dir: 'auto' }, row.conclusion) : null))),
    page.nextAfter ? h('p', { class: 'meta' }, t('moreInTree')) : null];
  }

  /** @param {NodeBrief} row */
  function nodeLink(row) {
    return h('a', { class: 'node-link', href: linkTo(row.id), 'data-status': row.status },
      h('span', { class: 'symbol', title: statusText(row.status) }, statusIcon(row.status), h('span', { class: 'sr-only' }, statusText(row.status))), h('bdi', {}, row.title));
  }

  /** @param {NodeView} view */
  function dependencies(view) {
    const { node } = view;
    const known = view.dependencies || [];
    const missing = (node.dependsOn || []).filter((target) => !known.some((row) => row.id === target));
    const dependents = view.dependents || [];
    if (!view.writable && !known.length && !missing.length && !dependents.length) return null;
    /** @param {string} target */
    const remove = (target) => (view.writable ? h('button', {
      class: 'quiet square small', 'data-action': 'remove-dependency', title: t('removeDependency'), 'aria-label': t('removeDependency'),
      onclick: (event) => runExclusive(event.currentTarget, () => changeDependencies(view, (node.dependsOn || []).filter((other) => other !== target))),
    }, icon('remove')) : null);
    return h('section', { class: 'dependencies' },
      h('div', { class: 'head' }, h('h3', {}, t('dependsOn')),
        view.writable && id !== 'root' ? h('button', { class: 'quiet small', 'data-action': 'add-dependency', onclick: () => addDependency(view) }, t('addDependency')) : null),
      known.length + missing.length ? h('ul', { class: 'node-list' },
        known.map((row) => h('li', {}, nodeLink(row), remove(row.id))),
        missing.map((target) => h('li', {}, h('code', {}, target), remove(target)))) : h('p', { class: 'meta' }, t('noDependencies')),
      dependents.length ? [h('h4', {}, t('neededBy')), h('ul', { class: 'node-list' }, dependents.map((row) => h('li', {}, nodeLink(row))))] : null);
  }

  /** @param {NodeView} view */
  function addDependency(view) {
    openPalette(t('addDependency'), async (typed) => {
      const page = await request('GET /workspaces/{workspaceId}/nodes', { params: { workspaceId: workspace, query: typed, limit: 50 } });
      const taken = [id, 'root', ...(view.node.dependsOn || []), ...view.ancestors.map((above) => above.id)];
      return page.nodes.filter((row) => !taken.includes(row.id)).map((row) => ({
        label: row.title, hint: (row.ancestors || []).slice(1).map((above) => above.title).join(' › '), icon: row.status,
        run: () => changeDependencies(view, [...(view.node.dependsOn || []), row.id]),
      }));
    });
  }

  /** Saves the dependencies and offers to undo it. @param {NodeView} view @param {string[]} dependsOn */
  async function changeDependencies(view, dependsOn) {
    const before = view.node.dependsOn || [];
    const path = 'PATCH /workspaces/{workspaceId}/nodes/{nodeId}';
    await request(path, { params, body: { dependsOn }, version: view.version });
    await load();
    if (dependsOn.length < before.length) {
      offerUndo(t('dependencyRemoved'), async () => {
        await request(path, { params, body: { dependsOn: before }, version: /** @type {NodeView} */ (shown).version });
        await load();
      });
    }
  }

  /** @param {NodeView} view */
  function log(view) {
    const { node, logTotal } = view;
    const earlier = logTotal - node.log.length;
    return h('section', { class: 'log' }, h('h3', {}, t('log')), view.writable ? logForm : null,
      logList(node.log, view.isUtc === true, view.rendered?.log),
      earlier > 0 ? h('p', { class: 'meta' }, t('earlier', earlier)) : null);
  }

  function createLogForm() {
    const form = h('form', { class: 'inline' },
      h('input', { name: 'log', 'aria-label': t('addLog'), placeholder: t('addLog'), required: true, dir: 'auto' }),
      h('button', { type: 'submit', 'data-action': 'log' }, t('add')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      runExclusive(form, async () => {
        await request('POST /workspaces/{workspaceId}/nodes/{nodeId}/log', { params, body: formValues(form, ['log']) });
        form.reset();
        await load();
      });
    });
    return form;
  }

  function contextBox() {
    const text = h('pre', { class: 'injected', dir: 'auto' });
    const box = h('details', { class: 'context', 'data-key': 'context' }, h('summary', {}, t('context')), text);
    box.addEventListener('toggle', () => {
      if (!box.open || text.textContent) return;
      attempt(async () => {
        const body = { event: 'session_start', workspaceId: workspace, nodeId: id };
        const answer = await request('POST /rules/explain', { params: { project }, body });
        text.textContent = answer.text || t('nothingInjected');
      });
    });
    return box;
  }

  /** @param {NodeView} view */
  function edit(view) {
    editing = editNode(element, params, view, () => { editing = null; return load(); });
  }

  element.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select');
    if (event.key === 'e' && !isTyping && !editing && shown?.writable && !event.ctrlKey && !event.metaKey) { event.preventDefault(); edit(shown); }
  });
  load();
  return {
    element,
    hasUnsaved() {
      return Boolean(editing ? editing().length : formValues(logForm, ['log']).log);
    },
    actions() {
      const view = shown;
      if (!view?.writable || editing) return [];
      /** @param {AllowedAction} step @returns {import('./palette.js').Choice} */
      const choice = (step) => ({ label: `${t(step.action)}: ${view.node.title}`, icon: 'action', run: () => takeStep(element, params, step, load) });
      return [
        ...view.actions.filter((step) => !step.blocked).map(choice),
        { label: `${t('edit')}: ${view.node.title}`, icon: 'action', run: () => edit(view) },
        ...(view.node.type === 'planning' ? [{ label: `${t('newChild')}: ${view.node.title}`, icon: /** @type {const} */ ('action'), run: newChild }] : []),
      ];
    },
    refresh(ids) {
      // Children and ancestors are shown too, so any change of the workspace may concern this node.
      if (!editing && (ids === null || ids.length)) load();
    },
  };
}
