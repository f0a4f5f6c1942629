// Who did what in a team: the numbers of each person in a time, and the entries with links to what they are about.

/** @import { Contribution, Contributions } from './team-types.js' */
/** @import { Child } from './page-types.js' */
/** @import { Word } from './words.js' */

import { h, setChildren, rerender } from './dom.js';
import { t, formatNumber, formatTime } from './words.js';

const PAGE = 50;
/** @type {[Contribution['kind'], Word, Word][]} */
const KINDS = [['started', 'startedNodes', 'theyStarted'], ['completed', 'completedNodes', 'theyCompleted'], ['failed', 'failedNodes', 'theyFailed'],
  ['log', 'logLines', 'theyLogged'], ['problem', 'problems', 'theyMet'], ['fact', 'facts', 'theySaved']];
/** @type {[string, Word][]} */
const TIMES = [['1d', 'lastDay'], ['7d', 'last7Days'], ['30d', 'last30Days']];

/**
 * The section. `ask` fetches entries, `link` returns the address of what an entry is about, and `table` builds a table.
 * @param {{
 *   ask: (params: { since: string, person: string, kind: string, before?: string, limit: number }) => Promise<Contributions | undefined>,
 *   link: (entry: Contribution) => string,
 *   table: (columns: Word[], rows: { key: string, cells: Child[] }[]) => HTMLElement,
 * }} options
 */
export function contributionsPart({ ask, link, table }) {
  const element = h('section', { class: 'contributions', hidden: true });
  let filter = { since: '7d', person: '', kind: '' };
  /** @type {Contributions | null} */
  let shown = null;
  let requests = 0;

  /** Fetches the first page, the next one, or as many entries as are shown. @param {'first' | 'more' | 'refresh'} part */
  async function load(part) {
    const entries = shown?.entries || [];
    const before = part === 'more' ? entries[entries.length - 1]?.id : undefined;
    const limit = part === 'refresh' ? Math.min(1000, Math.max(PAGE, entries.length)) : PAGE;
    const requestId = requests += 1;
    const page = await ask({ ...filter, before, limit });
    // Another filter was chosen in the meantime.
    if (!page || requestId !== requests) return;
    shown = part === 'more' ? { ...page, entries: entries.concat(page.entries) } : page;
    rerender(element, render);
  }

  /** @param {'since' | 'person' | 'kind'} name @param {[string, string][]} choices @param {string} label */
  const select = (name, choices, label) => h('select', {
    name: `contribution-${name}`, 'aria-label': label, onchange: (event) => { filter = { ...filter, [name]: event.target.value }; load('first'); },
  }, choices.map(([value, text]) => h('option', { value, selected: value === filter[name] }, text)));

  /** Returns what an entry is about. What was deleted has no link. @param {Contribution} entry */
  const subject = (entry) => (entry.title === null ? h('span', { class: 'meta' }, t('deletedSubject')) : h('a', { href: link(entry) }, h('bdi', {}, entry.title)));

  function render() {
    if (!shown) return;
    const { people, entries, hasMore } = shown;
    element.hidden = false;
    const numbers = people.map(({ name, counts }) => ({
      key: `did ${name}`, cells: [h('bdi', {}, name), ...KINDS.map(([kind]) => formatNumber(counts[kind] || 0))],
    }));
    const row = (/** @type {Contribution} */ entry) => ({
      key: `entry ${entry.id}`,
      cells: [h('time', { datetime: new Date(entry.at).toISOString() }, formatTime(entry.at)), h('bdi', {}, entry.person), t(KINDS.find(([kind]) => kind === entry.kind)?.[2] || 'what'),
        subject(entry), h('bdi', {}, entry.machine || '–')],
    });
    const names = [...new Set([...people.map(({ name }) => name), filter.person])].filter(Boolean);
    setChildren(element,
      h('div', { class: 'head' }, h('h3', {}, t('whoDidWhat')),
        select('since', TIMES.map(([value, label]) => [value, t(label)]), t('timeRange')),
        select('person', [['', t('anyPerson')], ...names.map((name) => /** @type {[string, string]} */ ([name, name]))], t('person')),
        select('kind', [['', t('anyKind')], ...KINDS.map(([kind, label]) => /** @type {[string, string]} */ ([kind, t(label)]))], t('didWhat'))),
      numbers.length ? h('div', { class: 'numbers' }, table(['person', ...KINDS.map(([, label]) => label)], numbers)) : h('p', { class: 'hint' }, t('noContributions')),
      entries.length ? h('div', { class: 'entries' }, table(['time', 'person', 'didWhat', 'subject', 'machine'], entries.map(row))) : null,
      numbers.length && !entries.length ? h('p', { class: 'empty' }, t('noAudit')) : null,
      hasMore ? h('button', { 'data-action': 'more-contributions', onclick: () => load('more') }, t('more')) : null);
  }

  return { element, load };
}
