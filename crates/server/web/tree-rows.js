// The rows of the tree: status, title, and what happens in a node or below it.

/** @import { NodeRow } from './api-types.js' */
/** @import { Child } from './page-types.js' */
/** @import { Tree, TreeNode, VisibleNode } from './tree.js' */

import { h } from './dom.js';
import { icon, statusIcon } from './icons.js';
import { formatAgo } from './time.js';
import { t, formatNumber, statusText, typeText } from './words.js';

/** @param {Tree} tree @param {VisibleNode} row @param {TreeNode} treeNode */
export function nodeRow(tree, row, { row: node, open }) {
  const isParent = node.children > 0 && !tree.matches;
  /** @param {() => unknown} run */
  const onClick = (run) => (/** @type {Event} */ event) => { event.stopPropagation(); tree.active = row.id; run(); };
  return h('div', {
    class: `row ${row.id === tree.active ? 'active' : ''} ${tree.matches ? 'tall' : ''}`, id: `row-${row.id}`, 'data-id': row.id, role: 'treeitem',
    'aria-level': row.level, 'aria-posinset': row.position, 'aria-setsize': row.setSize,
    'aria-expanded': isParent ? String(open) : null, 'aria-selected': String(row.id === tree.selected),
    'data-status': node.status, draggable: row.id === 'root' || tree.matches ? null : 'true',
    onclick: () => { tree.active = row.id; tree.open(row.id); },
  },
  h('span', { class: 'toggle', 'aria-hidden': 'true', onclick: onClick(() => tree.toggle(row.id)) },
    isParent ? icon(open ? 'open' : 'closed') : ''),
  h('span', { class: 'symbol', title: `${statusText(node.status)} (s)`, 'aria-hidden': 'true', onclick: onClick(() => tree.openSteps(row.id)) },
    node.damage ? icon('damaged') : statusIcon(node.status)),
  tree.matches ? matchTexts(node) : h('bdi', { class: 'title', title: node.title }, node.title),
  h('span', { class: 'sr-only' }, `, ${typeText(node.type)}, ${statusText(node.status)}`),
  node.hasProblem ? mark('warning', 'warn', t('problem')) : null,
  h('span', { class: 'aside' }, aside(tree, node)));
}

/** Returns the title of a match with the text that was found and its path. @param {NodeRow} node */
function matchTexts(node) {
  const path = (node.ancestors || []).slice(1).map((above) => above.title).join(' › ');
  return h('span', { class: 'match' },
    h('bdi', { class: 'title', title: node.title }, node.title),
    h('bdi', { class: 'path' }, [path, node.found ? `${t(node.found.field)}: ${node.found.text}` : ''].filter(Boolean).join(' · ')));
}

/** @param {Parameters<typeof icon>[0]} name @param {string} kind @param {string} text @param {string} [shown] */
function mark(name, kind, text, shown) {
  return h('span', { class: `mark ${kind}`, title: text }, icon(name), shown || null, h('span', { class: 'sr-only' }, text));
}

/** Returns what a row shows at its end: the counts of a branch, or who works on a node and what it waits for. @param {Tree} tree @param {NodeRow} node @returns {Child} */
function aside(tree, node) {
  const bound = tree.bound.get(node.id) || [];
  const agents = bound.map((line) => h('span', { class: 'chip bound', title: `${t('boundHere')}: ${line.sessionId}` },
    h('span', { class: 'dot on' }), line.client || line.platform || t('session'), h('span', { class: 'sr-only' }, t('boundHere'))));
  const waits = tree.openTargets(node).map((target) => target?.title);
  const after = waits.length ? h('bdi', { class: 'after', title: waits.join(', ') }, t('after', waits.join(', '))) : null;
  if (node.branch) return [agents, after, branchCounts(node.branch, tree.agentsBelow.get(node.id) || 0)];
  const isRunning = node.status === 'implementing' || node.status === 'validating';
  return [
    agents, after,
    isRunning ? h('span', { class: 'count' }, bound.length || node.holder ? '' : `${t('noSessionHere')} · `, formatAgo(node.statusChangedAt)) : null,
  ];
}

/** @param {NonNullable<NodeRow['branch']>} branch @param {number} agents */
export function branchCounts({ done, total, running, failed, problems }, agents) {
  return h('span', { class: 'branch' },
    running ? mark('running', 'running', t('runningBelow', running), formatNumber(running)) : null,
    agents ? mark('agent', 'agents', t('agentsBelow', agents), formatNumber(agents)) : null,
    failed ? mark('failed', 'failed', t('failedBelow', failed), formatNumber(failed)) : null,
    problems ? mark('warning', 'warn', t('problemsBelow', problems), formatNumber(problems)) : null,
    h('span', { class: 'count' }, `${formatNumber(done)}/${formatNumber(total)}`), progressBar(done, total));
}

/** Returns a bar that shows how much is done. The numbers beside it say the same. @param {number} done @param {number} total */
export function progressBar(done, total) {
  const filled = h('span', { class: 'filled' });
  filled.style.inlineSize = `${total ? (100 * done) / total : 0}%`;
  return h('span', { class: 'progress-bar', 'aria-hidden': 'true' }, filled);
}
