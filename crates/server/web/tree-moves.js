// Moves nodes in the tree, by dragging and with Alt and the arrow keys. Every move can be undone.

/** @import { NodePlace } from './api-types.js' */
/** @import { Tree } from './tree.js' */

import { request } from './api.js';
import { attempt } from './dom.js';
import { offerUndo } from './undo.js';
import { t } from './words.js';

let isMoving = false;

/** Moves a node and offers to undo it. The change feed then reports the new order. @param {Tree} tree @param {string} id @param {NodePlace} place */
async function move(tree, id, place) {
  const node = tree.nodes.get(id);
  if (!node || isMoving) return;
  const params = { workspaceId: tree.workspace, nodeId: id };
  const back = placeOf(tree, id);
  isMoving = true;
  try {
    await request('POST /workspaces/{workspaceId}/nodes/{nodeId}/move', { params, body: place });
  } finally {
    isMoving = false;
  }
  await tree.refresh([id]);
  if (place.parentId) await tree.reveal(place.parentId);
  if (back) offerUndo(t('moved', node.row.title), () => request('POST /workspaces/{workspaceId}/nodes/{nodeId}/move', { params, body: back }));
}

/** Returns where a node is, relative to a sibling or, without one, to its parent. @param {Tree} tree @param {string} id @returns {NodePlace | null} */
function placeOf(tree, id) {
  const parentId = tree.nodes.get(id)?.row.parentId;
  const siblings = parentId ? tree.nodes.get(parentId)?.childIds : null;
  if (!parentId || !siblings) return null;
  const at = siblings.indexOf(id);
  if (at > 0) return { after: siblings[at - 1] };
  return siblings.length > 1 ? { before: siblings[1] } : { parentId };
}

/** Handles an arrow key with Alt: up and down reorder, right moves into the node above, left out of the parent. @param {Tree} tree @param {string} id @param {KeyboardEvent} event */
export function moveWithKey(tree, id, event) {
  const parentId = tree.nodes.get(id)?.row.parentId;
  const siblings = (parentId && tree.nodes.get(parentId)?.childIds) || [];
  const at = siblings.indexOf(id);
  const above = tree.nodes.get(siblings[at - 1])?.row;
  /** @type {Record<string, NodePlace | null>} */
  const places = {
    ArrowUp: at > 0 ? { before: siblings[at - 1] } : null,
    ArrowDown: siblings[at + 1] ? { after: siblings[at + 1] } : null,
    ArrowRight: above && above.type === 'planning' ? { parentId: above.id } : null,
    ArrowLeft: parentId && parentId !== 'root' ? { after: parentId } : null,
  };
  if (!(event.key in places)) return;
  event.preventDefault();
  const place = places[event.key];
  if (at < 0 || !place || tree.matches) return;
  attempt(() => move(tree, id, place));
}

/** Returns where a dragged node would be dropped. @param {Tree} tree @param {HTMLElement} row @param {number} y @returns {{ place: NodePlace, kind: string } | null} */
function dropPlace(tree, row, y) {
  const id = row.dataset.id || '';
  const { top, height } = row.getBoundingClientRect();
  const share = (y - top) / height;
  const isParent = tree.nodes.get(id)?.row.type === 'planning';
  if (isParent && (id === 'root' || (share > 0.3 && share < 0.7))) return { place: { parentId: id }, kind: 'into' };
  if (id === 'root') return null;
  return share < 0.5 ? { place: { before: id }, kind: 'before' } : { place: { after: id }, kind: 'after' };
}

/** Lets the user drag rows. @param {Tree} tree */
export function watchDrag(tree) {
  /** @type {string | null} */
  let dragged = null;
  /** @param {Event} event */
  const rowOf = (event) => (event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest('.row[data-id]')) : null);
  const clear = () => tree.element.querySelectorAll('[data-drop]').forEach((row) => row.removeAttribute('data-drop'));
  tree.element.addEventListener('dragstart', (event) => {
    dragged = rowOf(event)?.dataset.id || null;
    if (dragged) event.dataTransfer?.setData('text/plain', dragged);
  });
  tree.element.addEventListener('dragover', (event) => {
    const row = rowOf(event);
    clear();
    const found = dragged && row && row.dataset.id !== dragged ? dropPlace(tree, row, event.clientY) : null;
    if (!row || !found) return;
    event.preventDefault();
    row.dataset.drop = found.kind;
  });
  tree.element.addEventListener('drop', (event) => {
    const row = rowOf(event);
    const found = row ? dropPlace(tree, row, event.clientY) : null;
    const id = dragged;
    clear();
    if (!id || !found) return;
    event.preventDefault();
    attempt(() => move(tree, id, found.place));
  });
  tree.element.addEventListener('dragend', () => { dragged = null; clear(); });
}
