// One node: its texts, what may be done with it, its problem and its log. A person's unfinished edit is never replaced
// by news.

import { get, post, put, patch, remove, nodePath, enc } from './api.js';
import { h, show, repaint, rendered, attempt, once, toast } from './dom.js';
import { ask, field, values, conflict, asTyped, docsOf, docsAsText } from './forms.js';
import { SYMBOLS } from './tree.js';
import { t, statusWord, typeWord, when } from './words.js';

const EDITED = ['title', 'requirement', 'note', 'docs'];

export function nodeView(workspace, id, go, { way, project, found }) {
  const element = h('div', { class: 'node' }, h('p', { class: 'empty' }, t('loading')));
  const path = nodePath(workspace, id);
  // One form for as long as the node is shown: what was typed into it outlives every news.
  const logForm = newLogForm();
  let editing = null;
  let asked = 0;
  let isFound = false;

  async function load() {
    const turn = asked += 1;
    try {
      const view = await get(path, { render: true });
      if (!editing && turn === asked) repaint(element, () => paint(view));
      if (!isFound) found(view.ancestors.map((above) => above.id));
      isFound = true;
    } catch (error) {
      if (editing) { toast(error.message, 'bad'); return; }
      const text = error.code === 'NODE_NOT_FOUND' ? t('gone') : [error.message, error.hint ? ` — ${error.hint}` : ''];
      show(element, h('p', { class: 'empty', role: 'alert' }, text));
    }
  }

  function paint(view) {
    const { node } = view;
    show(element,
      view.ancestors.length ? h('nav', { class: 'crumbs', 'aria-label': 'breadcrumb' },
        view.ancestors.map((above) => [h('a', { href: way(above.id) }, h('bdi', {}, above.title)), ' › '])) : null,
      h('header', {},
        h('h2', {}, h('bdi', {}, node.title)),
        h('div', { class: 'facts' },
          h('span', { class: 'status', 'data-status': node.status }, `${SYMBOLS[node.status]} ${statusWord(node.status)}`),
          h('span', { class: 'badge' }, typeWord(node.type)),
          node.role ? h('span', { class: 'badge' }, node.role) : null,
          view.writable ? null : h('span', { class: 'badge' }, t('readOnly')),
          node.isolated ? h('span', { class: 'badge' }, t('isolated')) : null,
          view.children.total ? h('span', {}, t('children', view.children.total, view.children.done)) : null,
          node.startedBy && node.status !== 'completed' ? h('span', {}, t('startedBy', node.startedBy)) : null),
        buttons(view)),
      problem(view),
      section(t('requirement'), node.requirement && rendered(view.rendered.requirement)),
      section(t('conclusion'), node.conclusion && rendered(view.rendered.conclusion), 'conclusion'),
      section(t('note'), node.note && rendered(view.rendered.note)),
      section(t('docs'), node.docs.length > 0 && h('ul', {}, node.docs.map((doc) =>
        h('li', { class: doc.status }, h('code', {}, doc.path), doc.description ? ` — ${doc.description}` : '')))),
      section(t('references'), node.references.length > 0 && h('ul', {}, node.references.map((reference) =>
        h('li', { class: reference.status },
          reference.type === 'node' ? h('a', { href: way(reference.targetId) }, reference.targetId) : h('code', {}, reference.targetId),
          reference.description ? ` — ${reference.description}` : '')))),
      log(view),
      contextBox(),
      h('p', { class: 'meta' }, `${node.id} · ${t('created')} ${when(node.createdAt)} · ${t('updated')} ${when(node.updatedAt)}`));
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
      node.id === 'root' ? null : h('button', { class: 'danger quiet', 'data-action': 'delete', onclick: () => erase(node) }, t('delete')));
  }

  async function step(action, conclusion) {
    await post(`${path}/transition`, conclusion === undefined ? { action } : { action, conclusion });
    await load();
  }

  function transition(button, possible) {
    if (!possible.needsConclusion) {
      once(button, () => step(possible.action));
      return;
    }
    ask({
      title: t('conclusionFor', t(possible.action)), yes: t(possible.action),
      fields: [{ name: 'conclusion', label: t('conclusion'), rows: 5, required: true, autofocus: true }],
      done: (typed) => step(possible.action, typed.conclusion),
    });
  }

  function newChild() {
    ask({
      title: t('newChild'), yes: t('create'),
      fields: [
        { name: 'title', label: t('title'), required: true, autofocus: true },
        { name: 'type', label: t('type'), options: [['execution', typeWord('execution')], ['planning', typeWord('planning')]] },
        { name: 'requirement', label: t('requirement'), rows: 4 },
      ],
      done: async (typed) => {
        const made = await post(`/workspaces/${enc(workspace)}/nodes`, { ...typed, parentId: id });
        go(way(made.nodeId));
      },
    });
  }

  function erase(node) {
    ask({
      title: t('delete'), text: t('deleteNode', node.title), yes: t('delete'), danger: true,
      done: async () => {
        await remove(path);
        go(way(node.parentId || 'root'));
      },
    });
  }

  function problem(view) {
    const found = view.node.problem;
    if (!found) return null;
    return h('section', { class: 'problem', role: 'note' },
      h('h3', {}, `⚠ ${t('problem')}`), rendered(view.rendered.problem),
      found.nextStep ? [h('h4', {}, t('nextStep')), rendered(view.rendered.nextStep)] : null,
      view.writable ? h('div', { class: 'buttons' },
        h('button', { 'data-action': 'problem-edit', onclick: () => setProblem(found) }, t('edit')),
        h('button', {
          class: 'primary', 'data-action': 'problem-clear',
          onclick: (event) => once(event.currentTarget, async () => { await remove(`${path}/problem`); await load(); }),
        }, t('clearProblem'))) : null);
  }

  function setProblem(found) {
    ask({
      title: t('problem'),
      fields: [
        { name: 'description', label: t('problem'), rows: 3, value: found ? found.description : '', autofocus: true },
        { name: 'nextStep', label: t('nextStep'), rows: 2, value: found ? found.nextStep : '' },
      ],
      done: async (typed) => {
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
        h('time', {}, line.timestamp || '–'), h('span', { class: 'who' }, line.operator), h('bdi', {}, line.event)))),
      earlier > 0 ? h('p', { class: 'meta' }, t('earlier', earlier)) : null);
  }

  function newLogForm() {
    const form = h('form', { class: 'inline' },
      h('input', { name: 'log', 'aria-label': t('addLog'), placeholder: t('addLog'), required: true, dir: 'auto' }),
      h('button', { type: 'submit', 'data-action': 'log' }, t('add')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      once(form, async () => {
        await post(`${path}/log`, { log: values(form).log });
        form.reset();
        await load();
      });
    });
    return form;
  }

  function contextBox() {
    const text = h('pre', { class: 'said', dir: 'auto' });
    const box = h('details', { class: 'context', 'data-key': 'context' }, h('summary', {}, t('context')), text);
    box.addEventListener('toggle', () => {
      if (!box.open || text.textContent) return;
      attempt(async () => {
        const body = { sessionId: 'page', event: 'session_start', workspaceId: workspace, nodeId: id };
        const answer = await post('/rules/explain', body, { project });
        text.textContent = answer.text || t('nothingSaid');
      });
    });
    return box;
  }

  function edit(view) {
    const place = h('div', {});
    const { node } = view;
    const was = { title: node.title, requirement: asTyped(node.requirement), note: asTyped(node.note), docs: docsAsText(node.docs) };
    const form = h('form', { class: 'edit' },
      field({ name: 'title', label: t('title'), value: node.title, required: true, autofocus: true }),
      field({ name: 'requirement', label: t('requirement'), value: node.requirement, rows: 8 }),
      field({ name: 'note', label: t('note'), value: node.note, rows: 5 }),
      field({ name: 'docs', label: t('docs'), value: docsAsText(node.docs), rows: 3, help: t('docsHelp') }),
      place,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', onclick: end }, t('cancelEdit')),
        h('button', { type: 'submit', class: 'primary' }, t('save'))));
    let { version } = view;
    const changes = () => { const typed = values(form); return EDITED.filter((name) => asTyped(typed[name]) !== was[name]); };
    editing = changes;
    form.addEventListener('submit', (event) => { event.preventDefault(); once(form, save); });
    show(element, h('h2', {}, t('edit')), form);
    form.querySelector('input').focus();

    function end() {
      editing = null;
      return load();
    }

    async function save() {
      const typed = values(form);
      // Only what was changed is sent: the rest may be somebody else's by now.
      const changed = changes();
      if (!changed.length) { await end(); return; }
      const body = Object.fromEntries(changed.map((name) => [name, name === 'docs' ? docsOf(typed.docs, node.docs) : asTyped(typed[name])]));
      try {
        await patch(path, body, version);
      } catch (error) {
        if (error.code !== 'OUTDATED') throw error;
        const now = { ...error.details.current, docs: docsAsText(error.details.current.docs) };
        const pairs = changed.map((name) => [t(name), now[name], typed[name]]);
        const keep = () => { version = error.details.version; place.replaceChildren(); once(form, save); };
        conflict(place, pairs, { drop: end, keep });
        return;
      }
      toast(t('saved'));
      await end();
    }
  }

  load();
  return {
    element,
    unsaved() {
      return Boolean(editing ? editing().length : values(logForm).log);
    },
    changed(ids) {
      // Children and ancestors count too, and there are few of these: asking is cheaper than knowing.
      if (!editing && (ids === null || ids.length)) load();
    },
  };
}
