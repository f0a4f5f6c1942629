// The requests that the page sends and the data that it receives. The files of the page take their types from here.
// `tests/it/serve/page_types.rs` reads this file too: it compares every request with the OpenAPI description, and every
// response of a real server with its type. It understands interfaces, unions, literals, arrays and object types.

/** The operations that the page uses. `params` are parameters of the path and of the query. */
export interface Api {
  'GET /projects': { response: { projects: string[]; joined?: JoinedProject[] } };
  'GET /now': { response: Now };
  'GET /activity': { params: ActivityFilter; response: ActivityPage };
  'GET /workspaces': { params: { all?: boolean; limit?: number }; response: { workspaces: WorkspaceLine[]; total: number } };
  'POST /workspaces': { params: { project?: string }; body: { name: string; goal: string; rules?: string[] }; response: CreatedWorkspace };
  'GET /workspaces/{workspaceId}': { params: InWorkspace; response: WorkspaceDetail };
  'PATCH /workspaces/{workspaceId}': { params: InWorkspace; body: WorkspaceEdit; version: string; response: unknown };
  'DELETE /workspaces/{workspaceId}': { params: InWorkspace; response: unknown };
  'PUT /workspaces/{workspaceId}/masking': { params: InWorkspace; body: { on: boolean }; response: unknown };
  'POST /workspaces/{workspaceId}/archive': { params: InWorkspace; response: unknown };
  'POST /workspaces/{workspaceId}/restore': { params: InWorkspace; body: { nodeId?: string }; response: unknown };
  'GET /workspaces/{workspaceId}/nodes': { params: NodeFilter; response: NodePage };
  'POST /workspaces/{workspaceId}/nodes': { params: InWorkspace; body: NewNode; response: CreatedNode };
  'GET /workspaces/{workspaceId}/nodes/{nodeId}': { params: RenderedNode; response: NodeView };
  'PATCH /workspaces/{workspaceId}/nodes/{nodeId}': { params: OfNode; body: NodeEdit; version: string; response: unknown };
  'DELETE /workspaces/{workspaceId}/nodes/{nodeId}': { params: DeletedNode; response: unknown };
  'POST /workspaces/{workspaceId}/nodes/{nodeId}/move': { params: OfNode; body: NodePlace; response: unknown };
  'POST /workspaces/{workspaceId}/nodes/{nodeId}/transition': { params: OfNode; body: TransitionRequest; response: unknown };
  'POST /workspaces/{workspaceId}/nodes/{nodeId}/log': { params: OfNode; body: { log: string }; response: unknown };
  'PUT /workspaces/{workspaceId}/nodes/{nodeId}/problem': { params: OfNode; body: ProblemEdit; response: unknown };
  'DELETE /workspaces/{workspaceId}/nodes/{nodeId}/problem': { params: OfNode; response: unknown };
  'GET /trash': { params: { workspaceId?: string; limit?: number; project?: string }; response: { entries: TrashEntry[]; total: number; project: string } };
  'GET /bindings': { params: { workspaceId?: string; live?: boolean; limit?: number }; response: { bindings: Binding[]; total: number } };
  'GET /sessions': { params: { live?: boolean; bound?: boolean; limit?: number }; response: { sessions: SessionLine[]; total: number } };
  'PUT /sessions/{sessionId}/binding': { params: { sessionId: string; project?: string }; body: { workspaceId: string; nodeId?: string }; response: unknown };
  'DELETE /sessions/{sessionId}/binding': { params: { sessionId: string }; response: unknown };
  'GET /rules': { response: { rules: RuleLine[]; total: number } };
  'GET /rules/check': { response: { files: CheckedRules[] } };
  'POST /rules/explain': { params: { project?: string }; body: ExplainRequest; response: Explanation };
  'GET /ledger': { params: LedgerQuery; response: Ledger };
  'GET /ledger/days': { params: LedgerFilter; response: { days: LedgerDay[] } };
  'GET /ledger/texts/{digest}': { params: { digest: string }; response: { digest: string; content: string } };
  'GET /memory': { params: MemoryFilter; response: MemoryResults };
  'POST /memory': { params: InProject; body: NewFact; response: unknown };
  'GET /memory/stats': { params: InProject; response: MemoryStats };
  'GET /memory/digests': { params: InProject; response: { digests: SessionDigest[]; project: string } };
  'GET /memory/facts/{id}/history': { params: OfMemory; response: { versions: Memory[] } };
  'PATCH /memory/facts/{id}': { params: OfMemory; body: { content: string }; response: unknown };
  'POST /memory/facts/{id}/forget': { params: OfMemory; response: unknown };
  'POST /memory/facts/{id}/restore': { params: OfMemory; response: unknown };
  'POST /memory/facts/{id}/promote': { params: OfMemory; response: unknown };
}

