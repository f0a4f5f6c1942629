// The tree of a workspace. The children of a node are fetched when it is expanded, and only the visible rows are in the
// document, so that a tree of ten thousand nodes stays fast.

import { get, enc } from './api.js';
import { h, attempt } from './dom.js';
import { t, statusText, typeText } from './words.js';

const ROW = 30;
const MARGIN = 12;
const PAGE = 500;

export const SYMBOLS = {
  pending: '○', planning: '◇', monitoring: '◆', implementing: '▶', validating: '◉', completed: '✔', failed: '✘', cancelled: '–',
};

export class Tree {
  constructor(workspace, onOpen) {
    this.workspace = workspace;
    this.onOpen = onOpen;
    this.nodes = new Map();
    this.rows = [];
    this.active = null;
    this.selected = null;
    this.matches = null;
    this.bound = new Map();
    this.spacer = h('div', { class: 'rows', role: 'presentation' });
    this.element = h('div', {
      class: 'tree', role: 'tree', tabindex: 0, 'aria-label': `${t('tree')}: ${t('treeKeys')}`,
      onscroll: () => this.render(), onkeydown: (event) => this.onKey(event),
    }, this.spacer);
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  path() {
    return `/workspaces/${enc(this.workspace)}/nodes`;
  }

  /** Fetches the first levels and expands `ancestors`, the path to the node `target`. */
  async load(ancestors, target) {
    await this.fetchLevel('root');
    const root = this.nodes.get('root');
    if (root) root.open = true;
    for (const id of ancestors || []) {
      if (id === 'root') continue;
      await this.fetchLevel(id);
      const node = this.nodes.get(id);
      if (node) node.open = true;
    }
    // The target may be on a later page of its siblings.
    const parent = ancestors && ancestors.length ? this.nodes.get(ancestors[ancestors.length - 1]) : null;
    while (target && parent && parent.next && !parent.childIds.includes(target)) await this.fetchLevel(parent.row.id);
    this.updateRows();
  }

  /** Fetches the next page of the children of a node. */
  async fetchLevel(parent) {
    const known = this.nodes.get(parent);
    const before = known ? known.childIds : null;
    const after = before ? known.next : undefined;
    if (before && !after) return;
    const page = await get(this.path(), { parentId: parent, depth: 1, limit: PAGE, after });
    for (const row of page.nodes) this.storeRow(row);
    const node = this.nodes.get(parent);
    // Another request fetched or reset this level in the meantime, so this page is outdated.
    if (!node || node.childIds !== before) return;
    node.childIds = (node.childIds || []).concat(page.nodes.filter((row) => row.id !== parent).map((row) => row.id));
    node.next = page.nextAfter || null;
  }

  storeRow(row) {
    const known = this.nodes.get(row.id);
    if (known) known.row = row;
    else this.nodes.set(row.id, { row, childIds: null, next: null, open: false });
  }

  async toggle(id, open) {
    const node = this.nodes.get(id);
    if (!node || node.row.children === 0) return;
    node.open = open === undefined ? !node.open : open;
    if (node.open && !node.childIds) await attempt(() => this.fetchLevel(id));
    this.updateRows();
  }

  /** Shows the matching nodes as a flat list. Without a query and a status, shows the tree again. */
  async filter(query, status) {
    this.activeFilter = { query, status };
    if (!query && !status) {
      this.matches = null;
      this.updateRows();
      return null;
    }
    const filter = this.activeFilter;
    const page = await get(this.path(), { query, status, limit: PAGE });
    if (filter !== this.activeFilter) return undefined;
    for (const row of page.nodes) this.storeRow(row);
    this.matches = page.nodes.map((row) => row.id);
    this.nextMatch = page.nextAfter || null;
    this.updateRows();
    return { count: this.matches.length, more: Boolean(page.nextAfter) };
  }

  async fetchMoreMatches() {
    const filter = this.activeFilter;
    const page = await get(this.path(), { ...filter, limit: PAGE, after: this.nextMatch });
    if (filter !== this.activeFilter) return;
    for (const row of page.nodes) this.storeRow(row);
    this.matches = this.matches.concat(page.nodes.map((row) => row.id));
    this.nextMatch = page.nextAfter || null;
    this.updateRows();
  }

  /** Computes the list of rows, from top to bottom, and renders it. */
  updateRows() {
    const rows = [];
    if (this.matches) {
      this.matches.forEach((id, at) => rows.push({ id, level: 1, position: at + 1, setSize: this.matches.length }));
      if (this.nextMatch) rows.push({ more: () => this.fetchMoreMatches(), level: 1 });
    } else {
      const walk = (id, level, position, setSize) => {
        const node = this.nodes.get(id);
        if (!node) return;
        rows.push({ id, level, position, setSize });
        if (!node.open || !node.childIds) return;
        node.childIds.forEach((childId, at) => walk(childId, level + 1, at + 1, Math.max(node.row.children, node.childIds.length)));
        if (node.next) rows.push({ more: () => this.fetchLevel(id), level: level + 1 });
      };
      walk('root', 1, 1, 1);
    }
    this.rows = rows;
    if (!rows.some((row) => row.id === this.active)) this.active = rows.length ? rows[0].id : null;
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
      if (row.more) this.fetchMore(row);
      if (row.more) shown.push(this.moreRow(row, at));
      // A match may have been deleted since the list was fetched.
      else if (this.nodes.has(row.id)) shown.push(this.nodeRow(row, at));
    }
    this.spacer.replaceChildren(...shown);
    const active = this.active && this.rows.some((row) => row.id === this.active) ? `row-${this.active}` : '';
    this.element.setAttribute('aria-activedescendant', active);
  }

