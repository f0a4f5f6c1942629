// The tree of a workspace. The children of a node are fetched when it is expanded, and only the visible rows are in the
// document, so that a tree of ten thousand nodes stays fast. It opens along the branches in which something happens.

/** @import { Binding, NodeFilter, NodeRow, NodeStatus } from './api-types.js' */
/** @import { Matches } from './tree-search.js' */

/**
 * A known node. `childIds` is null if its children are not fetched; `next` is the position of the next page of them.
 * @typedef {{ row: NodeRow, childIds: string[] | null, next: string | null, open: boolean }} TreeNode
 */
/** @typedef {{ id: string, level: number, position: number, setSize: number, more?: undefined }} VisibleNode */
/** The end of a level that has more pages. @typedef {{ id?: undefined, level: number, more: () => Promise<void> }} MoreRow */

import { hasCode, request } from './api.js';
import { h, attempt, debounce } from './dom.js';
import { moveWithKey, watchDrag } from './tree-moves.js';
import { nodeRow } from './tree-rows.js';
import { fetchMoreMatches, filterTree } from './tree-search.js';
import { openStepMenu } from './transitions.js';
import { t } from './words.js';

const ROW = 30;
const MATCH_ROW = 48;
const MARGIN = 12;
export const PAGE = 500;
/** Branches are not opened by themselves beyond this number of rows. */
const OPENED_ROWS = 150;
/** A branch with more children is not opened by itself. */
const OPENED_CHILDREN = 60;

/** @type {Record<NodeStatus, string>} */
export const SYMBOLS = {
  pending: '○', planning: '◇', monitoring: '◆', implementing: '▶', validating: '◉', completed: '✔', failed: '✘', cancelled: '–',
};