/** A change in the change feed. */
export type Change = WorkspaceChange | MemoryChange | { kind: 'workspaces' | 'bindings' | 'ledger' | 'rules' };

/** The body of a response with an error status. */
export interface ErrorResponse { error: ErrorBody }
export interface ErrorBody { code: string; message: string; hint?: string; field?: string; details?: unknown }
/** `details` of the error `OUTDATED`: the current state that the edit is not based on. */
export interface OutdatedWorkspace { version: string; current: StoredWorkspace }
export interface OutdatedNode { version: string; current: NodeDetail }

// Requests

export interface InProject { project?: string }
export interface InWorkspace { workspaceId: string }
export interface OfNode { workspaceId: string; nodeId: string }
export interface OfMemory { id: string; project?: string }
export interface RenderedNode { workspaceId: string; nodeId: string; render?: boolean }
export interface DeletedNode { workspaceId: string; nodeId: string; force?: boolean }

export interface NodeFilter {
  workspaceId: string;
  parentId?: string;
  status?: string;
  query?: string;
  texts?: boolean;
  conclusions?: boolean;
  depth?: number;
  limit?: number;
  after?: string;
  ids?: string;
}

export interface LedgerFilter {
  sessionId?: string;
  event?: string;
  platform?: string;
  rule?: string;
  workspaceId?: string;
  nodeId?: string;
  since?: string;
  until?: string;
}

export interface LedgerQuery extends LedgerFilter { limit?: number }

export interface ActivityFilter {
  /** Kinds, separated by commas. */
  kind?: string;
  project?: string;
  workspaceId?: string;
  nodeId?: string;
  sessionId?: string;
  limit?: number;
  before?: string;
}

export interface MemoryFilter {
  query?: string;
  type?: string;
  since?: string;
  until?: string;
  project?: string;
  scope?: 'project' | 'user';
  all?: boolean;
  limit?: number;
  skip?: number;
}

export interface WorkspaceEdit { name?: string; goal?: string; rules?: string[]; docs?: Doc[] }
export interface NodeEdit {
  title?: string;
  requirement?: string;
  note?: string;
  docs?: Doc[];
  dependsOn?: string[];
}
/** Where a node is moved to: exactly one of these. */
export interface NodePlace { parentId?: string; before?: string; after?: string }
export interface NewNode { parentId: string; type: NodeType; title: string; requirement: string }
export interface TransitionRequest { action: Action; conclusion?: string; force?: boolean }
export interface ProblemEdit { description: string; nextStep: string }
export interface NewFact { content: string; type: FactType; confidence?: number }

export interface ExplainRequest {
  sessionId?: string;
  event?: string;
  prompt?: string;
  workspaceId?: string;
  nodeId?: string;
}

// Workspaces

export type WorkspaceStatus = 'active' | 'archived';

export interface Progress { done: number; total: number }

export interface WorkspaceLine {
  workspaceId: string;
  name: string;
  status: WorkspaceStatus | 'damaged';
  progress: Progress;
  activeAt: number;
  project: string;
  damage?: string;
}

