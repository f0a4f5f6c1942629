// All texts of the page, as [Chinese, English]. A key without a text is shown as it is.

/** @import { NodeStatus, NodeType } from './api-types.js' */
/** @typedef {keyof typeof WORDS} Word */
/** @typedef {'zh' | 'en'} Language */

import { NOW_WORDS } from './words-now.js';
import { TEAM_WORDS } from './words-team.js';

const WORDS = {
  ...NOW_WORDS,
  ...TEAM_WORDS,
  // Navigation and header
  work: ['工作区', 'Workspaces'], sessions: ['会话', 'Sessions'], ledger: ['账本', 'Ledger'], memory: ['记忆', 'Memory'],
  rules: ['规则', 'Rules'], skip: ['跳到内容', 'Skip to content'],
  live: ['已连接', 'connected'], offline: ['连接已断开，正在重连', 'disconnected, reconnecting'],
  theme: ['主题', 'Theme'], auto: ['自动', 'auto'], light: ['浅色', 'light'], dark: ['深色', 'dark'],
  language: ['English', '中文'], loading: ['正在加载…', 'Loading…'],
  save: ['保存', 'Save'], cancelEdit: ['取消', 'Cancel'], edit: ['编辑', 'Edit'], delete: ['删除', 'Delete'],
  add: ['添加', 'Add'], more: ['显示更多', 'Show more'],
  failed: ['请求失败', 'The request failed'], saved: ['已保存', 'Saved'],
  discardEdit: ['放弃未保存的修改？', 'Discard unsaved changes?'], tryAgain: ['重试', 'Try again'],
  missingWorkspace: ['此工作区已不存在', 'This workspace no longer exists'],
  readOnly: ['已归档：只读', 'archived: read-only'], lineBreak: ['⏎ 表示换行。', '⏎ stands for a line break.'],
  closed: 'team' in document.documentElement.dataset
    ? ['登录已失效；请再次运行 tanmi team login', 'This login has ended; run tanmi team login again']
    : ['页面已失效；请再次运行 tanmi serve', 'This page has expired; run tanmi serve again'],
  logOut: ['退出登录', 'Log out'],
  // Workspaces
  workspaces: ['工作区', 'Workspaces'], newWorkspace: ['新建工作区', 'New workspace'], name: ['名称', 'Name'],
  goal: ['目标', 'Goal'], workspaceRules: ['规则', 'Rules'], docs: ['文档', 'Docs'], progress: ['进度', 'Progress'],
  project: ['项目', 'Project'], archived: ['已归档', 'archived'], active: ['活跃', 'active'], damaged: ['已损坏', 'damaged'],
  noWorkspaces: ['还没有工作区。在这里新建，或运行', 'No workspaces yet. Create one here, or run'], choose: ['选择一个工作区', 'Select a workspace'],
  settings: ['目标、规则与文档', 'Goal, rules and docs'], archive: ['归档', 'Archive'], restore: ['恢复', 'Restore'],
  rulesHelp: ['每行一条规则。已绑定的智能体会在下一次提示时收到修改。', 'One rule per line. Bound agents get changes at their next prompt.'],
  dependsOnHelp: ['每行一个节点 ID。', 'One node ID per line.'],
  docsHelp: ['每行一个文档，格式为“路径: 说明”。', 'One doc per line, as path: description.'],
  deleteWorkspace: ['删除工作区“{}”？它会移到回收站。', 'Delete the workspace “{}”? It is moved to the trash.'],
  showArchived: ['显示已归档', 'Show archived'],
  secretsFound: ['敏感信息', 'Secret found'], maskSecrets: ['遮盖后保存', 'Mask and save'], keepSecrets: ['原样保存', 'Save as it is'],
  turnMaskingOff: ['关闭遮盖', 'Turn masking off'], turnMaskingOn: ['打开遮盖', 'Turn masking on'], maskingIsOff: ['不遮盖敏感信息', 'secrets are not masked'],
  maskingText: ['智能体写入此工作区的密钥、令牌和密码将按原样保存。', 'Keys, tokens and passwords that agents write into this workspace will be stored as they are.'],
  // Tree
  tree: ['任务树', 'Tree'], searchNodes: ['搜索标题和全部文本', 'Search titles and texts'],
  searching: ['正在搜索文本…', 'searching texts…'], unfinished: ['未结束', 'unfinished'], expandAll: ['全部展开', 'Expand all'], collapseAll: ['全部折叠', 'Collapse all'],
  runningBelow: ['{} 个正在进行', '{} running'], agentsBelow: ['{} 个会话', '{} sessions'], failedBelow: ['{} 个已失败', '{} failed'], problemsBelow: ['{} 个问题', '{} problems'],
  noSessionHere: ['无会话', 'no session'], after: ['等待 {}', 'after {}'], moved: ['“{}”已移动', '“{}” was moved'], noSteps: ['没有可用的动作', 'No step is possible'],
  moreKeys: ['按 ? 查看所有快捷键。', 'Press ? for all keys.'],
  status: ['状态', 'Status'], any: ['全部', 'all'], matches: ['{} 个匹配', '{} found'],
  treeKeys: ['用方向键移动，按回车键打开节点，按 Alt 和上下方向键调整顺序。', 'Use the arrow keys to move, Enter to open a node, and Alt with the up or down arrow to reorder it.'],
  pending: ['待开始', 'pending'], planning: ['规划中', 'planning'], monitoring: ['监控中', 'monitoring'],
  implementing: ['实施中', 'implementing'], validating: ['验证中', 'validating'], completed: ['已完成', 'completed'],
  failedStatus: ['已失败', 'failed'], cancelled: ['已取消', 'cancelled'],
  planningType: ['规划节点', 'planning node'], executionType: ['执行节点', 'execution node'],
  // Node
  requirement: ['需求', 'Requirement'], note: ['备注', 'Note'], conclusion: ['结论', 'Conclusion'],
  log: ['日志', 'Log'], problem: ['问题', 'Problem'], nextStep: ['下一步', 'Next step'], references: ['引用', 'References'], dependsOn: ['依赖', 'Depends on'],
  title: ['标题', 'Title'], type: ['类型', 'Type'], newChild: ['新建子节点', 'New child'], create: ['创建', 'Create'],
  addLog: ['添加日志条目', 'Add a log entry'], setProblem: ['记录问题', 'Record problem'], clearProblem: ['清除问题', 'Clear problem'],
  start: ['开始', 'Start'], submit: ['提交验证', 'Submit'], complete: ['完成', 'Complete'], fail: ['标记失败', 'Fail'],
  retry: ['重试', 'Retry'], reopen: ['重新打开', 'Reopen'], cancel: ['取消节点', 'Cancel node'],
  takeOver: ['接管', 'Take over'], takeOverText: ['{}。仍要继续吗？', '{}. Continue anyway?'],
  conclusionFor: ['{}：填写结论', '{}: enter a conclusion'], deleteNode: ['删除“{}”及其所有子节点？', 'Delete “{}” and all its children?'],
  startedBy: ['由会话 {} 认领', 'claimed by session {}'], boundHere: ['有会话聚焦于此', 'a session is focused here'],
  context: ['智能体在这里会收到什么', 'What an agent is told here'], earlier: ['未显示更早的 {} 条日志', '{} earlier entries not shown'],
  heldBy: ['由 {} 认领，{}', 'held by {}, started {}'], heldByPerson: ['由用户认领，{}', 'held by a person, started {}'],
  activeAgo: ['最近活动 {}', 'active {}'], silentSince: ['无响应，最近活动 {}', 'inactive, last seen {}'],
  addDependency: ['添加依赖', 'Add dependency'], removeDependency: ['移除依赖', 'Remove dependency'], dependencyRemoved: ['依赖已移除', 'The dependency was removed'],
  noDependencies: ['不等待其他节点', 'Waits for no other node'], neededBy: ['被以下节点等待', 'Needed by'], problemCleared: ['问题已清除', 'The problem was cleared'],
  missingNode: ['此工作区中没有节点 {}', 'There is no node {} in this workspace'], moreInTree: ['其余子节点见任务树', 'The tree shows the other children'],
  ledgerOfNode: ['账本中的记录', 'ledger entries'], aNode: ['节点', 'node'], byPerson: ['用户', 'person'], byAgent: ['智能体', 'agent'],
  noRules: ['没有规则', 'No rules'], noLog: ['没有日志', 'No log entries'],
  created: ['创建于', 'created'], updated: ['更新于', 'updated'], children: ['{} 个子节点，{} 个已结束', '{} children, {} done'],
  isolated: ['隔离：不接收上级节点的上下文', 'isolated: no context from ancestors'],
  plainRest: ['文本太长，其余部分按纯文本显示：', 'The text is too long; the rest is shown as plain text:'],
  changedMeanwhile: ['编辑期间，内容已被他人修改。你的修改没有保存。', 'The content was changed while you were editing. Your change was not saved.'],
  currentContent: ['当前内容', 'Current content'], yourContent: ['你的内容', 'Your content'], discardMine: ['放弃我的修改', 'Discard my change'],
  overwrite: ['用我的内容覆盖', 'Overwrite with mine'], deletedNode: ['此节点已被删除', 'This node was deleted'],
  movedToTrash: ['“{}”已移到回收站', '“{}” was moved to the trash'], undo: ['撤销', 'Undo'], deletedNodes: ['已删除的节点', 'Deleted nodes'],
  noDeletedNodes: ['没有可以恢复的节点', 'No nodes to restore'], nodeCount: ['{} 个节点', '{} nodes'],
  // Sessions
  session: ['会话', 'Session'], platform: ['客户端', 'Client'], boundTo: ['工作区', 'Workspace'], focus: ['聚焦', 'Focus'],
  lastActivity: ['最近活动', 'Last activity'], prompts: ['提示次数', 'Prompts'], activeSession: ['活跃', 'active'], inactiveSession: ['不活跃', 'inactive'],
  unbind: ['解绑', 'Unbind'], unbound: ['已解绑', 'Unbound'], noSessions: ['没有已绑定的会话', 'No bound sessions'],
  // Ledger
  event: ['事件', 'Event'], tokens: ['token', 'tokens'],
  perDay: ['每天注入的 token', 'Tokens injected per day'],
  durations: ['每天的钩子耗时（毫秒）', 'Hook duration per day (ms)'], median: ['中位数', 'median'], p95: ['第 95 百分位', '95th percentile'],
  day: ['日期', 'Day'], asTable: ['以表格显示', 'Show as table'],
  since: ['从', 'Since'], until: ['到', 'Until'], noLedger: ['没有账本记录', 'No ledger entries'],
  textMissing: ['文本已不再保留', 'The text is no longer stored'], total: ['合计', 'Total'],
  // Memory
  searchMemory: ['搜索记忆', 'Search memory'], all: ['包括已忘记的', 'Include forgotten'],
  typeW: ['世界', 'World'], typeB: ['项目历史', 'Project history'], typeO: ['观点或偏好', 'Opinion or preference'], typeS: ['摘要', 'Summary'], typeT: ['对话轮次', 'Turn'],
  promote: ['用于所有项目', 'Use everywhere'], promoteHelp: ['移到用户记忆，在所有项目中适用', 'Move it to your own memory, which holds in all projects'],
  forget: ['忘记', 'Forget'], forgotten: ['已忘记', 'forgotten'], superseded: ['已被取代', 'superseded'], notDelivered: ['尚未发送', 'not delivered'], noMemory: ['没有找到记忆', 'No memories found'],
  saveOneWith: ['保存事实：', 'Save one with'], bestFirst: ['按相关度', 'Best matches'], forgot: ['已忘记“{}”', 'Forgot “{}”'], history: ['历史', 'History'], noHistory: ['没有更早的版本', 'There are no earlier versions'],
  inForce: ['当前版本', 'in force'], decisions: ['决定', 'Decisions'], todos: ['待办', 'To do'], memoryNumbers: ['事实 {} · 摘要 {} · 对话轮次 {}', 'Facts {} · Summaries {} · Turns {}'],
  digests: ['未写摘要的会话（由其调用得出）', 'Sessions without a summary (derived from their calls)'], digestMoved: ['推进的节点', 'Nodes moved'],
  otherNodes: ['以及另外 {} 个节点', 'and {} more nodes'], digestNumbers: ['{} 条日志，{} 条事实', '{} log entries, {} facts'],
  allProjects: ['所有项目', 'all projects'], fileChanged: ['之后有改动', 'changed since'], fileGone: ['已不存在', 'is gone'], replacedOn: ['已有更新的事实：', 'replaced on'],
  newFact: ['新建事实', 'New fact'], content: ['内容', 'Content'], confidence: ['置信度', 'Confidence'],
  // Palette, keys and undo
  palette: ['转到或执行…', 'Go to or do…'], nothingFound: ['没有找到', 'Nothing found'], view: ['页面', 'view'], workspace: ['工作区', 'workspace'], close: ['关闭', 'Close'],
  nothingToUndo: ['没有可撤销的操作', 'Nothing to undo'], undone: ['已撤销：{}', 'Undone: {}'],
  keys: ['快捷键', 'Keys'], keyPalette: ['转到或执行', 'Go to or do anything'], keySearch: ['搜索', 'Search'], keyUndo: ['撤销上一次删除、忘记或移动', 'Undo the last deletion, forgetting or move'],
  keyHelp: ['显示快捷键', 'Show these keys'], keyMove: ['在任务树或记忆列表中移动', 'Move in the tree or the list of memories'], keyFold: ['展开或折叠', 'Expand or collapse'],
  keyOpen: ['打开节点', 'Open the node'], keyStatus: ['在任务树中改变状态', 'Change the status in the tree'], keyOrder: ['调整顺序', 'Reorder the node'],
  keyLevel: ['移出上级或移入上方的节点', 'Move the node out of its parent or into the node above'], keyEdit: ['编辑节点或事实', 'Edit the node or the fact'],
  keyForget: ['忘记所选的记忆', 'Forget the selected memory'], keyHistory: ['所选事实的历史', 'History of the selected fact'],
  // Time
  justNow: ['刚刚', 'just now'], today: ['今天', 'Today'], yesterday: ['昨天', 'Yesterday'], noDay: ['没有日期', 'No date'],
  // Rules
  explain: ['解释', 'Explain'], explainHelp: ['查看一个事件会注入什么，以及原因', 'See what an event would inject, and why'],
  priority: ['优先级', 'Priority'], source: ['来源', 'Source'], state: ['状态', 'State'], why: ['原因', 'Reason'], prompt: ['提示', 'Prompt'],
  nothingInjected: ['不会注入任何内容', 'Nothing would be injected'], rule: ['规则', 'Rule'],
};

