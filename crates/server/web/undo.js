// Undo: the last deletion, move or unbinding can be undone with the button of its toast and, after that, with the key `z`.

import { attempt, toast } from './dom.js';
import { t } from './words.js';

/** @type {{ text: string, run: () => Promise<unknown> } | null} */
let last = null;

/**
 * Tells that something was done, and offers to undo it.
 * @param {string} text
 * @param {() => Promise<unknown>} run
 */
export function offerUndo(text, run) {
  const offer = { text, run };
  last = offer;
  toast(text, undefined, { label: t('undo'), run: () => undo(offer) });
}

/** Undoes what was offered last. */
export function undoLast() {
  if (last) attempt(() => undo(/** @type {NonNullable<typeof last>} */ (last)));
  else toast(t('nothingToUndo'));
}

/** @param {NonNullable<typeof last>} offer */
async function undo(offer) {
  if (last === offer) last = null;
  await offer.run();
  toast(t('undone', offer.text));
}