export interface WorkspaceDetail {
  workspaceId: string;
  name: string;
  goal: string;
  status: WorkspaceStatus;
  rules: string[];
  rulesHash: string;
  docs: Doc[];
  focusedNodeId: string | null;
  progress: Progress;
  createdAt: number;
  updatedAt: number;
  project: string;
  /** Language of texts for agents; absent if the workspace has no letters. */
  language?: 'zh' | 'en';
  /** `false` if the user turned masking off; otherwise absent. */
  maskSecrets?: boolean;
  version: string;
  problem: Problem | null;
  log: LogEntry[];
  /** `true` if the stamps of the log are UTC, as in a project of a team; otherwise absent. */
  isUtc?: boolean;
}

/** A project that a team server keeps: its folder, its name on the server, and the name of the user there. */
export interface JoinedProject { folder: string; name: string; server: string; person: string }

/** A new workspace, without its empty fields. */
export interface CreatedWorkspace {
  workspaceId: string;
  name: string;
  goal: string;
  status: WorkspaceStatus;
  rules?: string[];
  rulesHash?: string;
  progress: Progress;
  createdAt: number;
  updatedAt: number;
  project: string;
  language?: 'zh' | 'en';
}

export interface StoredWorkspace {
  id: string;
  name: string;
  goal: string;
  status: WorkspaceStatus;
  rules: string[];
  docs: Doc[];
  focusedNodeId: string | null;
  language?: 'zh' | 'en';
  maskSecrets?: boolean;
  createdAt: number;
  updatedAt: number;
  log: LogEntry[];
  lastLogAt: number | null;
  problem: Problem | null;
}

export interface WorkspaceChange {
  kind: 'workspace';
  workspaceId: string;
  project: string;
  change?: number;
  nodes: string[];
  gap?: boolean;
}

export interface Doc { path: string; description: string; status: RefStatus }
export type RefStatus = 'active' | 'expired';
export interface LogEntry { timestamp: string; operator: 'AI' | 'Human'; event: string }
export interface Problem { description: string; nextStep: string | null; updatedAt: number }

// Nodes

export type NodeType = 'planning' | 'execution';
export type NodeStatus =
  'pending' | 'planning' | 'monitoring' | 'implementing' | 'validating' | 'completed' | 'failed' | 'cancelled';
export type NodeRole = 'info_collection' | 'validation' | 'summary';
export type Action = 'start' | 'submit' | 'complete' | 'fail' | 'retry' | 'reopen' | 'cancel';

export interface NodeBrief {
  id: string;
  parentId: string | null;
  title: string;
  type: NodeType;
  status: NodeStatus;
  role?: NodeRole;
  isolated?: boolean;
  hasProblem?: boolean;
  dependsOn?: string[];
  updatedAt: number;
  damage?: string;
}

/** What is below a node. Failed nodes count only in `total`; cancelled nodes do not count. */
export interface BranchCounts { done: number; total: number; running: number; failed: number; problems: number }

export interface NodeRow extends NodeBrief {
  depth: number;
  children: number;
  order: number;
  statusChangedAt: number;
  /** The session that holds the node. */
  holder?: string;
  /** Absent if the node has no children. */
  branch?: BranchCounts;
  /** From the root down; only in a filtered list and with `ids`. */
  ancestors?: { id: string; title: string }[];
  /** Where a search found the words, if not in the title. */
  found?: { field: 'requirement' | 'note' | 'conclusion' | 'problem' | 'nextStep' | 'log'; text: string };
  conclusion?: string;
}
export interface NodePage { workspaceId: string; nodes: NodeRow[]; nextAfter?: string }

export interface NodeDetail {
  id: string;
  title: string;
  type: NodeType;
  status: NodeStatus;
  role: NodeRole | null;
  requirement: string;
  conclusion: string | null;
  note: string;
  parentId: string | null;
  isolated: boolean;
  dependsOn?: string[];
  order: number | null;
  docs: Doc[];
  references: Reference[];
  createdAt: number;
  updatedAt: number;
  statusChangedAt: number | null;
  startedBy: string | null;
  agent?: string;
  log: LogEntry[];
  lastLogAt: number | null;
  problem: Problem | null;
}

export interface Reference { targetId: string; type: 'node' | 'doc'; description: string; status: RefStatus }

