// The form that edits the texts, docs and dependencies of a node. Only edited fields are sent.

/** @import { NodeDetail, NodeEdit, NodeView, OfNode, OutdatedNode } from './api-types.js' */

import { hasCode, request } from './api.js';
import { h, setChildren, runExclusive, toast } from './dom.js';
import { field, formValues, showConflict, normalizeLineEnds, parseDocs, formatDocs } from './forms.js';
import { t } from './words.js';

const EDITED = /** @type {const} */ (['title', 'requirement', 'note', 'docs', 'dependsOn']);

/** Returns the editable fields as they are typed. @param {NodeDetail} node */
const asText = (node) => ({
  title: node.title, requirement: normalizeLineEnds(node.requirement), note: normalizeLineEnds(node.note), docs: formatDocs(node.docs),
  dependsOn: (node.dependsOn ?? []).join('\n'),
});

/**
 * Shows the form in `element`. Returns a function that returns the names of the edited fields.
 * @param {HTMLElement} element
 * @param {OfNode} params
 * @param {NodeView} view
 * @param {() => unknown} end
 */
export function editNode(element, params, view, end) {
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
  form.addEventListener('submit', (event) => { event.preventDefault(); runExclusive(form, save); });
  setChildren(element, h('h2', {}, t('edit')), form);
  form.querySelector('input')?.focus();

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
  return changes;
}
