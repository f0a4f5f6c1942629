// One node: its texts, actions, problem and log. A change from the feed never replaces an unsaved edit.

import { get, post, put, patch, remove, nodePath, enc } from './api.js';
import { h, setChildren, rerender, renderMarkdown, attempt, runExclusive, toast } from './dom.js';
import { openDialog, field, formValues, showConflict, normalizeLineEnds, parseDocs, formatDocs } from './forms.js';
import { SYMBOLS } from './tree.js';
import { t, statusText, typeText, formatTime } from './words.js';

const EDITED = ['title', 'requirement', 'note', 'docs'];

export function nodeView(workspace, id, go, { linkTo, project, onLoad }) {
  const element = h('div', { class: 'node' }, h('p', { class: 'empty' }, t('loading')));
  const path = nodePath(workspace, id);
  // Created once, so that its text is kept when the node is rendered again.
  const logForm = createLogForm();
  let editing = null;
  let requestCount = 0;
  let isLoaded = false;

  async function load() {
    const requestId = requestCount += 1;
    try {
      const view = await get(path, { render: true });
      if (!editing && requestId === requestCount) rerender(element, () => render(view));
      if (!isLoaded) onLoad(view.ancestors.map((ancestor) => ancestor.id));
      isLoaded = true;
    } catch (error) {
      if (editing) { toast(error.message, 'bad'); return; }
      const text = error.code === 'NODE_NOT_FOUND' ? t('deletedNode') : [error.message, error.hint ? ` — ${error.hint}` : ''];
      setChildren(element, h('p', { class: 'empty', role: 'alert' }, text));
    }
  }

  function render(view) {
    const { node } = view;
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
          node.startedBy && node.status !== 'completed' ? h('span', {}, t('startedBy', node.startedBy)) : null),
        buttons(view)),
      problem(view),
      section(t('requirement'), node.requirement && renderMarkdown(view.rendered.requirement)),
      section(t('conclusion'), node.conclusion && renderMarkdown(view.rendered.conclusion), 'conclusion'),
      section(t('note'), node.note && renderMarkdown(view.rendered.note)),
      section(t('docs'), node.docs.length > 0 && h('ul', {}, node.docs.map((doc) =>
        h('li', { class: doc.status }, h('code', {}, doc.path), doc.description ? ` — ${doc.description}` : '')))),
      section(t('references'), node.references.length > 0 && h('ul', {}, node.references.map((reference) =>
        h('li', { class: reference.status },
          reference.type === 'node' ? h('a', { href: linkTo(reference.targetId) }, reference.targetId) : h('code', {}, reference.targetId),
          reference.description ? ` — ${reference.description}` : '')))),
      log(view),
      contextBox(),
      h('p', { class: 'meta' }, `${node.id} · ${t('created')} ${formatTime(node.createdAt)} · ${t('updated')} ${formatTime(node.updatedAt)}`));
  }

  function section(title, content, kind) {
    return content ? h('section', { class: kind || '' }, h('h3', {}, title), content) : null;
  }

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

  function applyAction(action, conclusion) {
    return confirmTakeOver(async (force) => {
      const body = conclusion === undefined ? { action } : { action, conclusion };
      await post(`${path}/transition`, force ? { ...body, force } : body);
      await load();
    });
  }

  // A node that another session holds is changed only if the user takes it over.
  async function confirmTakeOver(change) {
    try {
      await change(false);
    } catch (error) {
      if (error.code !== 'NODE_TAKEN') throw error;
      openDialog({
        title: t('takeOver'), text: t('takeOverText', error.message), confirmLabel: t('takeOver'), danger: true,
        onSubmit: () => change(true),
      });
    }
  }

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
        const made = await post(`/workspaces/${enc(workspace)}/nodes`, { ...typed, parentId: id });
        go(linkTo(made.nodeId));
      },
    });
  }

  function confirmDelete(node) {
    openDialog({
      title: t('delete'), text: t('deleteNode', node.title), confirmLabel: t('delete'), danger: true,
      onSubmit: () => confirmTakeOver(async (force) => {
        await remove(path, force ? { force } : undefined);
        go(linkTo(node.parentId || 'root'));
      }),
    });
  }

  function problem(view) {
    const found = view.node.problem;
    if (!found) return null;
    return h('section', { class: 'problem', role: 'note' },
      h('h3', {}, `⚠ ${t('problem')}`), renderMarkdown(view.rendered.problem),
      found.nextStep ? [h('h4', {}, t('nextStep')), renderMarkdown(view.rendered.nextStep)] : null,
      view.writable ? h('div', { class: 'buttons' },
        h('button', { 'data-action': 'problem-edit', onclick: () => setProblem(found) }, t('edit')),
        h('button', {
          class: 'primary', 'data-action': 'problem-clear',
          onclick: (event) => runExclusive(event.currentTarget, async () => { await remove(`${path}/problem`); await load(); }),
        }, t('clearProblem'))) : null);
  }

  function setProblem(found) {
    openDialog({
      title: t('problem'),
      fields: [
        { name: 'description', label: t('problem'), rows: 3, value: found ? found.description : '', autofocus: true },
        { name: 'nextStep', label: t('nextStep'), rows: 2, value: found ? found.nextStep : '' },
      ],
      onSubmit: async (typed) => {
        await put(`${path}/problem`, typed);
        await load();
      },
    });
  }

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
        await post(`${path}/log`, { log: formValues(form).log });
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
        const body = { sessionId: 'page', event: 'session_start', workspaceId: workspace, nodeId: id };
        const answer = await post('/rules/explain', body, { project });
        text.textContent = answer.text || t('nothingInjected');
      });
    });
    return box;
  }

  function edit(view) {
    const conflictBox = h('div', {});
    const { node } = view;
    const before = { title: node.title, requirement: normalizeLineEnds(node.requirement), note: normalizeLineEnds(node.note), docs: formatDocs(node.docs) };
    const form = h('form', { class: 'edit' },
      field({ name: 'title', label: t('title'), value: node.title, required: true, autofocus: true }),
      field({ name: 'requirement', label: t('requirement'), value: node.requirement, rows: 8 }),
      field({ name: 'note', label: t('note'), value: node.note, rows: 5 }),
      field({ name: 'docs', label: t('docs'), value: formatDocs(node.docs), rows: 3, help: t('docsHelp') }),
      conflictBox,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', onclick: end }, t('cancelEdit')),
        h('button', { type: 'submit', class: 'primary' }, t('save'))));
    let { version } = view;
    const changes = () => { const typed = formValues(form); return EDITED.filter((name) => normalizeLineEnds(typed[name]) !== before[name]); };
    editing = changes;
    form.addEventListener('submit', (event) => { event.preventDefault(); runExclusive(form, save); });
    setChildren(element, h('h2', {}, t('edit')), form);
    form.querySelector('input').focus();

    function end() {
      editing = null;
      return load();
    }

    async function save() {
      const typed = formValues(form);
      // Only edited fields are sent: another session may have changed the others.
      const changed = changes();
      if (!changed.length) { await end(); return; }
      const body = Object.fromEntries(changed.map((name) => [name, name === 'docs' ? parseDocs(typed.docs, node.docs) : normalizeLineEnds(typed[name])]));
      try {
        await patch(path, body, version);
      } catch (error) {
        if (error.code !== 'OUTDATED') throw error;
        const now = { ...error.details.current, docs: formatDocs(error.details.current.docs) };
        const pairs = changed.map((name) => [t(name), now[name], typed[name]]);
        const overwrite = () => { version = error.details.version; conflictBox.replaceChildren(); runExclusive(form, save); };
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
      return Boolean(editing ? editing().length : formValues(logForm).log);
    },
    refresh(ids) {
      // Children and ancestors are shown too, so any change of the workspace may concern this node.
      if (!editing && (ids === null || ids.length)) load();
    },
  };
}