export class Tree {
  /** @param {string} workspace @param {(id: string) => void} onOpen @param {(found: Matches | null) => void} onMatches */
  constructor(workspace, onOpen, onMatches) {
    this.workspace = workspace;
    this.onOpen = onOpen;
    this.onMatches = onMatches;
    /** @type {Map<string, TreeNode>} */
    this.nodes = new Map();
    /** @type {(VisibleNode | MoreRow)[]} */
    this.rows = [];
    /** @type {string | null} */
    this.active = null;
    /** @type {string | null} */
    this.selected = null;
    this.activeFilter = { query: '', status: '' };
    /** The ids of the nodes that match the filter. @type {string[] | null} */
    this.matches = null;
    /** @type {string | null} */
    this.nextMatch = null;
    this.fetching = false;
    this.hasFailed = false;
    /** The elements of the visible rows by position. @type {Map<number, HTMLElement>} */
    this.built = new Map();
    /** Nodes that shown nodes depend on and that are not known. @type {Set<string>} */
    this.unknownTargets = new Set();
    /** Nodes that were asked for because others depend on them. @type {Set<string>} */
    this.missing = new Set();
    /** The live sessions that are focused on a node. @type {Map<string, Binding[]>} */
    this.bound = new Map();
    /** The number of live sessions below a node. @type {Map<string, number>} */
    this.agentsBelow = new Map();
    this.spacer = h('div', { class: 'rows', role: 'presentation' });
    this.element = h('div', {
      class: 'tree', role: 'tree', tabindex: 0, 'aria-label': `${t('tree')}: ${t('treeKeys')}`,
      onscroll: () => this.render(true), onkeydown: (event) => this.onKey(event),
    }, this.spacer);
    watchDrag(this);
    this.fetchUnknownTargets = debounce(() => this.fetchTargets(), 50);
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /** The height of a row: a match has a second line with its path. */
  get rowHeight() {
    return this.matches ? MATCH_ROW : ROW;
  }

  /** Fetches a page of nodes. @param {Omit<NodeFilter, 'workspaceId'>} filter */
  fetchPage(filter) {
    return request('GET /workspaces/{workspaceId}/nodes', { params: { ...filter, workspaceId: this.workspace } });
  }

  /**
   * Fetches the first levels, opens the active branches, and expands `ancestors`, the path to the node `target`.
   * @param {string[]} ancestors
   * @param {string | null} target
   * @param {Promise<void>} agents ends when the sessions are known
   */
  async load(ancestors, target, agents) {
    await this.fetchLevel('root');
    const root = this.nodes.get('root');
    if (root) root.open = true;
    await this.openActive();
    for (const id of ancestors) {
      if (id === 'root') continue;
      await this.fetchLevel(id);
      const node = this.nodes.get(id);
      if (node) node.open = true;
    }
    // The target may be on a later page of its siblings.
    const parent = this.nodes.get(ancestors[ancestors.length - 1]);
    while (target && parent && parent.next && !parent.childIds?.includes(target)) await this.fetchLevel(parent.row.id);
    this.updateRows();
    // Shown before the sessions are known, which seldom open another branch.
    await agents;
    await this.openActive();
    this.updateRows();
  }

  /** Opens the branches with running nodes, problems or agents; if there are none, the branches that are not done. */
  async openActive() {
    const root = this.nodes.get('root');
    const isActive = (/** @type {NodeRow} */ { id, branch }) => Boolean(branch && branch.running + branch.problems + branch.failed + (this.agentsBelow.get(id) || 0));
    const isUnfinished = (/** @type {NodeRow} */ { branch }) => Boolean(branch && branch.done < branch.total);
    const isWanted = root && isActive(root.row) ? isActive : isUnfinished;
    let left = OPENED_ROWS - (root?.childIds?.length || 0);
    let level = root?.childIds || [];
    while (level.length && left > 0) {
      const opened = level.map((id) => this.nodes.get(id)).filter((node) => {
        if (!node || !isWanted(node.row) || node.row.children > OPENED_CHILDREN || node.row.children > left) return false;
        left -= node.row.children;
        return true;
      });
      await Promise.all(opened.map((node) => this.fetchLevel(/** @type {TreeNode} */ (node).row.id)));
      level = opened.flatMap((node) => { if (node) node.open = true; return node?.childIds || []; });
    }
  }

  /** Fetches and opens everything. */
  async expandAll() {
    /** @type {Map<string, string[]>} */
    const children = new Map();
    /** @type {string | undefined} */
    let after;
    do {
      const page = await this.fetchPage({ parentId: 'root', limit: 1000, after });
      for (const row of page.nodes) {
        this.storeRow(row);
        if (row.parentId && row.id !== 'root') children.set(row.parentId, [...(children.get(row.parentId) || []), row.id]);
      }
      after = page.nextAfter;
    } while (after);
    for (const [id, childIds] of children) {
      const node = this.nodes.get(id);
      if (node) Object.assign(node, { childIds, next: null, open: true });
    }
    this.updateRows();
  }

  collapseAll() {
    this.nodes.forEach((node, id) => { node.open = id === 'root'; });
    this.element.scrollTop = 0;
    this.updateRows();
  }

  /** Fetches the next page of the children of a node. @param {string} parent */
  async fetchLevel(parent) {
    const known = this.nodes.get(parent);
    const before = known ? known.childIds : null;
    const after = known && before ? known.next : null;
    if (before && !after) return;
    const page = await this.fetchPage({ parentId: parent, depth: 1, limit: PAGE, after: after || undefined });
    for (const row of page.nodes) this.storeRow(row);
    const node = this.nodes.get(parent);
    // Another request fetched or reset this level in the meantime, so this page is outdated.
    if (!node || node.childIds !== before) return;
    node.childIds = (node.childIds || []).concat(page.nodes.filter((row) => row.id !== parent).map((row) => row.id));
    node.next = page.nextAfter || null;
  }

  /** @param {NodeRow} row */
  storeRow(row) {
    const known = this.nodes.get(row.id);
    // Only the rows of a search have these.
    if (known) known.row = { ...row, ancestors: row.ancestors || known.row.ancestors, found: row.found || known.row.found };
    else this.nodes.set(row.id, { row, childIds: null, next: null, open: false });
  }

  /** @param {string} id @param {boolean} [open] */
  async toggle(id, open) {
    const node = this.nodes.get(id);
    if (!node || node.row.children === 0) return;
    node.open = open === undefined ? !node.open : open;
    if (node.open && !node.childIds) await attempt(() => this.fetchLevel(id));
    this.updateRows();
  }

  /** Computes the list of rows, from top to bottom, and renders it. */
  updateRows() {
    /** @type {(VisibleNode | MoreRow)[]} */
    const rows = [];
    const { matches } = this;
    if (matches) {
      matches.forEach((id, at) => rows.push({ id, level: 1, position: at + 1, setSize: matches.length }));
      if (this.nextMatch) rows.push({ more: () => fetchMoreMatches(this), level: 1 });
    } else {
      /** @param {string} id @param {number} level @param {number} position @param {number} setSize */
      const walk = (id, level, position, setSize) => {
        const node = this.nodes.get(id);
        if (!node) return;
        rows.push({ id, level, position, setSize });
        const { childIds } = node;
        if (!node.open || !childIds) return;
        childIds.forEach((childId, at) => walk(childId, level + 1, at + 1, Math.max(node.row.children, childIds.length)));
        if (node.next) rows.push({ more: () => this.fetchLevel(id), level: level + 1 });
      };
      walk('root', 1, 1, 1);
    }
    this.rows = rows;
    if (!rows.some((row) => row.id === this.active)) this.active = rows[0]?.id ?? null;
    this.spacer.style.height = `${rows.length * this.rowHeight}px`;
    this.render();
  }

  /** Shows the visible rows. While scrolling, rows that stay visible are not built again. @param {boolean} [isScroll] */
  render(isScroll) {
    const top = this.element.scrollTop;
    const height = this.rowHeight;
    const first = Math.max(0, Math.floor(top / height) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil((top + this.element.clientHeight) / height) + MARGIN);
    const before = isScroll ? this.built : new Map();
    this.built = new Map();
    const shown = [];
    for (let at = first; at < last; at += 1) {
      const row = this.rows[at];
      if (row.more) {
        this.fetchMore(row);
        shown.push(this.moreRow(row, at));
        continue;
      }
      // A match may have been deleted since the list was fetched.
      const node = this.nodes.get(row.id);
      if (!node) continue;
      const element = before.get(at) || this.positionRow(nodeRow(this, row, node), row, at);
      this.built.set(at, element);
      shown.push(element);
      node.row.dependsOn?.forEach((id) => { if (!this.nodes.has(id)) this.unknownTargets.add(id); });
    }
    if (this.unknownTargets.size) this.fetchUnknownTargets();
    this.spacer.replaceChildren(...shown);
    const active = this.active && this.rows.some((row) => row.id === this.active) ? `row-${this.active}` : '';
    this.element.setAttribute('aria-activedescendant', active);
  }

  /** Fetches the next page of a level when the end of the level becomes visible. @param {MoreRow} row */
  fetchMore(row) {
    if (this.fetching || this.hasFailed) return;
    this.fetching = true;
    row.more().catch((error) => {
      // The last fetched node was deleted: fetch all levels again. After another error, wait for the user to retry.
      if (hasCode(error, 'NODE_NOT_FOUND')) return this.reload();
      this.hasFailed = true;
      return undefined;
    }).finally(() => { this.fetching = false; this.updateRows(); });
  }

  /** @param {MoreRow} row @param {number} at */
  moreRow(row, at) {
    const retry = () => { this.hasFailed = false; this.render(); };
    const text = this.hasFailed ? h('button', { class: 'small', onclick: retry }, t('tryAgain')) : t('loading');
    return this.positionRow(h('div', { class: 'row more', role: 'presentation' }, text), row, at);
  }

  /** @param {HTMLElement} element @param {VisibleNode | MoreRow} row @param {number} at */
  positionRow(element, row, at) {
    element.style.top = `${at * this.rowHeight}px`;
    element.style.paddingInlineStart = `${8 + (row.level - 1) * 18}px`;
    return element;
  }

  /** Returns the nodes that a node waits for: those that it depends on and that are not completed. @param {NodeRow} row */
  openTargets(row) {
    if (!row.dependsOn || ['completed', 'cancelled'].includes(row.status)) return [];
    return row.dependsOn.map((id) => this.nodes.get(id)?.row).filter((target) => target && target.status !== 'completed');
  }

  /** Fetches the nodes that shown nodes depend on and that are not known yet. A node that does not exist is asked for once. */
  async fetchTargets() {
    const unknown = [...this.unknownTargets].filter((id) => !this.nodes.has(id) && !this.missing.has(id));
    this.unknownTargets.clear();
    if (!unknown.length) return;
    unknown.forEach((id) => this.missing.add(id));
    const found = await attempt(() => this.fetchByIds(unknown));
    found?.forEach((row) => this.storeRow(row));
    this.render();
  }

  /** @param {string} id */
  open(id) {
    this.selected = id;
    this.render();
    this.onOpen(id);
  }

  /** Expands the ancestors of a node and selects it. @param {string[]} ancestors @param {string} id */
  async expandTo(ancestors, id) {
    for (const above of ancestors) {
      await this.fetchLevel(above);
      const node = this.nodes.get(above);
      if (node) node.open = true;
    }
    this.updateRows();
    this.select(id);
  }

  deselect() {
    this.selected = null;
    this.render();
  }

  /** Opens a node, also one that got its first child just now. @param {string} id */
  async reveal(id) {
    await this.fetchLevel(id);
    const node = this.nodes.get(id);
    if (node) node.open = true;
    this.updateRows();
  }

  /** Selects a node and scrolls to it. @param {string} id */
  select(id) {
    this.selected = id;
    this.active = id;
    this.scrollToActive();
    this.render();
  }

  scrollToActive() {
    const at = this.rows.findIndex((row) => row.id === this.active);
    if (at < 0) return;
    const { scrollTop, clientHeight } = this.element;
    const height = this.rowHeight;
    if (at * height < scrollTop) this.element.scrollTop = at * height;
    else if ((at + 1) * height > scrollTop + clientHeight) this.element.scrollTop = (at + 1) * height - clientHeight;
  }

  /** @param {number} to */
  moveTo(to) {
    const rows = this.rows;
    let at = Math.max(0, Math.min(rows.length - 1, to));
    if (rows[at] && rows[at].more) at -= 1;
    const id = rows[at]?.id;
    if (!id) return;
    this.active = id;
    this.scrollToActive();
    this.render();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { active } = this;
    const at = this.rows.findIndex((row) => row.id === active);
    const node = active && this.nodes.get(active);
    if (at < 0 || !node || event.ctrlKey || event.metaKey) return;
    if (event.altKey) {
      moveWithKey(this, active, event);
      return;
    }
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const isOpen = node.open && !this.matches;
    /** @type {Record<string, () => unknown>} */
    const keys = {
      ArrowDown: () => this.moveTo(at + 1),
      ArrowUp: () => this.moveTo(at - 1),
      PageDown: () => this.moveTo(at + page),
      PageUp: () => this.moveTo(at - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.rows.length - 1),
      Enter: () => this.open(active),
      ' ': () => this.open(active),
      s: () => this.openSteps(active),
      ArrowRight: () => (isOpen || this.matches ? this.moveTo(at + 1) : this.toggle(active, true)),
      ArrowLeft: () => {
        if (isOpen && node.row.children) return this.toggle(active, false);
        const parent = this.rows.findIndex((row) => row.id === node.row.parentId);
        return parent >= 0 ? this.moveTo(parent) : undefined;
      },
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  /** Opens the menu with the steps of a node at its row. @param {string} id */
  openSteps(id) {
    const symbol = document.getElementById(`row-${id}`)?.querySelector('.symbol');
    if (symbol instanceof HTMLElement) openStepMenu({ workspaceId: this.workspace, nodeId: id }, symbol);
  }

  /** Fetches changed nodes and their parents again. @param {string[]} ids @returns {Promise<void>} */
  async refresh(ids) {
    const changed = ids.filter((id) => id !== 'workspace');
    if (changed.length > 300) return this.reload();
    /** @type {Set<string>} */
    const parents = new Set();
    const current = await this.fetchByIds(changed);
    for (const id of changed) this.applyChange(id, current.get(id), parents);
    current.forEach((row) => { if (row.parentId) parents.add(row.parentId); });
    const parentRows = await this.fetchByIds(this.withAncestors(parents));
    parentRows.forEach((row) => this.storeRow(row));
    new Set([...current.values()].map((row) => row.parentId)).forEach((id) => { if (id) this.sortChildren(id); });
    this.updateRows();
    return undefined;
  }

  /** Returns these nodes and all above them: the counts of their branches may differ after a change. @param {Set<string>} ids */
  withAncestors(ids) {
    /** @type {Set<string>} */
    const all = new Set();
    for (const start of ids) {
      for (let id = /** @type {string | null | undefined} */ (start); id && this.nodes.has(id) && !all.has(id); id = this.nodes.get(id)?.row.parentId) all.add(id);
    }
    return [...all];
  }

  /** Sorts the fetched children of a node: another program may have moved one. @param {string} id */
  sortChildren(id) {
    const order = (/** @type {string} */ child) => this.nodes.get(child)?.row.order ?? 0;
    this.nodes.get(id)?.childIds?.sort((a, b) => order(a) - order(b));
  }

  /** Returns the current rows of these nodes by id, without the deleted ones. @param {string[]} ids */
  async fetchByIds(ids) {
    /** @type {Map<string, NodeRow>} */
    const rows = new Map();
    for (let at = 0; at < ids.length; at += 60) {
      const page = await this.fetchPage({ ids: ids.slice(at, at + 60).join(',') });
      page.nodes.forEach((row) => rows.set(row.id, row));
    }
    return rows;
  }

  /**
   * Stores the current row of a node and updates the lists of children. `parents` collects the parents to fetch again.
   * @param {string} id
   * @param {NodeRow | undefined} row
   * @param {Set<string>} parents
   */
  applyChange(id, row, parents) {
    const known = this.nodes.get(id);
    const before = known ? known.row.parentId : null;
    if (before && (!row || before !== row.parentId)) {
      const parent = this.nodes.get(before);
      if (parent && parent.childIds) parent.childIds = parent.childIds.filter((childId) => childId !== id);
      parents.add(before);
    }
    if (!row) {
      this.nodes.delete(id);
      return;
    }
    this.storeRow(row);
    if (!row.parentId) return;
    if (before !== row.parentId) parents.add(row.parentId);
    // A known node may still be missing from its level: it may have been fetched together with its own children.
    const parent = this.nodes.get(row.parentId);
    // A level with more pages gets the node with a later page; a level that was never expanded is fetched on expansion.
    if (parent && parent.childIds && !parent.next && !parent.childIds.includes(id)) parent.childIds.push(id);
  }

  /** Fetches every expanded level again. */
  async reload() {
    const open = [...this.nodes].filter(([, node]) => node.open).map(([id]) => id);
    this.nodes.forEach((node) => { node.childIds = null; node.next = null; });
    this.hasFailed = false;
    for (const id of open) {
      try {
        await this.fetchLevel(id);
      } catch (error) {
        if (!hasCode(error, 'NODE_NOT_FOUND')) throw error;
        this.nodes.delete(id);
      }
    }
    if (this.matches) await filterTree(this, this.activeFilter, true);
    this.updateRows();
  }
}
