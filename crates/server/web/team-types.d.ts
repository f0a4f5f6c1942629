// The requests of the page to the server of a team, and its answers. Only the page of a team sends them.

/** The operations below `/team`. All but the presence need the role admin. */
export interface TeamApi {
  'GET /team/presence': { params: { limit?: number }; response: { presence: Presence[]; hasMore: boolean } };
  'GET /team/people': { params: { limit?: number }; response: { people: Person[]; hasMore: boolean } };
  'GET /team/tokens': { params: { limit?: number }; response: { tokens: Token[]; hasMore: boolean } };
  'POST /team/tokens': { body: NewToken; response: IssuedToken };
  'DELETE /team/tokens/{id}': { params: { id: string }; response: unknown };
  'POST /team/tokens/{id}/rotate': { params: { id: string }; response: IssuedToken };
  'GET /team/audit': { params: AuditFilter; response: { entries: AuditEntry[]; hasMore: boolean } };
}

/** A node that a session or a person holds. */
export interface Presence {
  person: string | null;
  machine: string | null;
  /** `null` if a person without a session holds the node. */
  session: string | null;
  client?: string | null;
  workspaceId: string;
  workspaceName: string;
  nodeId: string;
  nodeTitle: string;
  since: number;
  leaseUntil: number | null;
  isLive: boolean;
}

export type Role = 'reader' | 'member' | 'admin';

/** A person with the role in the project. */
export interface Person { name: string; roles: { project: string; role: Role }[]; disabledAt: number | null }

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
export interface AuditFilter { person?: string; what?: string; before?: string; limit?: number }

export interface AuditEntry {
  id: string;
  at: number;
  project: string | null;
  person: string | null;
  ip: string | null;
  what: string;
  detail: { [name: string]: unknown } | null;
}
