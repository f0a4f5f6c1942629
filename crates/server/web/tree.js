// The tree of a workspace. The children of a node are fetched when it is expanded, and only the visible rows are in the
// document, so that a tree of ten thousand nodes stays fast.

/** @import { NodeFilter, NodeRow, NodeStatus } from './api-types.js' */

/**
 * A known node. `childIds` is null if its children are not fetched; `next` is the position of the next page of them.
 * @typedef {{ row: NodeRow, childIds: string[] | null, next: string | null, open: boolean }} TreeNode
 */
/** @typedef {{ id: string, level: number, position: number, setSize: number, more?: undefined }} VisibleNode */
/** The end of a level that has more pages. @typedef {{ id?: undefined, level: number, more: () => Promise<void> }} MoreRow */

import { hasCode, request } from './api.js';
import { h, attempt } from './dom.js';
import { t, statusText, typeText } from './words.js';

const ROW = 30;
const MARGIN = 12;
const PAGE = 500;

/** @type {Record<NodeStatus, string>} */
export const SYMBOLS = {
  pending: '○', planning: '◇', monitoring: '◆', implementing: '▶', validating: '◉', completed: '✔', failed: '✘', cancelled: '–',
};

export class Tree {
  /** @param {string} workspace @param {(id: string) => void} onOpen */
  constructor(workspace, onOpen) {
    this.workspace = workspace;
    this.onOpen = onOpen;
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
    this.reordering = false;
    this.hasFailed = false;
    /** The number of sessions that are focused on a node. @type {Map<string, number>} */
    this.bound = new Map();
    this.spacer = h('div', { class: 'rows', role: 'presentation' });
    this.element = h('div', {
      class: 'tree', role: 'tree', tabindex: 0, 'aria-label': `${t('tree')}: ${t('treeKeys')}`,
      onscroll: () => this.render(), onkeydown: (event) => this.onKey(event),
    }, this.spacer);
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /** Fetches a page of nodes. @param {Omit<NodeFilter, 'workspaceId'>} filter */
  fetchPage(filter) {
    return request('GET /workspaces/{workspaceId}/nodes', { params: { ...filter, workspaceId: this.workspace } });
  }

  /**
   * Fetches the first levels and expands `ancestors`, the path to the node `target`.
   * @param {string[]} ancestors
   * @param {string | null} target
   */
  async load(ancestors, target) {
    await this.fetchLevel('root');
    const root = this.nodes.get('root');
    if (root) root.open = true;
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
    if (known) known.row = row;
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

  /**
   * Shows the matching nodes as a flat list. Without a query and a status, shows the tree again.
   * @param {string} query
   * @param {string} status
   */
  async filter(query, status) {
    this.activeFilter = { query, status };
    if (!query && !status) {
      this.matches = null;
      this.updateRows();
      return null;
    }
    const filter = this.activeFilter;
    const page = await this.fetchPage({ query, status, limit: PAGE });
    if (filter !== this.activeFilter) return undefined;
    for (const row of page.nodes) this.storeRow(row);
    this.matches = page.nodes.map((row) => row.id);
    this.nextMatch = page.nextAfter || null;
    this.updateRows();
    return { count: this.matches.length, more: Boolean(page.nextAfter) };
  }

  async fetchMoreMatches() {
    const filter = this.activeFilter;
    const page = await this.fetchPage({ ...filter, limit: PAGE, after: this.nextMatch || undefined });
    if (filter !== this.activeFilter) return;
    for (const row of page.nodes) this.storeRow(row);
    this.matches = (this.matches || []).concat(page.nodes.map((row) => row.id));
    this.nextMatch = page.nextAfter || null;
    this.updateRows();
  }

  /** Computes the list of rows, from top to bottom, and renders it. */
  updateRows() {
    /** @type {(VisibleNode | MoreRow)[]} */
    const rows = [];
    const { matches } = this;
    if (matches) {
      matches.forEach((id, at) => rows.push({ id, level: 1, position: at + 1, setSize: matches.length }));
      if (this.nextMatch) rows.push({ more: () => this.fetchMoreMatches(), level: 1 });
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
    this.spacer.style.height = `${rows.length * ROW}px`;
    this.render();
  }

  render() {
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil((top + this.element.clientHeight) / ROW) + MARGIN);
    const shown = [];
    for (let at = first; at < last; at += 1) {
      const row = this.rows[at];
      if (row.more) {
        this.fetchMore(row);
        shown.push(this.moreRow(row, at));
      } else {
        // A match may have been deleted since the list was fetched.
        const node = this.nodes.get(row.id);
        if (node) shown.push(this.nodeRow(row, node, at));
      }
    }
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
    element.style.top = `${at * ROW}px`;
    element.style.paddingInlineStart = `${8 + (row.level - 1) * 18}px`;
    return element;
  }

  /** @param {VisibleNode} row @param {TreeNode} treeNode @param {number} at */
  nodeRow(row, { row: node, open }, at) {
    const isParent = node.children > 0 && !this.matches;
    const bound = this.bound.get(row.id) || 0;
    const element = h('div', {
      class: `row ${row.id === this.active ? 'active' : ''}`, id: `row-${row.id}`, role: 'treeitem',
      'aria-level': row.level, 'aria-posinset': row.position, 'aria-setsize': row.setSize,
      'aria-expanded': isParent ? String(open) : null, 'aria-selected': String(row.id === this.selected),
      'data-status': node.status,
      onclick: () => { this.active = row.id; this.open(row.id); },
    },
    h('span', { class: 'toggle', 'aria-hidden': 'true', onclick: (event) => { event.stopPropagation(); this.active = row.id; this.toggle(row.id); } },
      isParent ? (open ? '▾' : '▸') : ''),
    h('span', { class: 'symbol', title: statusText(node.status), 'aria-hidden': 'true' }, node.damage ? '!' : SYMBOLS[node.status] || '?'),
    h('bdi', { class: 'title', title: node.title }, node.title),
    h('span', { class: 'sr-only' }, `, ${typeText(node.type)}, ${statusText(node.status)}`),
    node.hasProblem ? h('span', { class: 'mark warn', title: t('problem') }, '⚠', h('span', { class: 'sr-only' }, t('problem'))) : null,
    bound ? h('span', { class: 'mark bound', title: t('boundHere') }, `●${bound > 1 ? bound : ''}`, h('span', { class: 'sr-only' }, t('boundHere'))) : null,
    isParent && !open ? h('span', { class: 'count' }, node.children) : null);
    return this.positionRow(element, row, at);
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
    if (at * ROW < scrollTop) this.element.scrollTop = at * ROW;
    else if ((at + 1) * ROW > scrollTop + clientHeight) this.element.scrollTop = (at + 1) * ROW - clientHeight;
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
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (step) { event.preventDefault(); attempt(() => this.reorder(active, step)); }
      return;
    }
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
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

  /** Moves a node before its previous sibling or after its next one. The change feed then reports the new order. @param {string} id @param {number} step */
  async reorder(id, step) {
    const siblings = this.nodes.get(this.nodes.get(id)?.row.parentId || '')?.childIds || [];
    const other = siblings[siblings.indexOf(id) + step];
    if (!siblings.includes(id) || !other || this.matches || this.reordering) return;
    this.reordering = true;
    try {
      const body = step < 0 ? { before: other } : { after: other };
      await request('POST /workspaces/{workspaceId}/nodes/{nodeId}/move', { params: { workspaceId: this.workspace, nodeId: id }, body });
    } finally {
      this.reordering = false;
    }
  }

  /** Fetches changed nodes and their parents again. @param {string[]} ids @returns {Promise<void>} */
  async refresh(ids) {
    const changed = ids.filter((id) => id !== 'workspace');
    if (changed.length > 300) return this.reload();
    /** @type {Set<string>} */
    const parents = new Set();
    const current = await this.fetchByIds(changed);
    for (const id of changed) this.applyChange(id, current.get(id), parents);
    const parentRows = await this.fetchByIds([...parents].filter((id) => this.nodes.has(id)));
    parentRows.forEach((row) => this.storeRow(row));
    new Set([...current.values()].map((row) => row.parentId)).forEach((id) => { if (id) this.sortChildren(id); });
    this.updateRows();
    return undefined;
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
    if (this.matches) await this.filter(this.activeFilter.query, this.activeFilter.status);
    this.updateRows();
  }
}
