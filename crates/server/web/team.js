// The view of a team: who works on what, people, who did what; for admins also tokens and the audit. On the page of a machine
// it is that of a joined project.

/** @import { JoinedProject } from './api-types.js' */
/** @import { AuditEntry, Contribution, IssuedToken, Person, Presence, Role, Token } from './team-types.js' */
/** @import { Child, View } from './page-types.js' */
/** @import { Word } from './words.js' */

import { enc, hasCode, request } from './api.js';
import { coalesce } from './activity.js';
import { contributionsPart } from './contributions.js';
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
  const placePart = h('p', { class: 'meta', hidden: true });
  const awayPart = h('p', { class: 'notice', role: 'status', hidden: true });
  const presencePart = h('section', { class: 'presence' }, h('p', { class: 'empty' }, t('loading')));
  const peoplePart = h('section', { class: 'people', hidden: true });
  const tokensPart = h('section', { class: 'tokens', hidden: true });
  const auditPart = h('section', { class: 'audit', hidden: true });
  const element = h('div', { class: 'view team-view' }, h('h2', {}, t('team')), placePart, awayPart, presencePart, peoplePart);
  const contributions = contributionsPart({ ask: (params) => ask(() => request('GET /team/contributions', { params: { ...params, ...inProject() } })), link: subjectLink, table });
  element.append(contributions.element, tokensPart, auditPart);
  /** The joined projects of this machine; empty on the page of a team. @type {JoinedProject[]} */
  let joined = [];
  /** The folder of the shown project; empty on the page of a team. */
  let folder = '';
  /** Whether the server of the team could not be reached. */
  let isAway = false;
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

  const inProject = () => ({ project: folder || undefined });

  /** Returns the link to a node or a workspace of the team. @param {string} workspace @param {string | null} [node] */
  const workLink = (workspace, node) => `#/work/${enc(workspace)}${node ? `/${enc(node)}` : ''}${folder ? `?project=${enc(folder)}` : ''}`;

  /** @param {Contribution} entry */
  function subjectLink(entry) {
    return entry.workspaceId ? workLink(entry.workspaceId, entry.nodeId || 'workspace') : `#/memory${folder ? `?project=${enc(folder)}` : ''}`;
  }

  /** Asks the server. Returns `undefined` if the role does not suffice or the server of the team is away. @template T @param {() => Promise<T>} work */
  const ask = (work) => attempt(async () => {
    try {
      return await work();
    } catch (error) {
      if (hasCode(error, 'TEAM_UNREACHABLE')) isAway = true;
      else if (!hasCode(error, 'FORBIDDEN')) throw error;
      return undefined;
    }
  });

  async function load() {
    isAway = false;
    const [answer, found, issued] = await Promise.all([
      ask(() => request('GET /team/presence', { params: { limit: LIMIT, ...inProject() } })),
      ask(() => request('GET /team/people', { params: { limit: LIMIT, ...inProject() } })),
      ask(() => request('GET /team/tokens', { params: { limit: LIMIT, ...inProject() } })),
      contributions.load('refresh'),
    ]);
    if (answer) {
      isCut = { ...isCut, presence: answer.hasMore };
      rerender(presencePart, () => renderPresence(answer.presence, answer.toldAt));
    }
    if (issued) {
      tokens = issued.tokens;
      isCut = { ...isCut, tokens: issued.hasMore };
      rerender(tokensPart, renderTokens);
    }
    if (found) {
      people = found.people;
      isCut = { ...isCut, people: found.hasMore };
      rerender(peoplePart, () => renderPeople(answer?.presence || []));
    }
    if (issued) await loadAudit('refresh');
    awayPart.hidden = !isAway;
    awayPart.textContent = isAway ? t('serverAway') : '';
  }

  /** Finds the joined project to show. The page of a team has only its own. @param {string} wanted */
  async function choosePlace(wanted) {
    if ('team' in document.documentElement.dataset) return;
    const answer = await attempt(() => request('GET /projects', {}));
    joined = answer?.joined || [];
    const chosen = joined.find((place) => place.folder === wanted) || joined[0];
    folder = chosen?.folder || '';
    placePart.hidden = !chosen;
    const open = (/** @type {Event & { target: HTMLInputElement }} */ event) => { location.hash = `#/team?project=${enc(event.target.value)}`; };
    if (chosen) {
      setChildren(placePart, joined.length > 1
        ? h('select', { name: 'joined', 'aria-label': t('project'), onchange: open }, joined.map((place) => h('option', { value: place.folder, selected: place === chosen }, `${place.name} · ${place.folder}`)))
        : h('bdi', {}, chosen.name), ` · ${chosen.server} · ${t('youAre', chosen.person)}`);
    }
  }

  /** `toldAt` is when the server told it, if it is away now. @param {Presence[]} held @param {number} [toldAt] */
  function renderPresence(held, toldAt) {
    const row = (/** @type {Presence} */ line) => ({
      key: `held ${line.workspaceId} ${line.nodeId}`,
      cells: [
        [h('span', { class: `dot ${line.isLive ? 'on' : ''}` }), h('bdi', {}, line.person || '–'), h('span', { class: 'sr-only' }, t(line.isLive ? 'holds' : 'leaseEnded'))],
        h('a', { href: workLink(line.workspaceId, line.nodeId) }, h('bdi', {}, line.nodeTitle)),
        h('a', { href: workLink(line.workspaceId) }, h('bdi', {}, line.workspaceName || line.workspaceId)),
        h('bdi', { title: line.session }, [line.machine, line.client].filter(Boolean).join(' · ') || '–'),
        h('span', { title: formatTime(line.since) }, duration(line.since), line.isLive ? null : h('span', { class: 'badge' }, t('leaseEnded'))),
      ],
    });
    const asOf = toldAt === undefined ? null : h('span', { class: 'meta' }, toldAt ? t('asOf', formatTime(toldAt)) : t('notTold'));
    setChildren(presencePart, head('presence', held.length, asOf), held.length
      ? table(['person', 'node', 'boundTo', 'machine', 'sinceWhen'], held.map(row))
      : h('p', { class: 'hint' }, t('noneWorks'), ' ', h('code', {}, 'tanmi start')), cutNote(isCut.presence));
  }

  /** @param {Presence[]} held */
  function renderPeople(held) {
    const isAdmin = !tokensPart.hidden;
    // The page of a team does not know who reads it.
    const self = joined.find((place) => place.folder === folder)?.person;
    const row = (/** @type {Person} */ person) => ({
      key: `person ${person.name}`,
      cells: [h('bdi', {}, person.name), [person.roles.map(({ role }) => roleText(role)).join(', ') || '–', person.disabledAt ? h('span', { class: 'badge' }, t('disabled')) : null],
        formatNumber(held.filter((line) => line.person === person.name).length),
        ...(isAdmin ? [person.disabledAt || person.name === self ? null : h('button', { class: 'small danger', 'data-action': `disable ${person.name}`, onclick: () => disable(person) }, t('disable'))] : [])],
    });
    peoplePart.hidden = false;
    /** @type {Word[]} */
    const columns = ['person', 'role', 'nodesHeld', ...(isAdmin ? [/** @type {Word} */ ('actions')] : [])];
    setChildren(peoplePart, head('people', people.length), table(columns, people.map(row)), cutNote(isCut.people),
      people.length > 1 || !isAdmin ? null : h('p', { class: 'hint' }, t('onlyYou'), ' ', h('code', {}, 'tanmi team person add NAME')));
  }

  /** @param {Person} person */
  const disable = (person) => openDialog({
    title: t('disable'), text: t('disableText', person.name, person.name), confirmLabel: t('disable'), danger: true,
    onSubmit: async () => {
      await request('POST /team/people/{name}/disable', { params: { name: person.name, ...inProject() } });
      await load();
    },
  });

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
          reason ? null : h('span', { class: 'buttons' },
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
        showSecret(await request('POST /team/tokens', { params: inProject(), body }));
      },
    });
  }

  /** @param {Token} token @param {string} name */
  const rotate = (token, name) => openDialog({
    title: t('rotate'), text: t('rotateText', name, token.person), confirmLabel: t('rotate'),
    onSubmit: async () => showSecret(await request('POST /team/tokens/{id}/rotate', { params: { id: token.id, ...inProject() } })),
  });

  /** @param {Token} token @param {string} name */
  const revoke = (token, name) => openDialog({
    title: t('revoke'), text: t('revokeText', name, token.person), confirmLabel: t('revoke'), danger: true,
    onSubmit: async () => {
      await request('DELETE /team/tokens/{id}', { params: { id: token.id, ...inProject() } });
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
    const page = await ask(() => request('GET /team/audit', { params: { ...filter, before, limit, ...inProject() } }));
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
      cells: [h('time', { datetime: new Date(line.at).toISOString() }, formatTime(line.at)), line.person ? h('bdi', {}, line.person) : t(line.what === 'login_failed' ? 'unknownPerson' : 'atDatabase'), eventText(line.what), detailText(line), line.ip || '–'],
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
  const detailText = ({ detail }) => h('bdi', { class: 'meta' }, Object.entries(/** @type {Record<string, unknown>} */ (detail || {}))
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(' · ') || '–');

  const reload = coalesce(load, 300);
  // A lease ends and a duration grows while nothing changes.
  const timer = setInterval(() => { if (element.isConnected) reload(); else clearInterval(timer); }, 30000);
  return {
    element,
    async route(_first, _second, project) { await choosePlace(project); await load(); },
    onChange(change) { if (change.kind === 'workspace' || change.kind === 'bindings') reload(); },
    onGap: reload,
    focusSearch: () => /** @type {HTMLElement | null} */ (auditPart.querySelector('select'))?.focus(),
    actions: () => (tokensPart.hidden ? [] : [{ label: t('newToken'), icon: 'action', run: create }]),
  };
}
