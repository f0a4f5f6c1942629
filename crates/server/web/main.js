// Navigation, language and theme. Changes from the change feed are passed to the shown view.

/** @import { Connection, Go, View } from './page-types.js' */

import { request, setSecretsQuestion, subscribe } from './api.js';
import { byId, h, setChildren } from './dom.js';
import { askAboutSecrets } from './forms.js';
import { handleKeys, showKeys } from './keys.js';
import { ledgerView } from './ledger.js';
import { memoryView } from './memory.js';
import { nowView } from './now.js';
import { rulesView } from './rules.js';
import { sessionsView } from './sessions.js';
import { teamView } from './team.js';
import { undoLast } from './undo.js';
import { t, language, setLanguage } from './words.js';
import { workView } from './work.js';

const VIEWS = { now: nowView, work: workView, sessions: sessionsView, ledger: ledgerView, memory: memoryView, rules: rulesView, team: teamView };
const THEMES = /** @type {const} */ (['auto', 'light', 'dark']);
/** Whether the page is that of a team. Its server has no rules and no ledger: they belong to the machines of people. The page of
 *  a machine shows the team of joined projects. */
const IS_TEAM = 'team' in document.documentElement.dataset;
const HIDDEN = IS_TEAM ? ['ledger', 'rules'] : ['team'];
const NAMES = /** @type {(keyof typeof VIEWS)[]} */ (Object.keys(VIEWS)).filter((name) => !HIDDEN.includes(name));

/** @type {{ name: keyof typeof VIEWS, view: View } | null} */
let shown = null;
/** @type {Connection} */
let connection = 'off';
const indicator = h('span', { class: 'connection', role: 'status' });

/** @type {Go} */
const go = (hash) => { if (location.hash === hash) route(); else location.hash = hash; };

let query = new URLSearchParams();

function parseHash() {
  const [path, search] = location.hash.replace(/^#\/?/, '').split('?');
  query = new URLSearchParams(search || '');
  return path.split('/').map((part) => {
    try { return decodeURIComponent(part); } catch { return ''; }
  });
}

let currentHash = location.hash;

function hasUnsaved() {
  return Boolean(shown?.view.hasUnsaved?.());
}

/** Asks whether to discard unsaved changes. Returns whether the user keeps them. */
function keepsUnsaved() {
  return hasUnsaved() && !window.confirm(t('discardEdit'));
}

/** Shows the view of the new hash, unless the user keeps unsaved changes. */
function onHashChange() {
  if (location.hash === currentHash) return;
  if (keepsUnsaved()) history.replaceState(null, '', currentHash || '#/now');
  else route();
}

function route() {
  currentHash = location.hash;
  const [name, ...rest] = parseHash();
  const known = NAMES.find((view) => view === name) || 'now';
  if (!shown || known !== shown.name) {
    shown = { name: known, view: VIEWS[known](go) };
    setChildren(byId('main'), shown.view.element);
    renderHeader();
  }
  document.title = `${t(known)} · Tanmi`;
  shown.view.route(rest[0] || null, rest[1] || null, query.get('project') || '');
}

function theme() {
  const saved = localStorage.getItem('tanmi-theme');
  return THEMES.find((name) => name === saved) || 'auto';
}

function applyTheme() {
  if (theme() === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}

function renderHeader() {
  document.documentElement.lang = language() === 'zh' ? 'zh-CN' : 'en';
  byId('skip').textContent = t('skip');
  setChildren(byId('top'),
    h('h1', {}, h('a', { class: 'brand', href: '#/now' }, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), 'Tanmi')),
    h('nav', { 'aria-label': 'Tanmi' }, NAMES.map((name) =>
      h('a', { href: `#/${name}`, 'aria-current': name === shown?.name ? 'page' : null }, t(name)))),
    h('button', { class: 'small quiet', id: 'palette', onclick: () => document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true })) },
      h('kbd', {}, 'Ctrl K'), h('span', {}, ` ${t('palette')}`)),
    h('button', { class: 'small quiet', id: 'keys', title: t('keys'), 'aria-label': t('keys'), onclick: showKeys }, h('kbd', {}, '?')),
    indicator,
    h('button', {
      class: 'small quiet', id: 'theme', title: t('theme'),
      onclick: () => { localStorage.setItem('tanmi-theme', THEMES[(THEMES.indexOf(theme()) + 1) % 3]); applyTheme(); renderHeader(); },
    }, `${t('theme')}: ${t(theme())}`),
    h('button', {
      class: 'small quiet', id: 'language', lang: language() === 'zh' ? 'en' : 'zh-CN',
      onclick: () => {
        if (keepsUnsaved()) return;
        setLanguage(language() === 'zh' ? 'en' : 'zh');
        shown = null;
        route();
      },
    }, t('language')),
    IS_TEAM && h('button', { class: 'small quiet', id: 'logout', onclick: logOut }, t('logOut')));
  renderConnection();
  // In a narrow window the navigation scrolls.
  byId('top').querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

/** Adds the view of the team if a project of this machine has joined one. */
async function showTeamOfJoined() {
  const answer = await request('GET /projects', {}).catch(() => null);
  if (!answer?.joined) return;
  NAMES.push('team');
  renderHeader();
  if (parseHash()[0] === 'team') route();
}

/** Ends the login of this browser. Without it, the page only says how to log in again. */
async function logOut() {
  if (keepsUnsaved()) return;
  await fetch(new URL('logout', document.baseURI), { method: 'POST' });
  location.reload();
}

function renderConnection() {
  indicator.textContent = { on: `● ${t('live')}`, off: `○ ${t('offline')}`, closed: `○ ${t('closed')}` }[connection];
  indicator.classList.toggle('off', connection !== 'on');
}

handleKeys({
  go, views: NAMES, view: () => shown?.view,
  actions: () => [
    { label: t('theme'), hint: t(theme()), icon: 'action', run: () => byId('theme').click() },
    { label: t('language'), icon: 'action', run: () => byId('language').click() },
    { label: t('undo'), hint: 'z', icon: 'action', run: undoLast },
    { label: t('keys'), hint: '?', icon: 'action', run: showKeys },
  ],
});

window.addEventListener('hashchange', onHashChange);
window.addEventListener('beforeunload', (event) => { if (hasUnsaved()) event.preventDefault(); });
applyTheme();
setSecretsQuestion(askAboutSecrets);
route();
if (!IS_TEAM) showTeamOfJoined();
subscribe({
  onChange: (change) => shown?.view.onChange(change),
  onGap: () => shown?.view.onGap(),
  onConnection: (now) => { if (now !== connection) { connection = now; renderConnection(); } },
});
