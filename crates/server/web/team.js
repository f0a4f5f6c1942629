// The view of a team: who works on what, people, tokens and the audit. Only admins get more than the presence.

/** @import { AuditEntry, IssuedToken, Person, Presence, Role, Token } from './team-types.js' */
/** @import { Child, View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { enc, hasStatus, request } from './api.js';
import { coalesce } from './activity.js';
import { h, setChildren, rerender, attempt } from './dom.js';
import { openDialog } from './forms.js';
import { duration, serverNow, timeAgo } from './names.js';
import { t, formatNumber, formatTime } from './words.js';

const AUDIT_PAGE = 50;
/** The most people, tokens and held nodes that are shown. */
const LIMIT = 500;
/** The words of the audit. */
const EVENTS = /** @satisfies {Word[]} */ (['login', 'login_failed', 'logout', 'project_added', 'person_added', 'person_disabled', 'person_enabled', 'member_set',
  'token_created', 'token_revoked', 'token_rotated', 'exported', 'imported', 'claim_forced']);
/** @type {Record<Role, Word>} */
const ROLES = { reader: 'roleReader', member: 'roleMember', admin: 'roleAdmin' };
/** @type {[string, Word][]} */
const LIFETIMES = [['30d', 'days30'], ['90d', 'days90'], ['365d', 'days365'], ['', 'forever']];

/** @param {Role} role */
const roleText = (role) => t(ROLES[role]);

/** Says that a list is longer than it is shown. @param {boolean} isCut */
const cutNote = (isCut) => (isCut ? h('p', { class: 'meta' }, t('firstOnly', formatNumber(LIMIT))) : null);

/** Returns a table that a narrow window shows as a list. The first cell of a row is its name. @param {Word[]} columns @param {{ key: string, cells: Child[] }[]} rows */
const table = (columns, rows) => h('table', { class: 'stacked' },
  h('thead', {}, h('tr', {}, columns.map((key) => h('th', { scope: 'col' }, t(key))))),
  h('tbody', {}, rows.map(({ key, cells }) => h('tr', { 'data-key': key }, cells.map((cell, at) => (at === 0
    ? h('th', { scope: 'row' }, cell) : h('td', { 'data-label': t(columns[at]) }, cell)))))));

/** @param {Word} title @param {number} count @param {Child[]} rest */
const head = (title, count, ...rest) => h('div', { class: 'head' }, h('h3', {}, t(title), ' ', h('span', { class: 'count' }, formatNumber(count))), rest);

