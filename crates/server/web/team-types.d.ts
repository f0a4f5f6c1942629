// The requests of the page about the people of a team, and the answers. The page of a machine names the folder of a joined
// project; its server passes them on to that of the team.

/** The operations below `/team`. Tokens, the audit and changes need the role admin. */
export interface TeamApi {
  'GET /team/presence': { params: ListFilter; response: { presence: Presence[]; hasMore: boolean; toldAt?: number } };
  'GET /team/contributions': { params: ContributionFilter; response: Contributions };
  'GET /team/people': { params: ListFilter; response: { people: Person[]; hasMore: boolean } };
  'POST /team/people/{name}/disable': { params: { name: string; project?: string }; response: unknown };
  'GET /team/tokens': { params: ListFilter; response: { tokens: Token[]; hasMore: boolean } };
  'POST /team/tokens': { params: { project?: string }; body: NewToken; response: IssuedToken };
  'DELETE /team/tokens/{id}': { params: { id: string; project?: string }; response: unknown };
  'POST /team/tokens/{id}/rotate': { params: { id: string; project?: string }; response: IssuedToken };
  'GET /team/audit': { params: AuditFilter; response: { entries: AuditEntry[]; hasMore: boolean } };
}

/** `project` is the folder of the joined project, on the page of a machine. */
export interface ListFilter { project?: string; limit?: number }

/** `since` is a day or a time ago such as `7d`, `before` the id of the last entry of the previous page. */
export interface ContributionFilter { project?: string; person?: string; kind?: string; since?: string; until?: string; before?: string; limit?: number }

/** What people did between `since` and `until`. The numbers of `people` are of all entries of that time. */
export interface Contributions {
  since: number;
  until: number;
  people: { name: string; counts: Counts }[];
  entries: Contribution[];
  hasMore: boolean;
}

/** A kind without contributions is absent. */
export interface Counts { started?: number; completed?: number; failed?: number; log?: number; problem?: number; fact?: number }

export interface Contribution {
  id: string;
  at: number;
  person: string;
  machine: string | null;
  kind: 'started' | 'completed' | 'failed' | 'log' | 'problem' | 'fact';
  /** `null` for a fact. */
  workspaceId: string | null;
  /** `null` for a fact and for the workspace itself. */
  nodeId: string | null;
  factId: string | null;
  /** `null` if it was deleted. */
  title: string | null;
}

/** A node that a session or a person holds. `toldAt` of the answer is when the server told it, if it is away. */
export interface Presence {
  person: string | null;
  machine: string | null;
  /** `null` if a person without a session holds the node. */
  session: string | null;
  client?: string | null;
  workspaceId: string;
  workspaceName: string | null;
  nodeId: string;
  nodeTitle: string;
  since: number;
  leaseUntil: number | null;
  isLive: boolean;
}

export type Role = 'reader' | 'member' | 'admin';

/** A person with the role in the project. */
export interface Person { name: string; team: string; roles: { project: string; role: Role }[]; disabledAt: number | null }

/** A token without its secret. */
export interface Token {
  id: string;
  person: string;
  name: string;
  role: Role;
  /** The only project in which it is valid. */
  project: string | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

/** `expires` is a time such as `90d`. */
export interface NewToken { person: string; name?: string; role: Role; expires?: string }

/** A created token. Its text is sent once. */
export interface IssuedToken { id: string; token: string; person: string; role: Role; expiresAt?: number }

/** `before` is the id of the last entry of the previous page. */
export interface AuditFilter { project?: string; person?: string; what?: string; before?: string; limit?: number }

export interface AuditEntry {
  id: string;
  at: number;
  project: string | null;
  person: string | null;
  ip: string | null;
  what: string;
  /** An object. */
  detail: unknown;
}