export interface NodeView {
  workspaceId: string;
  nodeId: string;
  node: NodeDetail;
  version: string;
  ancestors: NodeBrief[];
  children: Progress;
  dependencies?: NodeBrief[];
  dependents?: NodeBrief[];
  /** Absent if no session holds the node. */
  holder?: NodeHolder;
  writable: boolean;
  actions: AllowedAction[];
  logTotal: number;
  /** `true` if the stamps of the log are UTC, as in a project of a team; otherwise absent. */
  isUtc?: boolean;
  rendered?: RenderedTexts;
}

/** `blocked` says why the action fails now. */
export interface AllowedAction { action: Action; to: NodeStatus; needsConclusion: boolean; blocked?: string }
export interface NodeHolder { sessionId: string; platform?: string; client?: string; startedAt?: number; aliveAt: number; live: boolean; prompts: number; person?: string; machine?: string }

export interface RenderedTexts {
  requirement: Markdown;
  note: Markdown;
  conclusion: Markdown;
  problem: Markdown;
  nextStep: Markdown;
  /** One for each log entry; `null` for an entry that is shown as plain text. */
  log: LogMarkdown[];
  /** Where the rest of a text begins that is too long to be rendered. */
  plainFrom?: { requirement?: number; note?: number; conclusion?: number; problem?: number; nextStep?: number };
}

/** A text, or an element: its tag, its children, and an object with its attributes. */
export type MarkdownPart = string | MarkdownAttributes | MarkdownPart[];
export type Markdown = MarkdownPart[];
export type LogMarkdown = Markdown | null;
export interface MarkdownAttributes { href?: string; title?: string; start?: number }

export interface CreatedNode {
  workspaceId: string;
  nodeId: string;
  title: string;
  type: NodeType;
  status: NodeStatus;
  parentId: string;
  change: number;
  statusChanges?: StatusChange[];
}

export interface StatusChange { nodeId: string; from: NodeStatus; to: NodeStatus }

// Sessions

export interface SessionLine {
  sessionId: string;
  platform?: string;
  client?: string;
  startedAt?: number;
  aliveAt: number;
  live: boolean;
  prompts: number;
  person?: string;
  machine?: string;
  workspaceId?: string;
  focusedNodeId?: string | null;
  project?: string;
  boundAt?: number;
}

export interface Binding {
  sessionId: string;
  platform?: string;
  client?: string;
  startedAt?: number;
  aliveAt: number;
  live: boolean;
  prompts: number;
  workspaceId: string;
  focusedNodeId: string | null;
  project: string;
  boundAt: number;
}

// Rules

export interface RuleLine {
  id: string;
  name: string;
  source: string;
  priority: number;
  events: string[];
  platforms?: string[];
  condition?: string;
  state: 'active' | 'off' | 'untrusted';
  path?: string;
}

export interface CheckedRules { path: string; source: string; trusted: boolean; rules: number; flaws: Flaw[]; notes?: string[] }
export interface Flaw { rule?: string; line: number; message: string; fatal: boolean }

export interface Explanation {
  event: string;
  platform: string;
  sessionId: string;
  workspaceId: string | null;
  nodeId: string | null;
  silenced: boolean;
  rules: ExplainedRule[];
  files: CheckedRules[];
  text: string;
  bytes: number;
  tokens: number;
}

export interface ExplainedRule {
  id: string;
  name: string;
  source: string;
  priority: number;
  matched: boolean;
  verdict: string;
  why: string;
  content?: string;
  bytes: number;
  tokens: number;
}

// Trash

/** A deleted node, or a deleted workspace if there is no `nodeId`. */
export interface TrashEntry { workspaceId: string; nodeId?: string; title: string; count: number; deletedAt: number }

// Ledger

export interface Totals { decisions: number; bytes: number; tokens: number }
export interface NodeTotals extends Totals { workspaceId: string; nodeId: string }

export interface Ledger {
  entries: LedgerEntry[];
  total: Totals;
  days: { [day: string]: Totals };
  sessions: { [session: string]: Totals };
  rules: { [rule: string]: Totals };
  nodes: NodeTotals[];
  unreadable: number;
}

