// The tree of a workspace. Levels are fetched when they are opened, and only the rows in sight are in the document, so
// that ten thousand nodes cost no more than fifty.

import { get, enc } from './api.js';
import { h, attempt } from './dom.js';
import { t, statusWord, typeWord } from './words.js';

const ROW = 30;
const MARGIN = 12;
const PAGE = 500;

export const SYMBOLS = {
  pending: '○', planning: '◇', monitoring: '◆', implementing: '▶', validating: '◉', completed: '✔', failed: '✘', cancelled: '–',
};

export class Tree {
  constructor(workspace, opened) {
    this.workspace = workspace;
    this.opened = opened;
    this.nodes = new Map();
    this.rows = [];
    this.active = null;
    this.selected = null;
    this.found = null;
    this.bound = new Map();
    this.spacer = h('div', { class: 'rows', role: 'presentation' });
    this.element = h('div', {
      class: 'tree', role: 'tree', tabindex: 0, 'aria-label': `${t('tree')}: ${t('treeKeys')}`,
      onscroll: () => this.paint(), onkeydown: (event) => this.key(event),
    }, this.spacer);
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  path() {
    return `/workspaces/${enc(this.workspace)}/nodes`;
  }

  /** Fetches the first levels and opens the way to `node`, whose ancestors are given. */
  async load(ancestors, wanted) {
    await this.fetchLevel('root');
    const root = this.nodes.get('root');
    if (root) root.open = true;
    for (const id of ancestors || []) {
      if (id === 'root') continue;
      await this.fetchLevel(id);
      const node = this.nodes.get(id);
      if (node) node.open = true;
    }
    // The one that is meant may be far down among its siblings.
    const parent = ancestors && ancestors.length ? this.nodes.get(ancestors[ancestors.length - 1]) : null;
    while (wanted && parent && parent.next && !parent.kids.includes(wanted)) await this.fetchLevel(parent.row.id);
    this.layOut();
  }

  /** The next page of a node's children. */
  async fetchLevel(parent) {
    const known = this.nodes.get(parent);
    const before = known ? known.kids : null;
    const after = before ? known.next : undefined;
    if (before && !after) return;
    const page = await get(this.path(), { parentId: parent, depth: 1, limit: PAGE, after });
    for (const row of page.nodes) this.note(row);
    const node = this.nodes.get(parent);
    // Fetched meanwhile by somebody else, or thrown away: this page belongs to nothing.
    if (!node || node.kids !== before) return;
    node.kids = (node.kids || []).concat(page.nodes.filter((row) => row.id !== parent).map((row) => row.id));
    node.next = page.nextAfter || null;
  }

  note(row) {
    const known = this.nodes.get(row.id);
    if (known) known.row = row;
    else this.nodes.set(row.id, { row, kids: null, next: null, open: false });
  }

  async toggle(id, open) {
    const node = this.nodes.get(id);
    if (!node || node.row.children === 0) return;
    node.open = open === undefined ? !node.open : open;
    if (node.open && !node.kids) await attempt(() => this.fetchLevel(id));
    this.layOut();
  }

  /** Only what fits, as a flat list; nothing given brings the tree back. */
  async filter(query, status) {
    this.asked = { query, status };
    if (!query && !status) {
      this.found = null;
      this.layOut();
      return null;
    }
    const asked = this.asked;
    const page = await get(this.path(), { query, status, limit: PAGE });
    if (asked !== this.asked) return undefined;
    for (const row of page.nodes) this.note(row);
    this.found = page.nodes.map((row) => row.id);
    this.foundNext = page.nextAfter || null;
    this.layOut();
    return { count: this.found.length, more: Boolean(page.nextAfter) };
  }

  async moreFound() {
    const { asked } = this;
    const page = await get(this.path(), { ...asked, limit: PAGE, after: this.foundNext });
    if (asked !== this.asked) return;
    for (const row of page.nodes) this.note(row);
    this.found = this.found.concat(page.nodes.map((row) => row.id));
    this.foundNext = page.nextAfter || null;
    this.layOut();
  }

  /** What is shown, from top to bottom. */
  layOut() {
    const rows = [];
    if (this.found) {
      this.found.forEach((id, at) => rows.push({ id, level: 1, place: at + 1, of: this.found.length }));
      if (this.foundNext) rows.push({ more: () => this.moreFound(), level: 1 });
    } else {
      const walk = (id, level, place, of) => {
        const node = this.nodes.get(id);
        if (!node) return;
        rows.push({ id, level, place, of });
        if (!node.open || !node.kids) return;
        node.kids.forEach((kid, at) => walk(kid, level + 1, at + 1, Math.max(node.row.children, node.kids.length)));
        if (node.next) rows.push({ more: () => this.fetchLevel(id), level: level + 1 });
      };
      walk('root', 1, 1, 1);
    }
    this.rows = rows;
    if (!rows.some((row) => row.id === this.active)) this.active = rows.length ? rows[0].id : null;
    this.spacer.style.height = `${rows.length * ROW}px`;
    this.paint();
  }

  paint() {
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil((top + this.element.clientHeight) / ROW) + MARGIN);
    const shown = [];
    for (let at = first; at < last; at += 1) {
      const row = this.rows[at];
      if (row.more) this.fetchSoon(row);
      shown.push(row.more ? this.moreRow(row, at) : this.nodeRow(row, at));
    }
    this.spacer.replaceChildren(...shown);
    const active = this.active && this.rows.some((row) => row.id === this.active) ? `row-${this.active}` : '';
    this.element.setAttribute('aria-activedescendant', active);
  }

