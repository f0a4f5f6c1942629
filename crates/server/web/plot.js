// Small plots as SVG. The same numbers are also available as a table, for screen readers.

import { h } from './dom.js';
import { t, formatNumber } from './words.js';

const WIDTH = 640;
const HEIGHT = 160;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;

/**
 * Plots bars of one series, or one line per series.
 * @param {string} title
 * @param {string[]} days the labels of the x axis
 * @param {{ key: string, label: string, values: number[] }[]} series
 * @param {{ bars?: boolean, digits?: number }} [options]
 */
export function plot(title, days, series, { bars, digits } = {}) {
  const highest = Math.max(...series.flatMap((line) => line.values));
  const top = highest > 0 ? roundUp(highest) : 1;
  /** @param {number} at */
  const x = (at) => LEFT + ((at + 0.5) * (WIDTH - LEFT)) / Math.max(1, days.length);
  /** @param {number} value */
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  /** @param {number} value */
  const format = (value) => (digits ? value.toFixed(digits) : formatNumber(value));
  const grid = [0, 0.5, 1].map((share) => [
    h('svg:line', { x1: LEFT, x2: WIDTH, y1: y(top * share), y2: y(top * share), class: 'grid' }),
    h('svg:text', { x: LEFT - 6, y: y(top * share) + 4, class: 'tick', 'text-anchor': 'end' }, format(top * share)),
  ]);
  const every = Math.ceil(days.length / 8);
  const labels = days.map((day, at) => (at % every === 0
    ? h('svg:text', { x: x(at), y: HEIGHT - 6, class: 'tick', 'text-anchor': 'middle' }, day.slice(5)) : null));
  const width = Math.max(2, Math.min(36, ((WIDTH - LEFT) / Math.max(1, days.length)) * 0.7));
  const shapes = series.map((line) => (bars
    ? line.values.map((value, at) => h('svg:rect', {
      x: x(at) - width / 2, y: y(value), width, height: Math.max(0, y(0) - y(value)), rx: 2, class: `bar ${line.key}`,
    }, h('svg:title', {}, `${days[at]}: ${format(value)}`)))
    : [
      h('svg:polyline', { points: line.values.map((value, at) => `${x(at)},${y(value)}`).join(' '), class: `line ${line.key}` }),
      line.values.map((value, at) => h('svg:circle', { cx: x(at), cy: y(value), r: 3, class: `point ${line.key}` },
        h('svg:title', {}, `${days[at]} ${line.label}: ${format(value)}`))),
    ]));
  return h('figure', { class: 'plot' },
    h('figcaption', {}, title, series.length > 1 ? h('span', { class: 'legend' }, series.map((line) =>
      h('span', {}, h('i', { class: `key ${line.key}` }), line.label))) : null),
    h('svg:svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title }, grid, labels, shapes),
    h('details', {}, h('summary', {}, t('asTable')), h('table', {},
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('day')), series.map((line) => h('th', { scope: 'col' }, line.label)))),
      h('tbody', {}, days.map((day, at) => h('tr', {}, h('td', {}, day),
        series.map((line) => h('td', { class: 'number' }, format(line.values[at])))))))));
}

/** Returns the next round number above `value`. @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) || value;
}