export interface LedgerEntry {
  at: number;
  session: string;
  platform: string;
  source: string;
  event: string;
  workspace?: string;
  node?: string;
  rules: string[];
  bytes: number;
  tokens: number;
  micros: number;
  text: string;
}

export interface LedgerDay {
  day: string;
  decisions: number;
  tokens: number;
  bytes: number;
  hooks: number;
  median: number;
  p95: number;
  slowest: number;
}

// Home

export interface Now {
  at: number;
  today: number;
  paused: boolean;
  projects: ProjectNow[];
  sessions: SessionLine[];
}

export interface ProjectNow { project: string; team?: Present[]; workspaces: WorkspaceNow[] }

/** A session of the team on another machine. */
export interface Present {
  session: string;
  person: string;
  machine: string;
  workspaceId?: string;
  nodeId?: string;
  nodeTitle?: string;
  since?: number;
  leaseUntil?: number;
  isLive: boolean;
}

export interface WorkspaceNow {
  workspaceId: string;
  name: string;
  goal: string;
  progress: Progress;
  activeAt: number;
  problem?: Problem;
  planWaits: boolean;
  running: NodeStates;
  problems: NodeStates;
  failed: NodeStates;
  completed: NodeStates;
}

export interface NodeStates { nodes: NodeState[]; total: number }

export interface NodeState {
  id: string;
  title: string;
  status: NodeStatus;
  since: number;
  holder?: string;
  agent?: string;
  lastLog?: { at: number; operator: 'AI' | 'Human'; text: string };
  problem?: Problem;
  conclusion?: string;
}

export type ActivityKind = 'step' | 'log' | 'problem' | 'cleared' | 'created' | 'rule' | 'fact' | 'session' | 'injection';

export interface ActivityPage { entries: ActivityEntry[]; nextBefore?: string; total?: number }

export interface ActivityEntry {
  id: string;
  at: number;
  kind: ActivityKind;
  project?: string;
  workspaceId?: string;
  nodeId?: string;
  sessionId?: string;
  title?: string;
  text?: string;
  operator?: 'AI' | 'Human';
  status?: NodeStatus;
  nextStep?: string;
  memory?: { id: string; type: FactType | 'S' };
  injection?: Injection;
}

export interface Injection {
  event: string;
  platform: string;
  rules: string[];
  bytes: number;
  tokens: number;
  micros: number;
  digest: string;
}

// Memory

export type FactType = 'W' | 'B' | 'O';

export interface MemoryChange { kind: 'memory'; project: string }
/** `total` is absent for a search, which ranks and does not count. */
export interface MemoryResults {
  results: Memory[];
  total?: number;
  notice?: string;
  /** Whether the server of the team was not reached lately, and when it was. */
  stale?: boolean;
  asOf?: string;
  /** In seconds. */
  age?: number;
}

export interface Memory {
  id: string;
  content: string;
  type: FactType | 'S' | 'T';
  scope: 'project' | 'user';
  score?: number;
  source: string;
  timestamp: string | null;
  session?: string;
  speaker?: string;
  entities?: string[];
  confidence?: number;
  /** The person of the team who saved it, and the machine, if that is another person. */
  author?: { person: string; machine?: string };
  /** Whether it waits for the server of the team. */
  queued?: boolean;
  /** The files that a fact is about, and whether they changed since it was saved. */
  files?: { path: string; state: 'same' | 'changed' | 'gone' }[];
  commit?: string;
  before?: string;
  after?: string;
  hidden?: boolean;
  replacedBy?: string;
  /** The newer fact that replaces it, as inferred from the texts. */
  replaced?: { by: string; on: string };
  /** Only of a summary, and only in a list. */
  parts?: { topic: string; summary: string; decisions: string[]; todos: string[] };
}

export interface MemoryStats {
  folder: string;
  facts: number;
  summaries: number;
  turns: number;
  hidden: number;
  files: number;
  badLines: number;
  indexBytes: number;
}

/** What a session did, derived from its calls. */
export interface SessionDigest {
  sessionId: string;
  platform?: string;
  at: string;
  moved: string[];
  moreMoved: number;
  problems: string[];
  logLines: number;
  lastLog: string;
  facts: number;
}
