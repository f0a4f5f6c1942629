// Shows the nodes that match a query or a status as a flat list, in place of the tree.

/** @import { NodeRow } from './api-types.js' */
/** @import { Tree } from './tree.js' */
/** @typedef {{ query: string, status: string }} Filter */
/** How many nodes a filter found so far. @typedef {{ count: number, more: boolean, searching: boolean }} Matches */

import { PAGE } from './tree.js';

/**
 * Shows first the nodes whose titles match, then also those whose other texts match. Without a query and a status, shows the tree
 * again. `isRefresh`: the filter is the same, so what it found stays until the end.
 * @param {Tree} tree
 * @param {Filter} filter
 * @param {boolean} [isRefresh]
 */
export async function filterTree(tree, { query, status }, isRefresh) {
  const filter = tree.activeFilter = { query, status };
  tree.nextMatch = null;
  if (!query && !status) {
    tree.matches = null;
    tree.updateRows();
    tree.onMatches(null);
    return;
  }
  if (!isRefresh || !query) showMatches(tree, filter, await tree.fetchPage({ query, status, limit: PAGE }), [], Boolean(query));
  if (query) await searchTexts(tree, filter);
}

/** Searches all texts, a page of nodes at a time. @param {Tree} tree @param {Filter} filter */
async function searchTexts(tree, filter) {
  /** @type {string[]} */
  let found = [];
  /** @type {string | undefined} */
  let after;
  while (filter === tree.activeFilter) {
    const page = await tree.fetchPage({ ...filter, texts: true, limit: PAGE - found.length, after });
    if (!page.nextAfter || found.length + page.nodes.length >= PAGE) {
      showMatches(tree, filter, page, found, false, true);
      return;
    }
    storeMatches(tree, page.nodes);
    found = found.concat(page.nodes.map((row) => row.id));
    after = page.nextAfter;
  }
}

/** @param {Tree} tree @param {NodeRow[]} rows */
function storeMatches(tree, rows) {
  rows.forEach((row) => { tree.storeRow(row); const known = tree.nodes.get(row.id); if (known) known.row.found = row.found; });
}

/**
 * @param {Tree} tree
 * @param {Filter} filter
 * @param {{ nodes: NodeRow[], nextAfter?: string }} page
 * @param {string[]} before
 * @param {boolean} searching
 * @param {boolean} [inTexts]
 */
function showMatches(tree, filter, page, before, searching, inTexts) {
  if (filter !== tree.activeFilter) return;
  storeMatches(tree, page.nodes);
  tree.matches = before.concat(page.nodes.map((row) => row.id));
  // More matches of a status are fetched while scrolling. A search in texts ends with its first page.
  tree.nextMatch = inTexts || searching ? null : page.nextAfter || null;
  tree.updateRows();
  tree.onMatches({ count: tree.matches.length, more: Boolean(page.nextAfter), searching });
}

/** Fetches the next page of matches. @param {Tree} tree */
export async function fetchMoreMatches(tree) {
  const filter = tree.activeFilter;
  const page = await tree.fetchPage({ ...filter, limit: PAGE, after: tree.nextMatch || undefined });
  showMatches(tree, filter, page, tree.matches || [], false);
}
