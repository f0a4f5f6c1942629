// Every word the page says, in both languages. Keys are what the code asks for; a key that is missing shows itself.

const WORDS = {
  // Navigation and frame
  work: ['工作', 'Work'], sessions: ['会话', 'Sessions'], ledger: ['账本', 'Ledger'], memory: ['记忆', 'Memory'],
  rules: ['规则', 'Rules'], skip: ['跳到内容', 'Skip to the content'],
  live: ['实时', 'live'], offline: ['连接中断，正在重连', 'disconnected, trying again'],
  theme: ['主题', 'Theme'], auto: ['自动', 'auto'], light: ['浅色', 'light'], dark: ['深色', 'dark'],
  language: ['English', '中文'], loading: ['正在加载…', 'Loading…'],
  save: ['保存', 'Save'], cancelEdit: ['取消', 'Cancel'], edit: ['编辑', 'Edit'], delete: ['删除', 'Delete'],
  add: ['添加', 'Add'], more: ['更多', 'More'],
  failed: ['失败', 'Failed'], saved: ['已保存', 'Saved'],
  dropEdit: ['放弃未保存的修改？', 'Drop what you have not saved?'], again: ['重试', 'Try again'],
  goneWorkspace: ['此工作区已不在', 'This workspace is no longer there'],
  readOnly: ['已归档：只读', 'archived: read-only'], lineBreak: ['⏎ 代表换行', '⏎ stands for a line break'],
  closed: ['会话已失效；请再次运行 tanmi serve 打开页面', 'This page is no longer let in; run tanmi serve again to open it'],
  // Workspaces
  workspaces: ['工作区', 'Workspaces'], newWorkspace: ['新建工作区', 'New workspace'], name: ['名称', 'Name'],
  goal: ['目标', 'Goal'], rulesOf: ['规则', 'Rules'], docs: ['文档', 'Docs'], progress: ['进度', 'Progress'],
  project: ['项目', 'Project'], archived: ['已归档', 'archived'], active: ['活跃', 'active'], damaged: ['损坏', 'damaged'],
  noWorkspaces: ['还没有工作区', 'There is no workspace yet'], choose: ['选择一个工作区', 'Choose a workspace'],
  settings: ['目标、规则与文档', 'Goal, rules and docs'], archive: ['归档', 'Archive'], restore: ['恢复', 'Restore'],
  rulesHelp: ['每行一条；绑定的智能体会在下一次提示时得知变化', 'One per line. Bound agents are told of a change at their next prompt'],
  docsHelp: ['每行一个：路径: 说明', 'One per line, as path: description'],
  deleteWorkspace: ['删除工作区「{}」？它会在回收站保留 30 天。', 'Delete the workspace “{}”? It stays in the trash for 30 days.'],
  showArchived: ['显示已归档', 'Show archived'],
  // Tree
  tree: ['任务树', 'Tree of work'], searchNodes: ['搜索节点标题', 'Search titles of nodes'],
  status: ['状态', 'Status'], any: ['全部', 'any'], matches: ['{} 个匹配', '{} found'],
  treeKeys: ['方向键移动，回车打开', 'arrow keys move, Enter opens'],
  pending: ['待开始', 'pending'], planning: ['规划中', 'planning'], monitoring: ['监控中', 'monitoring'],
  implementing: ['实施中', 'implementing'], validating: ['验证中', 'validating'], completed: ['已完成', 'completed'],
  failedStatus: ['已失败', 'failed'], cancelled: ['已取消', 'cancelled'],
  planningType: ['规划', 'planning'], executionType: ['执行', 'execution'],
  // Node
  requirement: ['要求', 'Requirement'], note: ['备注', 'Note'], conclusion: ['结论', 'Conclusion'],
  log: ['日志', 'Log'], problem: ['问题', 'Problem'], nextStep: ['下一步', 'Next step'], references: ['引用', 'References'],
  title: ['标题', 'Title'], type: ['类型', 'Type'], newChild: ['新建子节点', 'New child'], create: ['创建', 'Create'],
  addLog: ['记录进展', 'Record progress'], setProblem: ['记录问题', 'Record a problem'], clearProblem: ['已解决', 'Solved'],
  start: ['开始', 'Start'], submit: ['提交验证', 'Submit'], complete: ['完成', 'Complete'], fail: ['标记失败', 'Fail'],
  retry: ['重试', 'Retry'], reopen: ['重新打开', 'Reopen'], cancel: ['取消节点', 'Cancel'],
  conclusionFor: ['“{}”需要结论', 'A conclusion for “{}”'], deleteNode: ['删除「{}」及其下的一切？', 'Delete “{}” and everything below it?'],
  startedBy: ['由会话 {} 执行', 'session {} is at work on it'], boundHere: ['绑定于此', 'bound here'],
  context: ['智能体在此会看到什么', 'What an agent is told here'], earlier: ['更早的 {} 行未显示', '{} earlier lines are not shown'],
  created: ['创建', 'created'], updated: ['更新', 'updated'], children: ['{} 个子节点，{} 个已结束', '{} children, {} done'],
  isolated: ['隔离（不继承上级上下文）', 'isolated: the ancestors are not told'],
  changedMeanwhile: ['您编辑时，别人修改了它。没有写入任何内容。', 'Somebody changed it while you were editing. Nothing was written.'],
  theirs: ['现在的内容', 'What it is now'], yours: ['您的内容', 'Yours'], takeTheirs: ['放弃我的修改', 'Drop my change'],
  keepMine: ['仍然保存我的', 'Save mine all the same'], gone: ['它已被删除', 'It was deleted'],
  // Sessions
  session: ['会话', 'Session'], platform: ['平台', 'Client'], boundTo: ['工作区', 'Workspace'], focus: ['焦点', 'Focus'],
  heard: ['最近活动', 'Last heard'], prompts: ['提示', 'Prompts'], atWork: ['在线', 'at work'], silent: ['离线', 'silent'],
  unbind: ['解绑', 'Unbind'], noSessions: ['没有绑定的会话', 'No session is bound'],
  // Ledger
  event: ['事件', 'Event'], tokens: ['词元', 'tokens'],
  perDay: ['每天注入的词元', 'Tokens injected per day'],
  durations: ['每天的钩子用时（毫秒）', 'Hook durations per day (ms)'], median: ['中位数', 'median'], p95: ['95%', '95 of 100'],
  day: ['日期', 'Day'], asTable: ['以表格显示', 'As a table'],
  since: ['从', 'Since'], until: ['到', 'Until'], noLedger: ['还没有对任何智能体说过话', 'No agent was told anything yet'],
  textGone: ['原文已不在', 'The text is no longer kept'], total: ['合计', 'Total'],
  // Memory
  searchMemory: ['搜索记忆', 'Search memory'], all: ['包括已忘记的', 'Also what was forgotten'],
  typeW: ['世界', 'World'], typeB: ['项目历史', 'Project history'], typeO: ['偏好', 'Preference'], typeS: ['总结', 'Summary'], typeT: ['对话', 'Conversation'],
  forget: ['忘记', 'Forget'], forgotten: ['已忘记', 'forgotten'], replaced: ['已被替换', 'replaced'], noMemory: ['没有找到记忆', 'Nothing is remembered that fits'],
  newFact: ['记住一个事实', 'Remember a fact'], content: ['内容', 'Content'], confidence: ['置信度', 'Confidence'],
  // Rules
  explain: ['解释', 'Explain'], explainHelp: ['下一次事件会说什么，为什么', 'What would the next event be told, and why?'],
  priority: ['优先级', 'Priority'], source: ['来源', 'Source'], state: ['状态', 'State'], why: ['原因', 'Why'], prompt: ['提示', 'Prompt'],
  nothingSaid: ['什么也不会说', 'Nothing would be said'], rule: ['规则', 'Rule'],
};

let lang = pick();

function pick() {
  const kept = localStorage.getItem('tanmi-lang');
  if (kept === 'zh' || kept === 'en') return kept;
  return (navigator.language || 'en').toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export function language() {
  return lang;
}

export function setLanguage(wanted) {
  lang = wanted;
  localStorage.setItem('tanmi-lang', wanted);
}

/** The words for a key; `{}` stands for what follows. */
export function t(key, ...values) {
  const pair = WORDS[key];
  let text = pair ? pair[lang === 'zh' ? 0 : 1] : key;
  // By a function: a title may have `$&` in it.
  for (const value of values) text = text.replace('{}', () => value);
  return text;
}

export function statusWord(status) {
  return t(status === 'failed' ? 'failedStatus' : status);
}

export function typeWord(type) {
  return t(type === 'execution' ? 'executionType' : 'planningType');
}

const numbers = () => new Intl.NumberFormat(lang === 'zh' ? 'zh-CN' : 'en');

export function number(value) {
  return numbers().format(value);
}

export function when(millis) {
  if (!Number.isFinite(millis) || millis === 0) return '–';
  const format = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };
  return new Intl.DateTimeFormat(lang === 'zh' ? 'zh-CN' : 'en-CA', format).format(new Date(millis));
}