  /** The rest of a level comes when its end comes into sight. */
  fetchSoon(row) {
    if (this.fetching || this.stuck) return;
    this.fetching = true;
    row.more().catch((error) => {
      // Where we were is gone: look at all of it again. Anything else waits until somebody asks for it.
      if (error.code === 'NODE_NOT_FOUND') return this.reload();
      this.stuck = true;
      return undefined;
    }).finally(() => { this.fetching = false; this.layOut(); });
  }

  moreRow(row, at) {
    const again = () => { this.stuck = false; this.paint(); };
    const text = this.stuck ? h('button', { class: 'small', onclick: again }, t('again')) : t('loading');
    return this.place(h('div', { class: 'row more', role: 'presentation' }, text), row, at);
  }

  place(element, row, at) {
    element.style.top = `${at * ROW}px`;
    element.style.paddingInlineStart = `${8 + (row.level - 1) * 18}px`;
    return element;
  }

  nodeRow(row, at) {
    const { row: node, open } = this.nodes.get(row.id);
    const isParent = node.children > 0 && !this.found;
    const bound = this.bound.get(row.id) || 0;
    const element = h('div', {
      class: `row ${row.id === this.active ? 'active' : ''}`, id: `row-${row.id}`, role: 'treeitem',
      'aria-level': row.level, 'aria-posinset': row.place, 'aria-setsize': row.of,
      'aria-expanded': isParent ? String(open) : null, 'aria-selected': String(row.id === this.selected),
      'data-status': node.status,
      onclick: () => { this.active = row.id; this.open(row.id); },
    },
    h('span', { class: 'twist', 'aria-hidden': 'true', onclick: (event) => { event.stopPropagation(); this.active = row.id; this.toggle(row.id); } },
      isParent ? (open ? '▾' : '▸') : ''),
    h('span', { class: 'symbol', title: statusWord(node.status), 'aria-hidden': 'true' }, node.damage ? '!' : SYMBOLS[node.status] || '?'),
    h('bdi', { class: 'title', title: node.title }, node.title),
    h('span', { class: 'sr' }, `, ${typeWord(node.type)}, ${statusWord(node.status)}`),
    node.hasProblem ? h('span', { class: 'mark warn', title: t('problem') }, '⚠', h('span', { class: 'sr' }, t('problem'))) : null,
    bound ? h('span', { class: 'mark bound', title: t('boundHere') }, `●${bound > 1 ? bound : ''}`, h('span', { class: 'sr' }, t('boundHere'))) : null,
    isParent && !open ? h('span', { class: 'count' }, node.children) : null);
    return this.place(element, row, at);
  }

  open(id) {
    this.selected = id;
    this.paint();
    this.opened(id);
  }

