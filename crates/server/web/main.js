// The frame: navigation, language, theme, and the feed of changes, which goes to whatever is shown.

import { listen } from './api.js';
import { h, show } from './dom.js';
import { ledgerView } from './ledger.js';
import { memoryView } from './memory.js';
import { rulesView } from './rules.js';
import { sessionsView } from './sessions.js';
import { t, language, setLanguage } from './words.js';
import { workView } from './work.js';

const VIEWS = { work: workView, sessions: sessionsView, ledger: ledgerView, memory: memoryView, rules: rulesView };
const THEMES = ['auto', 'light', 'dark'];

let shown = { name: null, view: null };
let state = 'off';
const live = h('span', { class: 'live', role: 'status' });

const go = (hash) => { if (location.hash === hash) route(); else location.hash = hash; };

let query = new URLSearchParams();

function parts() {
  const [path, search] = location.hash.replace(/^#\/?/, '').split('?');
  query = new URLSearchParams(search || '');
  return path.split('/').map((part) => {
    try { return decodeURIComponent(part); } catch { return ''; }
  });
}

let settled = location.hash;

function isKept() {
  return Boolean(shown.view && shown.view.unsaved && shown.view.unsaved()) && !window.confirm(t('dropEdit'));
}

/** Another place was asked for: what is not saved here is not lost without a word. */
function moved() {
  if (location.hash === settled) return;
  if (isKept()) history.replaceState(null, '', settled || '#/work');
  else route();
}

function route() {
  settled = location.hash;
  const [name, ...rest] = parts();
  const known = Object.hasOwn(VIEWS, name) ? name : 'work';
  if (known !== shown.name) {
    shown = { name: known, view: VIEWS[known](go) };
    show(document.getElementById('main'), shown.view.element);
    frame();
  }
  document.title = `${t(known)} · Tanmi`;
  shown.view.route(rest[0] || null, rest[1] || null, query.get('project') || '');
}

function theme() {
  const kept = localStorage.getItem('tanmi-theme');
  return THEMES.includes(kept) ? kept : 'auto';
}

function dress() {
  if (theme() === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}

function frame() {
  document.documentElement.lang = language() === 'zh' ? 'zh-CN' : 'en';
  document.querySelector('.skip').textContent = t('skip');
  show(document.getElementById('top'),
    h('h1', {}, h('a', { class: 'brand', href: '#/work' }, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), 'Tanmi')),
    h('nav', { 'aria-label': 'Tanmi' }, Object.keys(VIEWS).map((name) =>
      h('a', { href: `#/${name}`, 'aria-current': name === shown.name ? 'page' : null }, t(name)))),
    live,
    h('button', {
      class: 'small quiet', id: 'theme', title: t('theme'),
      onclick: () => { localStorage.setItem('tanmi-theme', THEMES[(THEMES.indexOf(theme()) + 1) % 3]); dress(); frame(); },
    }, `${t('theme')}: ${t(theme())}`),
    h('button', {
      class: 'small quiet', id: 'language', lang: language() === 'zh' ? 'en' : 'zh-CN',
      onclick: () => {
        if (isKept()) return;
        setLanguage(language() === 'zh' ? 'en' : 'zh');
        shown = { name: null, view: null };
        route();
      },
    }, t('language')));
  paintLive();
}

function paintLive() {
  live.textContent = { on: `● ${t('live')}`, off: `○ ${t('offline')}`, closed: `○ ${t('closed')}` }[state];
  live.classList.toggle('off', state !== 'on');
}

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest('input, textarea, select, dialog');
  if (event.key === '/' && !typing && shown.view && shown.view.focusSearch) {
    event.preventDefault();
    shown.view.focusSearch();
  }
});

window.addEventListener('hashchange', moved);
window.addEventListener('beforeunload', (event) => { if (shown.view && shown.view.unsaved && shown.view.unsaved()) event.preventDefault(); });
dress();
route();
listen({
  heard: (news) => { if (shown.view) shown.view.heard(news); },
  lost: () => { if (shown.view) shown.view.lost(); },
  live: (now) => { if (now !== state) { state = now; paintLive(); } },
});