let lang = preferredLanguage();

/** Returns the language chosen on the page, else the setting `language`, else that of the browser. @returns {Language} */
function preferredLanguage() {
  const chosen = localStorage.getItem('tanmi-lang') || document.documentElement.dataset.language;
  if (chosen === 'zh' || chosen === 'en') return chosen;
  return (navigator.language || 'en').toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export function language() {
  return lang;
}

/** @param {Language} next */
export function setLanguage(next) {
  lang = next;
  localStorage.setItem('tanmi-lang', next);
}

/**
 * Returns the text of a key, with each `{}` replaced by one of `values`.
 * @param {Word} key
 * @param {(string | number)[]} values
 */
export function t(key, ...values) {
  const pair = WORDS[key];
  /** @type {string} */
  let text = pair ? pair[lang === 'zh' ? 0 : 1] : key;
  // Replaced by a function, because a title may contain `$&`.
  for (const value of values) text = text.replace('{}', () => String(value));
  return text;
}

/** @param {NodeStatus} status */
export function statusText(status) {
  return t(status === 'failed' ? 'failedStatus' : status);
}

/** @param {NodeType} type */
export function typeText(type) {
  return t(type === 'execution' ? 'executionType' : 'planningType');
}

const numberFormat = () => new Intl.NumberFormat(lang === 'zh' ? 'zh-CN' : 'en');

/** @param {number} value */
export function formatNumber(value) {
  return numberFormat().format(value);
}

/** @param {number} millis */
export function formatTime(millis) {
  if (!Number.isFinite(millis) || millis === 0) return '–';
  /** @type {Intl.DateTimeFormatOptions} */
  const format = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };
  return new Intl.DateTimeFormat(lang === 'zh' ? 'zh-CN' : 'en-CA', format).format(new Date(millis));
}
