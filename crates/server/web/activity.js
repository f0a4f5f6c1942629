// The activity feed: what happened, the latest first. Pages are fetched while the user scrolls, and only the visible rows
// are in the document.

/** @import { ActivityEntry, ActivityFilter, NodeStatus } from './api-types.js' */
/** @import { Directory } from './names.js' */
/** @import { Word } from './words.js' */
/** A row of the list: an entry, or the first row of a day. `count` nodes that were created together share a row. @typedef {{ id: string, entry?: ActivityEntry, count?: number, day?: string }} FeedRow */

import { request, enc } from './api.js';
import { h, setChildren, attempt } from './dom.js';
import { injectionSize, showInjection } from './injection.js';
import { clockTime, dayKey, dayName, sessionLink } from './names.js';
import { SYMBOLS } from './tree.js';
import { t, formatNumber, formatTime } from './words.js';

const ROW = 46;
const MARGIN = 10;
const PAGE = 200;

/** @type {Record<NodeStatus, Word>} */
const STEPS = {
  pending: 'didPending', planning: 'didPlanning', monitoring: 'didMonitoring', implementing: 'didImplementing',
  validating: 'didValidating', completed: 'didCompleted', failed: 'didFailed', cancelled: 'didCancelled',
};

/**
 * Returns a function that runs `work` after `delay` ms. Calls in between run it once, and calls while it runs once more after it,
 * so that changes without a pause do not delay it for ever.
 * @param {() => Promise<unknown>} work
 * @param {number} delay
 */
export function coalesce(work, delay) {
  let timer = 0;
  let isBusy = false;
  let isWanted = false;
  const run = async () => {
    timer = 0;
    isBusy = true;
    await work();
    isBusy = false;
    if (isWanted) { isWanted = false; schedule(); }
  };
  const schedule = () => {
    if (isBusy) isWanted = true;
    else if (!timer) timer = setTimeout(run, delay);
  };
  return schedule;
}

/** Returns a text that changes with the content of a row. @param {FeedRow} row */
const contentKey = (row) => JSON.stringify([row.entry || row.day, row.count]);

/** Returns whether two nodes were created together, such as those of a plan. @param {ActivityEntry} a @param {ActivityEntry} [b] */
const areCreatedTogether = (a, b) => Boolean(a.nodeId && b?.nodeId && a.kind === 'created' && b.kind === 'created'
  && a.workspaceId === b.workspaceId && a.project === b.project && Math.abs(a.at - b.at) < 1000);

