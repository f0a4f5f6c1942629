// The log of a node or a workspace: by day, the latest entry first, with what Tanmi wrote by itself set apart.

/** @import { LogEntry, LogMarkdown } from './api-types.js' */

import { h, renderMarkdown } from './dom.js';
import { formatAgo, formatClock, groupByDay, parseStamp } from './time.js';
import { t } from './words.js';

const STATUS = 'pending|planning|monitoring|implementing|validating|completed|failed|cancelled';
/** Entries that Tanmi writes at a step, when a session takes a node over, when a dependency is removed, a problem is cleared or a rule changes. */
const AUTOMATIC = new RegExp(`^[^:：]{1,20}[:：] ?(${STATUS}) → (${STATUS})|^taken over by another session|^由另一个会话接手|^removed the dependency on |^移除对|^problem cleared: |^已清除问题：|^rules changed: |^规则变更：`);

/**
 * @param {LogEntry[]} entries
 * @param {boolean} isUtc whether the stamps are UTC, as in a project of a team
 * @param {LogMarkdown[]} [rendered]
 */
export function logList(entries, isUtc, rendered) {
  const lines = entries.map((entry, at) => ({ entry, markdown: rendered?.[at], time: parseStamp(entry.timestamp || '', isUtc) })).reverse();
  return groupByDay(lines, (line) => line.time).map(({ day, items }) => [
    h('h4', { class: 'day' }, day),
    h('ol', { class: 'timeline' }, items.map(({ entry, markdown, time }) => {
      const isAutomatic = AUTOMATIC.test(entry.event);
      return h('li', { class: `${entry.operator}${isAutomatic ? ' automatic' : ''}` },
        h('span', { class: 'when' },
          h('time', { title: isUtc ? `${entry.timestamp} UTC` : entry.timestamp, datetime: time === null ? null : new Date(time).toISOString() }, time === null ? entry.timestamp || '–' : formatClock(time)),
          h('span', { class: 'operator' }, t(entry.operator === 'Human' ? 'byPerson' : 'byAgent')),
          time !== null && Date.now() - time < 86_400_000 ? h('span', {}, formatAgo(time)) : null),
        markdown && !isAutomatic ? renderMarkdown(markdown) : h('bdi', { class: 'plain' }, entry.event));
    })),
  ]);
}