  /** Opens the way to a node that is shown, and marks it. */
  async lead(ancestors, id) {
    for (const above of ancestors) {
      await this.fetchLevel(above);
      const node = this.nodes.get(above);
      if (node) node.open = true;
    }
    this.layOut();
    this.select(id);
  }

  /** Marks a node as the one that is shown, and brings it into sight. */
  select(id) {
    this.selected = id;
    this.active = id;
    this.reveal();
    this.paint();
  }

  reveal() {
    const at = this.rows.findIndex((row) => row.id === this.active);
    if (at < 0) return;
    const { scrollTop, clientHeight } = this.element;
    if (at * ROW < scrollTop) this.element.scrollTop = at * ROW;
    else if ((at + 1) * ROW > scrollTop + clientHeight) this.element.scrollTop = (at + 1) * ROW - clientHeight;
  }

  move(to) {
    const rows = this.rows;
    let at = Math.max(0, Math.min(rows.length - 1, to));
    if (rows[at] && rows[at].more) at -= 1;
    if (!rows[at]) return;
    this.active = rows[at].id;
    this.reveal();
    this.paint();
  }

  key(event) {
    const at = this.rows.findIndex((row) => row.id === this.active);
    const node = this.nodes.get(this.active);
    if (at < 0 || !node || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const isOpen = node.open && !this.found;
    const keys = {
      ArrowDown: () => this.move(at + 1),
      ArrowUp: () => this.move(at - 1),
      PageDown: () => this.move(at + page),
      PageUp: () => this.move(at - page),
      Home: () => this.move(0),
      End: () => this.move(this.rows.length - 1),
      Enter: () => this.open(this.active),
      ' ': () => this.open(this.active),
      ArrowRight: () => (isOpen || this.found ? this.move(at + 1) : this.toggle(this.active, true)),
      ArrowLeft: () => {
        if (isOpen && node.row.children) return this.toggle(this.active, false);
        const parent = this.rows.findIndex((row) => row.id === node.row.parentId);
        return parent >= 0 ? this.move(parent) : undefined;
      },
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  /** Brings these nodes up to date, and what hangs on them. */
  async refresh(ids) {
    const wanted = ids.filter((id) => id !== 'workspace');
    if (wanted.length > 300) return this.reload();
    const parents = new Set();
    const there = await this.named(wanted);
    for (const id of wanted) this.settle(id, there.get(id), parents);
    const above = await this.named([...parents].filter((id) => this.nodes.has(id)));
    above.forEach((row) => this.note(row));
    this.layOut();
    return undefined;
  }

  /** These nodes as they are now, by id; those that are gone are missing. */
  async named(ids) {
    const rows = new Map();
    for (let at = 0; at < ids.length; at += 60) {
      const page = await get(this.path(), { ids: ids.slice(at, at + 60).join(',') });
      page.nodes.forEach((row) => rows.set(row.id, row));
    }
    return rows;
  }

  settle(id, row, parents) {
    const known = this.nodes.get(id);
    const before = known && known.row.parentId;
    if (known && (!row || before !== row.parentId)) {
      const parent = this.nodes.get(before);
      if (parent && parent.kids) parent.kids = parent.kids.filter((kid) => kid !== id);
      parents.add(before);
    }
    if (!row) {
      this.nodes.delete(id);
      return;
    }
    this.note(row);
    if (!known || before !== row.parentId) parents.add(row.parentId);
    // One that is known may have been seen with its children, before the level it stands in had it.
    const parent = this.nodes.get(row.parentId);
    // Behind what is not fetched yet it comes by itself; a level that was never opened is fetched when it is.
    if (parent && parent.kids && !parent.next && !parent.kids.includes(id)) parent.kids.push(id);
  }

  /** Fetches every open level again. */
  async reload() {
    const open = [...this.nodes].filter(([, node]) => node.open).map(([id]) => id);
    this.nodes.forEach((node) => { node.kids = null; node.next = null; });
    this.stuck = false;
    for (const id of open) {
      try {
        await this.fetchLevel(id);
      } catch (error) {
        if (error.code !== 'NODE_NOT_FOUND') throw error;
        this.nodes.delete(id);
      }
    }
    if (this.found) await this.filter(this.asked.query, this.asked.status);
    this.layOut();
  }
}