export class ActivityList {
  /** @param {Directory} directory @param {string} label */
  constructor(directory, label) {
    this.directory = directory;
    /** @type {ActivityFilter} */
    this.filter = {};
    /** @type {ActivityEntry[]} */
    this.entries = [];
    /** @type {FeedRow[]} */
    this.rows = [];
    /** @type {string | undefined} */
    this.next = undefined;
    this.fetching = false;
    this.requestCount = 0;
    /** The rows in the document. @type {Map<string, HTMLElement>} */
    this.shown = new Map();
    /** Called after the entries changed. @type {() => void} */
    this.onEntries = () => {};
    this.count = h('span', { class: 'meta', role: 'status' });
    this.list = h('ol', { class: 'feed-rows' });
    this.empty = h('p', { class: 'empty' }, t('loading'));
    this.element = h('div', {
      class: 'feed', tabindex: 0, role: 'region', 'aria-label': `${label}: ${t('activityKeys')}`,
      onscroll: () => this.render(), onkeydown: (event) => this.onKey(event),
    }, this.empty, this.list);
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /** Shows the entries that pass a filter. @param {ActivityFilter} filter */
  async setFilter(filter) {
    this.filter = filter;
    this.element.scrollTop = 0;
    await this.reload(true);
  }

  /** Fetches the first page. Entries of later pages stay, unless too many are new. @param {boolean} [discard] */
  async reload(discard) {
    const requestId = this.requestCount += 1;
    const page = await attempt(() => request('GET /activity', { params: { ...this.filter, limit: PAGE } }));
    if (!page || requestId !== this.requestCount) return;
    const known = new Set(this.entries.map((entry) => entry.id));
    const fresh = new Set(page.entries.map((entry) => entry.id));
    const oldest = page.entries[page.entries.length - 1];
    const overlaps = !discard && page.entries.some((entry) => known.has(entry.id));
    const later = overlaps && oldest && page.nextBefore
      ? this.entries.slice(this.entries.findIndex((entry) => entry.id === oldest.id) + 1).filter((entry) => !fresh.has(entry.id)) : [];
    const keepsLater = later.length > 0 && known.has(oldest.id);
    this.entries = keepsLater ? [...page.entries, ...later] : page.entries;
    if (!keepsLater) this.next = page.nextBefore;
    this.count.textContent = page.total === undefined ? '' : t('entryCount', formatNumber(page.total));
    this.update();
  }

  /** Fetches the next page. */
  async fetchMore() {
    if (!this.next || this.fetching) return;
    this.fetching = true;
    const requestId = this.requestCount;
    const page = await attempt(() => request('GET /activity', { params: { ...this.filter, limit: PAGE, before: this.next } }));
    this.fetching = false;
    if (!page || requestId !== this.requestCount) return;
    this.entries.push(...page.entries);
    this.next = page.nextBefore;
    this.update();
  }

  /** Builds the rows again and keeps the first visible one in its place. */
  update() {
    const top = this.element.scrollTop;
    const first = top > 0 ? this.rows[Math.floor(top / ROW)] : undefined;
    let day = '';
    this.rows = [];
    for (const entry of this.entries) {
      const last = this.rows[this.rows.length - 1];
      if (last?.entry && areCreatedTogether(entry, last.entry)) {
        last.count = (last.count || 1) + 1;
        continue;
      }
      const key = dayKey(entry.at);
      if (key !== day) this.rows.push({ id: `day ${key}`, day: dayName(entry.at) });
      day = key;
      this.rows.push({ id: entry.id, entry });
    }
    const places = new Map(this.rows.map((row, at) => [row.id, at]));
    for (const [id, element] of this.shown) {
      const at = places.get(id);
      // A row that did not change stays, with the focus.
      if (at !== undefined && element.dataset.content === contentKey(this.rows[at])) this.place(element, at);
      else { element.remove(); this.shown.delete(id); }
    }
    this.render();
    const at = first ? this.rows.findIndex((row) => row.id === first.id) : -1;
    if (at >= 0) this.element.scrollTop = at * ROW + (top % ROW);
    const isFiltered = Object.values(this.filter).some(Boolean);
    setChildren(this.empty, this.rows.length ? '' : t(isFiltered ? 'noMatchingActivity' : 'noActivity'));
    this.empty.hidden = this.rows.length > 0;
    this.onEntries();
  }

  render() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW) + MARGIN);
    this.list.style.height = `${this.rows.length * ROW}px`;
    const wanted = new Set(this.rows.slice(first, last).map((row) => row.id));
    for (const [id, element] of this.shown) {
      // The row with the focus stays in the document, so that the focus is not lost.
      if (wanted.has(id) || element.contains(document.activeElement)) continue;
      element.remove();
      this.shown.delete(id);
    }
    for (let at = first; at < last; at += 1) {
      const row = this.rows[at];
      if (!this.shown.has(row.id)) this.insert(row, at);
    }
    if (this.next && last >= this.rows.length - MARGIN) this.fetchMore();
  }

  /** Adds the element of a row, in the order of the list. @param {FeedRow} row @param {number} at */
  insert(row, at) {
    const element = h('li', { class: row.entry ? 'entry' : 'day', 'data-kind': row.entry?.kind, 'data-content': contentKey(row), tabindex: row.entry ? -1 : null },
      row.entry ? this.content(row.entry, row.count) : h('h3', {}, row.day));
    this.place(element, at);
    this.shown.set(row.id, element);
    const following = [...this.list.children].find((other) => Number(/** @type {HTMLElement} */ (other).dataset.at) > at);
    this.list.insertBefore(element, following || null);
  }

  /** @param {HTMLElement} element @param {number} at */
  place(element, at) {
    element.dataset.at = String(at);
    element.style.top = `${at * ROW}px`;
    element.setAttribute('aria-posinset', String(at + 1));
    element.setAttribute('aria-setsize', String(this.next ? -1 : this.rows.length));
  }

  /** @param {ActivityEntry} entry @param {number} [count] */
  content(entry, count) {
    const status = entry.kind === 'step' ? entry.status : undefined;
    const symbol = status ? SYMBOLS[status] : { log: '✎', problem: '⚠', cleared: '☑', created: '＋', rule: '§', fact: '◎', session: '⇄', injection: '➜', step: '•' }[entry.kind];
    return [
      h('time', { datetime: new Date(entry.at).toISOString(), title: formatTime(entry.at) }, clockTime(entry.at)),
      h('span', { class: 'symbol', 'aria-hidden': 'true', 'data-status': status }, symbol),
      h('div', { class: 'what' }, h('p', { class: 'head-line' }, this.headline(entry, count)), h('p', { class: 'text-line', dir: 'auto' }, this.textLine(entry))),
    ];
  }

  /** Returns who did it: a link to the session, or a person. @param {ActivityEntry} entry */
  actor(entry) {
    if (entry.sessionId) {
      const name = this.directory.sessionName(entry.sessionId, entry.injection?.platform);
      return h('a', { class: 'actor', href: sessionLink(entry.sessionId), title: name }, this.directory.client(entry.sessionId, entry.injection?.platform));
    }
    return h('strong', { class: 'actor' }, t(entry.operator === 'Human' ? 'you' : 'agent'));
  }

  /** Returns the link to the node or the workspace of an entry. @param {ActivityEntry} entry */
  target(entry) {
    const { workspaceId, nodeId, project } = entry;
    if (!workspaceId) return null;
    const name = entry.title || this.directory.workspace(workspaceId, project)?.name || workspaceId;
    return h('a', { class: 'target', href: this.directory.link(workspaceId, project, nodeId) }, h('bdi', {}, name));
  }

  /** @param {ActivityEntry} entry @param {number} [count] */
  headline(entry, count) {
    switch (entry.kind) {
      case 'step': return [this.actor(entry), ' ', t(STEPS[entry.status || 'pending']), ' ', this.target(entry)];
      case 'log': return [this.actor(entry), ' ', t('didLog'), ' ', this.target(entry)];
      case 'problem': return [t('didProblem'), ' ', this.target(entry)];
      case 'cleared': return [this.actor(entry), ' ', t('didClear'), ' ', this.target(entry)];
      case 'rule': return [this.actor(entry), ' ', t('didChangeRules'), ' ', this.target(entry)];
      case 'created': return count ? [t('didCreateNodes', formatNumber(count)), ' ', this.target({ ...entry, nodeId: undefined, title: undefined })]
        : [t(entry.nodeId ? 'didCreate' : 'didCreateWorkspace'), ' ', this.target(entry)];
      case 'fact': return [this.memoryActor(entry), ' ', h('a', { class: 'target', href: `#/memory?project=${enc(entry.project || '')}` }, t(entry.memory?.type === 'S' ? 'didSummary' : 'didFact'))];
      case 'session': return [this.actor(entry), ' ', t('didBind'), ' ', this.target(entry)];
      default: return [t('didInject'), ' ', this.actor(entry), ' ', h('button', {
        class: 'link', onclick: () => this.openInjection(entry),
      }, t('whyInjected'))];
    }
  }

  /** Returns who saved a memory. A memory without a session is from a person. @param {ActivityEntry} entry */
  memoryActor(entry) {
    return entry.sessionId ? this.actor(entry) : h('strong', { class: 'actor' }, t('you'));
  }

  /** @param {ActivityEntry} entry */
  textLine(entry) {
    if (entry.injection) return `${entry.injection.event} · ${entry.injection.rules.join(', ')} · ${injectionSize(entry.injection)}`;
    if (entry.kind === 'problem' && entry.nextStep) return `${entry.text || ''} → ${entry.nextStep}`;
    if (entry.kind === 'session') return this.directory.sessionName(entry.sessionId || '');
    return entry.text || this.directory.workspace(entry.workspaceId || '', entry.project)?.name || '';
  }

  /** @param {ActivityEntry} entry */
  openInjection(entry) {
    if (entry.injection) showInjection({ at: entry.at, session: entry.sessionId || '', injection: entry.injection }, this.directory);
  }

  /** Moves the focus to another row. @param {KeyboardEvent} event */
  onKey(event) {
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.closest('li') : null;
    const at = focused ? Number(focused.dataset.at) : -1;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity });
    if (event.key in steps && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.focusRow(at < 0 ? Math.floor(this.element.scrollTop / ROW) : at + steps[event.key], Math.sign(steps[event.key]));
    } else if (event.key === 'Enter' && focused === document.activeElement) {
      const opener = focused?.querySelector('button.link, a.target, a.actor');
      if (opener instanceof HTMLElement) opener.click();
    }
  }

  /** Focuses the row at a position; a row that begins a day is skipped. @param {number} wanted @param {number} direction */
  focusRow(wanted, direction) {
    let at = Math.max(0, Math.min(this.rows.length - 1, wanted));
    if (this.rows[at] && !this.rows[at].entry) at = direction < 0 && at > 0 ? at - 1 : at + 1;
    if (!this.rows[at]) return;
    const { scrollTop, clientHeight } = this.element;
    if (at * ROW < scrollTop) this.element.scrollTop = at * ROW;
    if ((at + 1) * ROW > scrollTop + clientHeight) this.element.scrollTop = (at + 1) * ROW - clientHeight;
    this.render();
    this.shown.get(this.rows[at].id)?.focus({ preventScroll: true });
  }
}