  /** Fetches the next page of a level when the end of the level becomes visible. */
  fetchMore(row) {
    if (this.fetching || this.hasFailed) return;
    this.fetching = true;
    row.more().catch((error) => {
      // The last fetched node was deleted: fetch all levels again. After another error, wait for the user to retry.
      if (error.code === 'NODE_NOT_FOUND') return this.reload();
      this.hasFailed = true;
      return undefined;
    }).finally(() => { this.fetching = false; this.updateRows(); });
  }

  moreRow(row, at) {
    const retry = () => { this.hasFailed = false; this.render(); };
    const text = this.hasFailed ? h('button', { class: 'small', onclick: retry }, t('tryAgain')) : t('loading');
    return this.positionRow(h('div', { class: 'row more', role: 'presentation' }, text), row, at);
  }

  positionRow(element, row, at) {
    element.style.top = `${at * ROW}px`;
    element.style.paddingInlineStart = `${8 + (row.level - 1) * 18}px`;
    return element;
  }

  nodeRow(row, at) {
    const { row: node, open } = this.nodes.get(row.id);
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

  open(id) {
    this.selected = id;
    this.render();
    this.onOpen(id);
  }

  /** Expands the ancestors of a node and selects it. */
  async expandTo(ancestors, id) {
    for (const above of ancestors) {
      await this.fetchLevel(above);
      const node = this.nodes.get(above);
      if (node) node.open = true;
    }
    this.updateRows();
    this.select(id);
  }

  /** Selects a node and scrolls to it. */
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

  moveTo(to) {
    const rows = this.rows;
    let at = Math.max(0, Math.min(rows.length - 1, to));
    if (rows[at] && rows[at].more) at -= 1;
    if (!rows[at]) return;
    this.active = rows[at].id;
    this.scrollToActive();
    this.render();
  }

  onKey(event) {
    const at = this.rows.findIndex((row) => row.id === this.active);
    const node = this.nodes.get(this.active);
    if (at < 0 || !node || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const isOpen = node.open && !this.matches;
    const keys = {
      ArrowDown: () => this.moveTo(at + 1),
      ArrowUp: () => this.moveTo(at - 1),
      PageDown: () => this.moveTo(at + page),
      PageUp: () => this.moveTo(at - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.rows.length - 1),
      Enter: () => this.open(this.active),
      ' ': () => this.open(this.active),
      ArrowRight: () => (isOpen || this.matches ? this.moveTo(at + 1) : this.toggle(this.active, true)),
      ArrowLeft: () => {
        if (isOpen && node.row.children) return this.toggle(this.active, false);
        const parent = this.rows.findIndex((row) => row.id === node.row.parentId);
        return parent >= 0 ? this.moveTo(parent) : undefined;
      },
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  /** Fetches changed nodes and their parents again. */
  async refresh(ids) {
    const changed = ids.filter((id) => id !== 'workspace');
    if (changed.length > 300) return this.reload();
    const parents = new Set();
    const current = await this.fetchByIds(changed);
    for (const id of changed) this.applyChange(id, current.get(id), parents);
    const parentRows = await this.fetchByIds([...parents].filter((id) => this.nodes.has(id)));
    parentRows.forEach((row) => this.storeRow(row));
    this.updateRows();
    return undefined;
  }

  /** Returns the current rows of these nodes by id, without the deleted ones. */
  async fetchByIds(ids) {
    const rows = new Map();
    for (let at = 0; at < ids.length; at += 60) {
      const page = await get(this.path(), { ids: ids.slice(at, at + 60).join(',') });
      page.nodes.forEach((row) => rows.set(row.id, row));
    }
    return rows;
  }

  /** Stores the current row of a node and updates the lists of children. `parents` collects the parents to fetch again. */
  applyChange(id, row, parents) {
    const known = this.nodes.get(id);
    const before = known && known.row.parentId;
    if (known && (!row || before !== row.parentId)) {
      const parent = this.nodes.get(before);
      if (parent && parent.childIds) parent.childIds = parent.childIds.filter((childId) => childId !== id);
      parents.add(before);
    }
    if (!row) {
      this.nodes.delete(id);
      return;
    }
    this.storeRow(row);
    if (!known || before !== row.parentId) parents.add(row.parentId);
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
        if (error.code !== 'NODE_NOT_FOUND') throw error;
        this.nodes.delete(id);
      }
    }
    if (this.matches) await this.filter(this.activeFilter.query, this.activeFilter.status);
    this.updateRows();
  }
}
