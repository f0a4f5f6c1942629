// Steps of a node: the state machine decides which are offered, and a step that would fail says why.

/** @import { AllowedAction, NodeView, OfNode } from './api-types.js' */

import { hasCode, request } from './api.js';
import { attempt, byId, h, runExclusive } from './dom.js';
import { openDialog } from './forms.js';
import { statusIcon } from './icons.js';
import { t, statusText } from './words.js';

/** The step that a person most likely wants next, by priority. */
const NEXT = ['start', 'complete', 'retry'];

/** Returns the step that the page proposes. @param {AllowedAction[]} actions */
export function nextStep(actions) {
  const possible = actions.filter((step) => !step.blocked);
  return NEXT.map((action) => possible.find((step) => step.action === action)).find(Boolean) || null;
}

/**
 * Runs `change`. A node that another session holds is changed only if the user takes it over.
 * @param {(force: boolean) => Promise<unknown>} change
 */
export async function confirmTakeOver(change) {
  try {
    await change(false);
  } catch (error) {
    if (!hasCode(error, 'NODE_TAKEN')) throw error;
    openDialog({
      title: t('takeOver'), text: t('takeOverText', error.message), confirmLabel: t('takeOver'), danger: true,
      onSubmit: () => change(true),
    });
  }
}

/**
 * Takes a step, after asking for a conclusion if it needs one.
 * @param {HTMLElement} element
 * @param {OfNode} params
 * @param {AllowedAction} step
 * @param {() => unknown} onDone
 */
export function takeStep(element, params, step, onDone) {
  /** @param {string} [conclusion] */
  const send = (conclusion) => confirmTakeOver(async (force) => {
    const body = { action: step.action, conclusion, force: force || undefined };
    await request('POST /workspaces/{workspaceId}/nodes/{nodeId}/transition', { params, body });
    await onDone();
  });
  if (!step.needsConclusion) {
    runExclusive(element, () => send());
    return;
  }
  openDialog({
    title: t('conclusionFor', t(step.action)), confirmLabel: t(step.action),
    fields: [{ name: 'conclusion', label: t('conclusion'), rows: 5, required: true, autofocus: true }],
    onSubmit: (typed) => send(typed.conclusion),
  });
}

/**
 * Opens a menu with the steps of a node at an element.
 * @param {OfNode} params
 * @param {HTMLElement} anchor
 */
export async function openStepMenu(params, anchor) {
  const view = await attempt(() => request('GET /workspaces/{workspaceId}/nodes/{nodeId}', { params }));
  if (!view) return;
  document.querySelector('.menu')?.remove();
  const menu = h('div', { class: 'menu', role: 'menu', popover: 'auto', 'aria-label': view.node.title }, menuItems(params, view));
  const { left, bottom } = anchor.getBoundingClientRect();
  // Below a landmark, for screen readers.
  byId('main').append(menu);
  menu.style.left = `${left}px`;
  menu.style.top = `${bottom}px`;
  const from = document.activeElement;
  menu.addEventListener('toggle', () => {
    if (menu.matches(':popover-open')) return;
    menu.remove();
    if (from instanceof HTMLElement) from.focus();
  });
  menu.addEventListener('keydown', onMenuKey);
  menu.showPopover();
  const space = window.innerHeight - menu.getBoundingClientRect().bottom;
  if (space < 0) menu.style.top = `${Math.max(0, bottom + space - 8)}px`;
  menu.querySelector('button')?.focus();
}

/** @param {OfNode} params @param {NodeView} view */
function menuItems(params, view) {
  if (!view.actions.length) return h('p', { class: 'meta' }, view.writable ? t('noSteps') : t('readOnly'));
  return view.actions.map((step) => h('button', {
    role: 'menuitem', 'data-status': step.to, 'data-action': step.action, 'aria-disabled': step.blocked ? 'true' : null,
    onclick: (event) => {
      if (step.blocked) return;
      const button = event.currentTarget;
      /** @type {HTMLElement | null} */ (button.closest('.menu'))?.hidePopover();
      takeStep(button, params, step, () => {});
    },
  }, h('span', { class: 'symbol' }, statusIcon(step.to)), h('span', {}, t(step.action), h('small', {}, step.blocked || statusText(step.to)))));
}

/** @param {KeyboardEvent} event */
function onMenuKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !(event.currentTarget instanceof HTMLElement)) return;
  event.preventDefault();
  const items = [...event.currentTarget.querySelectorAll('button')];
  const at = items.findIndex((item) => item === document.activeElement);
  items[(at + step + items.length) % items.length]?.focus();
}
