// Icons: one set of small drawings, in the colour of the text around them.

/** @import { NodeStatus } from './api-types.js' */
/** @typedef {keyof typeof SHAPES} Icon */

import { h } from './dom.js';

/** The outlines of the icons in a square of 16. A shape that begins with `.` is filled. */
const SHAPES = {
  pending: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11'],
  planning: ['M8 2l6 6l-6 6l-6-6z'],
  monitoring: ['M8 2l6 6l-6 6l-6-6z', '.M8 5l3 3l-3 3l-3-3z'],
  implementing: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11', '.M6.5 5.2v5.6l4.4-2.8z'],
  validating: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11', '.M8 5.6a2.4 2.4 0 1 1 0 4.8a2.4 2.4 0 1 1 0-4.8'],
  completed: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11', 'M5.4 8.2l1.9 1.9l3.4-3.9'],
  failed: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11', 'M6 6l4 4M10 6l-4 4'],
  cancelled: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11', 'M4.2 11.8l7.6-7.6'],
  damaged: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11', 'M8 5v4', '.M7.3 10.6h1.4v1.4h-1.4z'],
  closed: ['M6 4l4 4l-4 4'],
  open: ['M4 6l4 4l4-4'],
  warning: ['M8 2.2l6.2 11.3h-12.4z', 'M8 6.5v3.2', '.M7.4 10.9h1.2v1.2h-1.2z'],
  agent: ['.M8 4.6a3.4 3.4 0 1 1 0 6.8a3.4 3.4 0 1 1 0-6.8'],
  running: ['.M5 3.4v9.2l7-4.6z'],
  remove: ['M4.5 4.5l7 7M11.5 4.5l-7 7'],
  workspace: ['M2.5 4.5h4l1.5 1.5h5.5v7h-11z'],
  session: ['M2.5 3.5h11v7.5h-6l-3 2.5v-2.5h-2z'],
  view: ['M2.5 3h11v10h-11z', 'M2.5 6h11'],
  action: ['M9 2.5l-5 6.5h4l-1 4.5l5-6.5h-4z'],
  expand: ['M5 6l3-3l3 3', 'M5 10l3 3l3-3'],
  collapse: ['M5 3l3 3l3-3', 'M5 13l3-3l3 3'],
};

/** Copying an icon is faster than building it, which matters while the tree is scrolled. @type {Map<Icon, SVGElement>} */
const built = new Map();

/** @param {Icon} name */
export function icon(name) {
  const known = built.get(name) || build(name);
  built.set(name, known);
  return /** @type {SVGElement} */ (known.cloneNode(true));
}

/** @param {Icon} name */
function build(name) {
  return h('svg:svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true' }, SHAPES[name].map((shape) =>
    h('svg:path', shape.startsWith('.') ? { d: shape.slice(1), class: 'filled' } : { d: shape })));
}

/** Returns the icon of a status. @param {NodeStatus} status */
export function statusIcon(status) {
  return icon(status in SHAPES ? status : 'damaged');
}