/** @returns {View} */
export function teamView() {
  const presencePart = h('section', { class: 'presence' }, h('p', { class: 'empty' }, t('loading')));
  const peoplePart = h('section', { class: 'people', hidden: true });
  const tokensPart = h('section', { class: 'tokens', hidden: true });
  const auditPart = h('section', { class: 'audit', hidden: true });
  const element = h('div', { class: 'view team-view' }, h('h2', {}, t('team')), presencePart, peoplePart, tokensPart, auditPart);
  /** @type {Person[]} */
  let people = [];
  /** @type {Token[]} */
  let tokens = [];
  /** @type {AuditEntry[]} */
  let entries = [];
  let hasMoreEntries = false;
  let auditRequests = 0;
  /** Whether a list is longer than it is shown. */
  let isCut = { presence: false, people: false, tokens: false };
  let filter = { person: '', what: '' };
  let showsInvalid = false;

  async function load() {
    const answer = await attempt(() => request('GET /team/presence', { params: { limit: LIMIT } }));
    if (!answer) return;
    isCut = { ...isCut, presence: answer.hasMore };
    rerender(presencePart, () => renderPresence(answer.presence));
    const administered = await attempt(loadAdministration);
    if (!administered) return;
    people = administered.found.people;
    tokens = administered.issued.tokens;
    isCut = { ...isCut, people: administered.found.hasMore, tokens: administered.issued.hasMore };
    rerender(peoplePart, () => renderPeople(answer.presence));
    rerender(tokensPart, renderTokens);
    await loadAudit('refresh');
  }

  /** Fetches what only admins may see; `null` for others. */
  async function loadAdministration() {
    try {
      const [found, issued] = await Promise.all([request('GET /team/people', { params: { limit: LIMIT } }), request('GET /team/tokens', { params: { limit: LIMIT } })]);
      return { found, issued };
    } catch (error) {
      if (hasStatus(error, 403)) return null;
      throw error;
    }
  }

  /** @param {Presence[]} held */
  function renderPresence(held) {
    const row = (/** @type {Presence} */ line) => ({
      key: `held ${line.workspaceId} ${line.nodeId}`,
      cells: [
        [h('span', { class: `dot ${line.isLive ? 'on' : ''}` }), h('bdi', {}, line.person || '–'), h('span', { class: 'sr-only' }, t(line.isLive ? 'holds' : 'leaseEnded'))],
        h('a', { href: `#/work/${enc(line.workspaceId)}/${enc(line.nodeId)}` }, h('bdi', {}, line.nodeTitle)),
        h('a', { href: `#/work/${enc(line.workspaceId)}` }, h('bdi', {}, line.workspaceName)),
        h('bdi', { title: line.session }, [line.machine, line.client].filter(Boolean).join(' · ') || '–'),
        h('span', { title: formatTime(line.since) }, duration(line.since), line.isLive ? null : h('span', { class: 'badge' }, t('leaseEnded'))),
      ],
    });
    setChildren(presencePart, head('presence', held.length), held.length
      ? table(['person', 'node', 'boundTo', 'machine', 'sinceWhen'], held.map(row))
      : h('p', { class: 'hint' }, t('noneWorks'), ' ', h('code', {}, 'tanmi start')), cutNote(isCut.presence));
  }

  /** @param {Presence[]} held */
  function renderPeople(held) {
    const row = (/** @type {Person} */ person) => ({
      key: `person ${person.name}`,
      cells: [h('bdi', {}, person.name), [person.roles.map(({ role }) => roleText(role)).join(', ') || '–', person.disabledAt ? h('span', { class: 'badge' }, t('disabled')) : null],
        formatNumber(held.filter((line) => line.person === person.name).length)],
    });
    peoplePart.hidden = false;
    setChildren(peoplePart, head('people', people.length), table(['person', 'role', 'nodesHeld'], people.map(row)), cutNote(isCut.people),
      people.length > 1 ? null : h('p', { class: 'hint' }, t('onlyYou'), ' ', h('code', {}, 'tanmi team person add NAME')));
  }

  /** Returns why a token is not valid. @param {Token} token @returns {Word | null} */
  const invalidity = (token) => (token.revokedAt ? 'revoked' : token.expiresAt && token.expiresAt < serverNow() ? 'expired' : null);

  function renderTokens() {
    const shown = tokens.filter((token) => showsInvalid || !invalidity(token));
    const row = (/** @type {Token} */ token) => {
      const reason = invalidity(token);
      const name = token.name || t('unnamed');
      return {
        key: `token ${token.id}`,
        cells: [
          [h('bdi', {}, name), reason ? h('span', { class: 'badge' }, t(reason)) : null], h('bdi', {}, token.person),
          [roleText(token.role), token.project ? h('span', { class: 'badge' }, token.project) : null],
          token.expiresAt ? h('span', { title: formatTime(token.expiresAt) }, formatTime(token.expiresAt).slice(0, 10)) : t('noExpiry'),
          token.lastUsedAt ? h('span', { title: formatTime(token.lastUsedAt) }, timeAgo(token.lastUsedAt)) : t('never'),
          reason ? '' : h('span', { class: 'buttons' },
            h('button', { class: 'small', 'data-action': `rotate ${token.id}`, onclick: () => rotate(token, name) }, t('rotate')),
            h('button', { class: 'small danger', 'data-action': `revoke ${token.id}`, onclick: () => revoke(token, name) }, t('revoke'))),
        ],
      };
    };
    tokensPart.hidden = false;
    setChildren(tokensPart,
      head('accessTokens', shown.length,
        h('label', { class: 'check' }, h('input', { type: 'checkbox', name: 'invalid', checked: showsInvalid, onchange: (event) => { showsInvalid = event.target.checked; renderTokens(); } }), t('showInvalid')),
        h('button', { class: 'primary small', 'data-action': 'new-token', onclick: create }, t('newToken'))),
      shown.length ? table(['tokenFor', 'person', 'role', 'expires', 'lastUsed', 'actions'], shown.map(row)) : h('p', { class: 'empty' }, t('noTokens')), cutNote(isCut.tokens));
  }

  function create() {
    const active = people.filter((person) => !person.disabledAt);
    openDialog({
      title: t('newToken'), confirmLabel: t('create'),
      fields: [
        { name: 'person', label: t('person'), choices: active.map(({ name }) => [name, name]) },
        { name: 'name', label: t('tokenFor'), autofocus: true },
        { name: 'role', label: t('role'), choices: /** @type {Role[]} */ (['member', 'reader', 'admin']).map((role) => [role, roleText(role)]) },
        { name: 'expires', label: t('validFor'), value: '90d', choices: LIFETIMES.map(([value, label]) => [value, t(label)]) },
      ],
      onSubmit: async ({ person, name, role, expires }) => {
        const body = { person, role: /** @type {Role} */ (role), name: name || undefined, expires: expires || undefined };
        showSecret(await request('POST /team/tokens', { body }));
      },
    });
  }

  /** @param {Token} token @param {string} name */
  const rotate = (token, name) => openDialog({
    title: t('rotate'), text: t('rotateText', name, token.person), confirmLabel: t('rotate'),
    onSubmit: async () => showSecret(await request('POST /team/tokens/{id}/rotate', { params: { id: token.id } })),
  });

  /** @param {Token} token @param {string} name */
  const revoke = (token, name) => openDialog({
    title: t('revoke'), text: t('revokeText', name, token.person), confirmLabel: t('revoke'), danger: true,
    onSubmit: async () => {
      await request('DELETE /team/tokens/{id}', { params: { id: token.id } });
      await load();
    },
  });

  /** Shows the text of a new token, the only time that it can be read. @param {IssuedToken} issued */
  function showSecret(issued) {
    const secret = h('input', { readonly: true, class: 'secret', 'aria-label': t('tokenCreated'), value: issued.token, autofocus: true });
    secret.addEventListener('focus', () => secret.select());
    const copy = async () => {
      secret.select();
      // Not every browser lets a page write the clipboard; then the text is selected.
      const isCopied = await navigator.clipboard?.writeText(issued.token).then(() => true, () => false);
      if (isCopied) button.textContent = t('copied');
    };
    const button = h('button', { type: 'button', 'data-action': 'copy', onclick: copy }, t('copy'));
    /** @type {HTMLDialogElement} */
    const dialog = h('dialog', { 'aria-label': t('tokenCreated'), onclose: () => { secret.value = ''; dialog.remove(); } },
      h('h2', {}, t('tokenCreated')), h('p', {}, h('bdi', {}, issued.person), ` · ${roleText(issued.role)}`), h('p', {}, t('tokenOnce')), secret,
      h('div', { class: 'buttons' }, button, h('button', { type: 'button', class: 'primary', onclick: () => dialog.close() }, t('close'))));
    document.body.append(dialog);
    dialog.showModal();
    load();
  }

  /** Fetches the first page of the audit, the next one, or as many entries as are shown. @param {'first' | 'more' | 'refresh'} part */
  async function loadAudit(part) {
    const before = part === 'more' ? entries[entries.length - 1]?.id : undefined;
    const limit = part === 'refresh' ? Math.min(1000, Math.max(AUDIT_PAGE, entries.length)) : AUDIT_PAGE;
    const requestId = auditRequests += 1;
    const page = await attempt(() => request('GET /team/audit', { params: { ...filter, before, limit } }));
    // Another filter was chosen in the meantime.
    if (!page || requestId !== auditRequests) return;
    entries = part === 'more' ? entries.concat(page.entries) : page.entries;
    hasMoreEntries = page.hasMore;
    rerender(auditPart, renderAudit);
  }

  /** @param {'person' | 'what'} name @param {[string, string][]} choices @param {string} label */
  const select = (name, choices, label) => h('select', {
    name, 'aria-label': label, onchange: (event) => { filter = { ...filter, [name]: event.target.value }; loadAudit('first'); },
  }, choices.map(([value, text]) => h('option', { value, selected: value === filter[name] }, text)));

  /** @param {string} what */
  const eventText = (what) => t(/** @type {Word} */ (what));

  function renderAudit() {
    /** @type {(line: AuditEntry) => { key: string, cells: Child[] }} */
    const row = (line) => ({
      key: `audit ${line.id}`,
      cells: [h('time', { datetime: new Date(line.at).toISOString() }, formatTime(line.at)), h('bdi', {}, line.person || '–'), eventText(line.what), detailText(line), line.ip || '–'],
    });
    auditPart.hidden = false;
    setChildren(auditPart,
      h('div', { class: 'head' }, h('h3', {}, t('audit')),
        select('person', [['', t('anyPerson')], ...people.map(({ name }) => /** @type {[string, string]} */ ([name, name]))], t('person')),
        select('what', [['', t('anyEvent')], ...EVENTS.map((what) => /** @type {[string, string]} */ ([what, t(what)]))], t('what'))),
      entries.length ? table(['time', 'person', 'what', 'detail', 'address'], entries.map(row)) : h('p', { class: 'empty' }, t('noAudit')),
      hasMoreEntries ? h('button', { 'data-action': 'more-audit', onclick: () => loadAudit('more') }, t('more')) : null);
  }

  /** Returns what an entry is about, such as `role: admin`. @param {AuditEntry} entry */
  const detailText = ({ detail }) => h('bdi', { class: 'meta' }, Object.entries(detail || {})
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(' · ') || '–');

  const reload = coalesce(load, 300);
  // A lease ends and a duration grows while nothing changes.
  const timer = setInterval(() => { if (element.isConnected) reload(); else clearInterval(timer); }, 30000);
  return {
    element, route: load,
    onChange(change) { if (change.kind === 'workspace' || change.kind === 'bindings') reload(); },
    onGap: reload,
    focusSearch: () => /** @type {HTMLElement | null} */ (auditPart.querySelector('select'))?.focus(),
    actions: () => (tokensPart.hidden ? [] : [{ label: t('newToken'), icon: 'action', run: create }]),
  };
}
