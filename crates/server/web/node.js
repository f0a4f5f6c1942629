// One node: its texts, actions, problem and log. A change from the feed never replaces an unsaved edit.

/** @import { Action, AllowedAction, NodeDetail, NodeEdit, NodeType, NodeView, OutdatedNode, Problem, RenderedTexts } from './api-types.js' */
/** @import { Child, DetailView, Go } from './page-types.js' */

import { errorText, hasCode, request } from './api.js';
import { h, setChildren, rerender, renderMarkdown, attempt, runExclusive, toast } from './dom.js';
import { openDialog, field, formValues, showConflict, normalizeLineEnds, parseDocs, formatDocs } from './forms.js';
import { SYMBOLS } from './tree.js';
import { t, statusText, typeText, formatTime } from './words.js';

const EDITED = /** @type {const} */ (['title', 'requirement', 'note', 'docs', 'dependsOn']);

/** Returns the editable fields as they are typed. @param {NodeDetail} node */
const asText = (node) => ({
  title: node.title, requirement: normalizeLineEnds(node.requirement), note: normalizeLineEnds(node.note), docs: formatDocs(node.docs),
  dependsOn: (node.dependsOn ?? []).join('\n'),
});

/**
 * Returns a text of a node as Markdown. If the text is too long for that, its rest follows as plain text.
 * @param {Exclude<keyof RenderedTexts, 'plainFrom'>} name
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
  let isLoaded = false;

  async function load() {
    const requestId = requestCount += 1;
    try {
      const view = await request('GET /workspaces/{workspaceId}/nodes/{nodeId}', { params: { ...params, render: true } });
      if (!editing && requestId === requestCount) rerender(element, () => render(view));
      if (!isLoaded) onLoad(view.ancestors.map((ancestor) => ancestor.id));
      isLoaded = true;
    } catch (error) {
      if (editing) { toast(errorText(error), 'bad'); return; }
      const isDeleted = hasCode(error, 'NODE_NOT_FOUND');
      setChildren(element, h('p', { class: 'empty', role: 'alert' }, isDeleted ? t('deletedNode') : errorText(error)),
        isDeleted ? h('p', { class: 'empty' }, h('button', {
          'data-action': 'restore', onclick: (event) => runExclusive(event.currentTarget, restore),
        }, t('restore'))) : null);
    }
  }

  async function restore() {
    await request('POST /workspaces/{workspaceId}/restore', { params: { workspaceId: workspace }, body: { nodeId: id } });
    await load();
  }

  /** @param {NodeView} view */
  function render(view) {
    const { node, rendered } = view;
    setChildren(element,
      view.ancestors.length ? h('nav', { class: 'breadcrumbs', 'aria-label': 'breadcrumb' },
        view.ancestors.map((ancestor) => [h('a', { href: linkTo(ancestor.id) }, h('bdi', {}, ancestor.title)), ' › '])) : null,
      h('header', {},
        h('h2', {}, h('bdi', {}, node.title)),
        h('div', { class: 'facts' },
          h('span', { class: 'status', 'data-status': node.status }, `${SYMBOLS[node.status]} ${statusText(node.status)}`),
          h('span', { class: 'badge' }, typeText(node.type)),
          node.role ? h('span', { class: 'badge' }, node.role) : null,
          view.writable ? null : h('span', { class: 'badge' }, t('readOnly')),
          node.isolated ? h('span', { class: 'badge' }, t('isolated')) : null,
          view.children.total ? h('span', {}, t('children', view.children.total, view.children.done)) : null,
          node.startedBy && node.status !== 'completed' ? h('span', {}, node.startedBy === '@person' ? t('startedByPerson') : t('startedBy', node.startedBy)) : null),
        buttons(view)),
      problem(view),
      section(t('requirement'), node.requirement && longText('requirement', node.requirement, rendered)),
      section(t('conclusion'), node.conclusion && longText('conclusion', node.conclusion, rendered), 'conclusion'),
      section(t('note'), node.note && longText('note', node.note, rendered)),
      section(t('docs'), node.docs.length > 0 && h('ul', {}, node.docs.map((doc) =>
        h('li', { class: doc.status }, h('code', {}, doc.path), doc.description ? ` — ${doc.description}` : '')))),
      section(t('dependsOn'), node.dependsOn?.length && h('ul', { class: 'dependencies' }, node.dependsOn.map((target) =>
        h('li', {}, h('a', { href: linkTo(target) }, target))))),
      section(t('references'), node.references.length > 0 && h('ul', {}, node.references.map((reference) =>
        h('li', { class: reference.status },
          reference.type === 'node' ? h('a', { href: linkTo(reference.targetId) }, reference.targetId) : h('code', {}, reference.targetId),
          reference.description ? ` — ${reference.description}` : '')))),
      log(view),
      contextBox(),
      h('p', { class: 'meta' }, `${node.id} · ${t('created')} ${formatTime(node.createdAt)} · ${t('updated')} ${formatTime(node.updatedAt)}`));
  }

  /** @param {string} title @param {Child} content @param {string} [kind] */
  function section(title, content, kind) {
    return content ? h('section', { class: kind || '' }, h('h3', {}, title), content) : null;
  }

  /** @param {NodeView} view */
  function buttons(view) {
    const { node, actions } = view;
    if (!view.writable) return null;
    return h('div', { class: 'buttons' },
      actions.map((step) => h('button', {
        class: ['complete', 'start', 'submit'].includes(step.action) ? 'primary' : '', 'data-action': step.action,
        onclick: (event) => transition(event.currentTarget, step),
      }, t(step.action))),
      h('button', { 'data-action': 'edit', onclick: () => edit(view) }, t('edit')),
      node.type === 'planning' ? h('button', { 'data-action': 'child', onclick: newChild }, t('newChild')) : null,
      node.problem ? null : h('button', { 'data-action': 'problem', onclick: () => setProblem(null) }, t('setProblem')),
      node.id === 'root' ? null : h('button', { class: 'danger quiet', 'data-action': 'delete', onclick: () => confirmDelete(node) }, t('delete')));
  }

  /** @param {Action} action @param {string} [conclusion] */
  function applyAction(action, conclusion) {
    return confirmTakeOver(async (force) => {
      const body = { action, conclusion, force: force || undefined };
      await request('POST /workspaces/{workspaceId}/nodes/{nodeId}/transition', { params, body });
      await load();
    });
  }

  /**
   * Runs `change`. A node that another session holds is changed only if the user takes it over.
   * @param {(force: boolean) => Promise<unknown>} change
   */
  async function confirmTakeOver(change) {
    try {
      await change(false);
    } catch (error) {
      if (!hasCode(error, 'NODE_TAKEN')) throw error;
      openDialog({
        title: t('takeOver'), text: t('takeOverText', error.message), confirmLabel: t('takeOver'), danger: true,
        onSubmit: () => change(true),
      });
    }
  }

  /** @param {HTMLElement} button @param {AllowedAction} possible */
  function transition(button, possible) {
    if (!possible.needsConclusion) {
      runExclusive(button, () => applyAction(possible.action));
      return;
    }
    openDialog({
      title: t('conclusionFor', t(possible.action)), confirmLabel: t(possible.action),
      fields: [{ name: 'conclusion', label: t('conclusion'), rows: 5, required: true, autofocus: true }],
      onSubmit: (typed) => applyAction(possible.action, typed.conclusion),
    });
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
        await request('DELETE /workspaces/{workspaceId}/nodes/{nodeId}', { params: { ...params, force } });
        go(linkTo(node.parentId || 'root'));
        toast(t('movedToTrash', node.title), undefined, { label: t('undo'), run: async () => { await restore(); go(linkTo(id)); } });
      }),
    });
  }

  /** @param {NodeView} view */
  function problem(view) {
    const found = view.node.problem;
    if (!found) return null;
    return h('section', { class: 'problem', role: 'note' },
      h('h3', {}, `⚠ ${t('problem')}`), longText('problem', found.description, view.rendered),
      found.nextStep ? [h('h4', {}, t('nextStep')), longText('nextStep', found.nextStep, view.rendered)] : null,
      view.writable ? h('div', { class: 'buttons' },
        h('button', { 'data-action': 'problem-edit', onclick: () => setProblem(found) }, t('edit')),
        h('button', {
          class: 'primary', 'data-action': 'problem-clear',
          onclick: (event) => runExclusive(event.currentTarget, clearProblem),
        }, t('clearProblem'))) : null);
  }

  async function clearProblem() {
    await request('DELETE /workspaces/{workspaceId}/nodes/{nodeId}/problem', { params });
    await load();
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

  /** @param {NodeView} view */
  function log(view) {
    const { node, logTotal } = view;
    const earlier = logTotal - node.log.length;
    return h('section', { class: 'log' }, h('h3', {}, t('log')), view.writable ? logForm : null,
      h('ol', { class: 'timeline' }, [...node.log].reverse().map((line) => h('li', { class: line.operator },
        h('time', {}, line.timestamp || '–'), h('span', { class: 'operator' }, line.operator), h('bdi', {}, line.event)))),
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
    const conflictBox = h('div', {});
    const { node } = view;
    const before = asText(node);
    const form = h('form', { class: 'edit' },
      field({ name: 'title', label: t('title'), value: node.title, required: true, autofocus: true }),
      field({ name: 'requirement', label: t('requirement'), value: node.requirement, rows: 8 }),
      field({ name: 'note', label: t('note'), value: node.note, rows: 5 }),
      field({ name: 'docs', label: t('docs'), value: formatDocs(node.docs), rows: 3, help: t('docsHelp') }),
      field({ name: 'dependsOn', label: t('dependsOn'), value: before.dependsOn, rows: 2, help: t('dependsOnHelp') }),
      conflictBox,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', onclick: end }, t('cancelEdit')),
        h('button', { type: 'submit', class: 'primary' }, t('save'))));
    let { version } = view;
    const changes = () => { const typed = formValues(form, EDITED); return EDITED.filter((name) => normalizeLineEnds(typed[name]) !== before[name]); };
    editing = changes;
    form.addEventListener('submit', (event) => { event.preventDefault(); runExclusive(form, save); });
    setChildren(element, h('h2', {}, t('edit')), form);
    form.querySelector('input')?.focus();

    function end() {
      editing = null;
      return load();
    }

    async function save() {
      const typed = formValues(form, EDITED);
      // Only edited fields are sent: another session may have changed the others.
      const changed = changes();
      if (!changed.length) { await end(); return; }
      /** @type {NodeEdit} */
      const body = {};
      for (const name of changed) {
        if (name === 'docs') body.docs = parseDocs(typed.docs, node.docs);
        else if (name === 'dependsOn') body.dependsOn = typed.dependsOn.split(/\s+/).filter(Boolean);
        else body[name] = normalizeLineEnds(typed[name]);
      }
      try {
        await request('PATCH /workspaces/{workspaceId}/nodes/{nodeId}', { params, body, version });
      } catch (error) {
        if (!hasCode(error, 'OUTDATED')) throw error;
        const outdated = /** @type {OutdatedNode} */ (error.details);
        const now = asText(outdated.current);
        /** @type {[string, string, string][]} */
        const pairs = changed.map((name) => [t(name), now[name], typed[name]]);
        const overwrite = () => { version = outdated.version; conflictBox.replaceChildren(); runExclusive(form, save); };
        showConflict(conflictBox, pairs, { discard: end, overwrite });
        return;
      }
      toast(t('saved'));
      await end();
    }
  }

  load();
  return {
    element,
    hasUnsaved() {
      return Boolean(editing ? editing().length : formValues(logForm, ['log']).log);
    },
    refresh(ids) {
      // Children and ancestors are shown too, so any change of the workspace may concern this node.
      if (!editing && (ids === null || ids.length)) load();
    },
  };
}
