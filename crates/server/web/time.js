// Times as people read them: how long ago, the time of day, and the day.

import { language, t } from './words.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const locale = () => (language() === 'zh' ? 'zh-CN' : 'en');

/** Returns the time of a log entry, written as `YYYY-MM-DD HH:mm:ss`. People can write any text there. @param {string} stamp @param {boolean} isUtc whether it is not a local time */
export function parseStamp(stamp, isUtc) {
  const found = stamp.match(/^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d))?/);
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1).map(Number);
  const parts = /** @type {const} */ ([year, month - 1, day, hour, minute, second || 0]);
  return isUtc ? Date.UTC(...parts) : new Date(...parts).getTime();
}

/** Returns how long ago a time was; after a week, or in the future, its day. @param {number} millis */
export function formatAgo(millis) {
  const ago = Date.now() - millis;
  if (ago < -MINUTE || ago > 7 * DAY) return formatDay(millis);
  if (ago < MINUTE) return t('justNow');
  const format = new Intl.RelativeTimeFormat(locale(), { style: 'narrow' });
  if (ago < HOUR) return format.format(-Math.floor(ago / MINUTE), 'minute');
  if (ago < DAY) return format.format(-Math.floor(ago / HOUR), 'hour');
  return format.format(-Math.floor(ago / DAY), 'day');
}

/** Returns the day, with the year only if it is another one. @param {number} millis */
export function formatDay(millis) {
  const day = new Date(millis);
  const start = new Date();
  start.setHours(0, 0, 0, 0);
  if (day >= start && Number(day) < Number(start) + DAY) return t('today');
  if (day < start && Number(day) >= Number(start) - DAY) return t('yesterday');
  const year = day.getFullYear() === start.getFullYear() ? undefined : 'numeric';
  return new Intl.DateTimeFormat(locale(), { year, month: 'short', day: 'numeric' }).format(day);
}

/** Returns the time of day. @param {number} millis */
export function formatClock(millis) {
  return new Intl.DateTimeFormat(locale(), { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(new Date(millis));
}

/**
 * Groups items by day, in their order. Items without a time are one group.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => number | null} timeOf
 * @returns {{ day: string, items: T[] }[]}
 */
export function groupByDay(items, timeOf) {
  /** @type {{ day: string, items: T[] }[]} */
  const groups = [];
  for (const item of items) {
    const time = timeOf(item);
    const day = time === null ? t('noDay') : formatDay(time);
    const last = groups[groups.length - 1];
    if (last && last.day === day) last.items.push(item);
    else groups.push({ day, items: [item] });
  }
  return groups;
}
