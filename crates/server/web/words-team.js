// The texts of the view of a team, as [Chinese, English].

export const TEAM_WORDS = {
  team: ['团队', 'Team'], presence: ['谁在做什么', 'Who works on what'], person: ['成员', 'Person'], machine: ['位置', 'Where'], sinceWhen: ['时长', 'For'],
  holds: ['认领有效', 'claim in force'], leaseEnded: ['租约已过期，其他会话可以接手', 'lease ended, others can take over'],
  noneWorks: ['现在没有成员认领节点。让智能体在已加入的项目中开始一个节点，或运行：', 'No one holds a node now. Tell an agent in a joined project to start one, or run:'],
  people: ['成员', 'People'], role: ['角色', 'Role'], roleReader: ['只读', 'reader'], roleMember: ['成员', 'member'], roleAdmin: ['管理员', 'admin'], disabled: ['已停用', 'disabled'],
  nodesHeld: ['认领的节点', 'Nodes held'], onlyYou: ['还没有其他成员。添加成员：', 'No other people yet. Add one with'],
  accessTokens: ['令牌', 'Tokens'], newToken: ['新建令牌', 'New token'], tokenFor: ['用途', 'Purpose'], createdAt: ['创建于', 'Created'], expires: ['有效期至', 'Expires'], lastUsed: ['最近使用', 'Last used'],
  never: ['从未', 'never'], noExpiry: ['不过期', 'never'], validFor: ['有效期', 'Valid for'], days30: ['30 天', '30 days'], days90: ['90 天', '90 days'], days365: ['一年', 'one year'], forever: ['直到吊销', 'until revoked'],
  rotate: ['轮换', 'Rotate'], rotateText: ['为“{}”（{}）创建新令牌？旧令牌在过渡期后失效。', 'Create a new token for “{}” of {}? The old one expires after an overlap.'],
  revoke: ['吊销', 'Revoke'], revokeText: ['吊销“{}”（{}）？使用它的机器将立即无法连接，且无法撤销。', 'Revoke “{}” of {}? Machines that use it lose access at once. This cannot be undone.'],
  revoked: ['已吊销', 'revoked'], expired: ['已过期', 'expired'], tokenCreated: ['新令牌', 'New token'], tokenOnce: ['现在复制它，此后不再显示。', 'Copy it now. It is not shown again.'],
  actions: ['操作', 'Actions'], time: ['时间', 'Time'],
  firstOnly: ['只显示前 {} 条', 'Only the first {} are shown'],
  copy: ['复制', 'Copy'], copied: ['已复制', 'Copied'], showInvalid: ['显示已失效的', 'Show invalid'], noTokens: ['没有令牌', 'No tokens'], unnamed: ['未命名', 'unnamed'],
  audit: ['审计', 'Audit'], what: ['事件', 'Event'], anyPerson: ['所有成员', 'All people'], anyEvent: ['所有事件', 'All events'], address: ['地址', 'Address'], detail: ['详情', 'Detail'], noAudit: ['没有符合条件的记录', 'No entries'],
  login: ['登录', 'logged in'], login_failed: ['登录失败', 'failed to log in'], logout: ['退出登录', 'logged out'], project_added: ['添加项目', 'added a project'], person_added: ['添加成员', 'added a person'],
  person_disabled: ['停用成员', 'disabled a person'], person_enabled: ['启用成员', 'enabled a person'], member_set: ['设置角色', 'set a role'], token_created: ['创建令牌', 'created a token'],
  token_revoked: ['吊销令牌', 'revoked a token'], token_rotated: ['轮换令牌', 'rotated a token'], exported: ['导出', 'exported'], imported: ['导入', 'imported'], claim_forced: ['强制接手节点', 'forced a claim'],
};
