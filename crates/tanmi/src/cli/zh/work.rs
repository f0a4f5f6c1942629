//! Workspaces, nodes, logs, sessions and memory.

use super::{
    ArgumentText, BELOW, ChineseTexts, MASK_SECRETS, NODE_ID, NODE_OPTION, SESSION, STATUS, WORKSPACE,
    WORKSPACE_ID, WORKSPACE_OPTION, page,
};

const MAX_NODES: ArgumentText = ("limit", "最多显示多少个节点；0 表示全部");
const MAX_MEMORIES: ArgumentText = ("limit", "最多显示多少条记忆；0 表示全部");
const OF_SCOPE: ArgumentText = ("scope", "只看该范围的记忆：project 或 user");
const MEMORY_TYPE: ArgumentText = ("memory_type", "只看该类型：W、B、O（事实），S（摘要），T（对话轮次）");
const SINCE: ArgumentText = ("since", "从这一天起：YYYY-MM-DD，或几天前，如 7d");
const UNTIL: ArgumentText = ("until", "到这一天（含）：YYYY-MM-DD，或几天前，如 7d");
const OF_SESSION: ArgumentText = ("session", "只看该会话的记忆");
const ALL_MEMORIES: ArgumentText = ("all", "包括已忘记和已被取代的记忆");

const STEP_NODE: ArgumentText = ("id", "节点：ID、ID 的最后四个或更多字符，或标题");
const END_NODE: ArgumentText = ("id", "节点：ID、ID 的最后四个或更多字符，或标题 [默认：聚焦节点]");
const STEP_SESSION: ArgumentText = ("session", "执行动作的会话 [默认：在智能体的 shell 中自动识别]");
const STEP_FORCE: ArgumentText = ("force", "即使节点由另一个运行中的会话持有，也执行动作");
const START_FORCE: ArgumentText = ("force", "即使节点由另一个运行中的会话持有，或依赖尚未完成，也开始它");
const STEP_CONCLUSION: ArgumentText = ("conclusion", "结论（`-` 表示从标准输入读取）[默认：在终端中询问]");

pub const PAGES: &[ChineseTexts] = &[
    page("status", "显示会话在做什么、未解决的问题和接下来的工作", &[WORKSPACE_ID, WORKSPACE_OPTION], ""),
    page("start", "开始一个节点", &[WORKSPACE, STEP_NODE, STEP_SESSION, START_FORCE], ""),
    page(
        "done",
        "完成一个节点",
        &[WORKSPACE, END_NODE, NODE_OPTION, STEP_SESSION, STEP_FORCE, STEP_CONCLUSION, MASK_SECRETS],
        "\
示例：
  tanmi done '签发令牌' --conclusion '测试全部通过'
  tanmi done u02rz9",
    ),
    page(
        "fail",
        "把节点标记为失败",
        &[WORKSPACE, END_NODE, NODE_OPTION, STEP_SESSION, STEP_FORCE, STEP_CONCLUSION, MASK_SECRETS],
        "",
    ),
    page("workspace", "创建、列出、修改、归档和检查工作区", &[], ""),
    page(
        "workspace init",
        "在本项目中创建工作区",
        &[
            ("name", "工作区名称"),
            ("goal", "工作区目标（`-` 表示从标准输入读取）"),
            ("rules", "工作区中所有智能体和人都要遵守的规则；可重复"),
            ("docs", "工作区文档，格式为 `路径: 说明`；可重复"),
            MASK_SECRETS,
        ],
        "\
示例：
  tanmi workspace init --name 登录 --goal '用 JWT 实现登录'
  tanmi workspace init --name 登录 --goal '用 JWT 实现登录' \\
    --rule '先写测试' --doc 'docs/auth.md: 登录的设计'",
    ),
    page(
        "workspace list",
        "列出工作区，最近活跃的在前",
        &[
            ("all", "列出所有已知项目的工作区"),
            ("status", "只列出处于该状态的工作区：active 或 archived"),
            ("limit", "最多显示多少个工作区；0 表示全部"),
            ("scan", "把该目录下的项目加入已知项目，并列出所有已知项目的工作区"),
        ],
        "",
    ),
    page("workspace show", "显示一个工作区", &[WORKSPACE_ID, WORKSPACE_OPTION], ""),
    page(
        "workspace update",
        "修改工作区的名称、目标、规则、文档或语言",
        &[
            WORKSPACE_ID,
            WORKSPACE_OPTION,
            ("name", "新名称"),
            ("goal", "新目标（`-` 表示从标准输入读取）"),
            ("rules", "替换全部规则；每条新规则重复一次此选项"),
            ("add_rules", "添加一条规则；可重复"),
            ("remove_rules", "删除与此文字相同的规则；可重复"),
            ("no_rules", "删除全部规则"),
            (
                "docs",
                "添加文档，格式为 `路径: 说明`，或修改路径相同的文档；加前缀 `[expired]` 标记为过期；可重复",
            ),
            ("remove_docs", "删除该路径的文档；可重复"),
            ("language", "智能体所读文本的语言"),
            ("secret_masking", "是否遮盖智能体所写文字中的敏感信息，并在人写入时警告；只有用户可以修改"),
            MASK_SECRETS,
        ],
        "",
    ),
    page("workspace archive", "归档工作区，使其只读", &[WORKSPACE_ID, WORKSPACE_OPTION], ""),
    page("workspace restore", "从归档或回收站恢复工作区", &[("id", "工作区 ID")], ""),
    page(
        "workspace delete",
        "把工作区移到回收站，保留 30 天",
        &[("id", "工作区 ID"), ("yes", "不询问就删除有节点的工作区")],
        "",
    ),
    page(
        "workspace focus",
        "显示、设置或清除在智能体会话之外使用的聚焦节点",
        &[WORKSPACE, ("node", "要聚焦的节点 [默认：显示聚焦节点]"), ("clear", "清除聚焦")],
        "",
    ),
    page(
        "workspace check",
        "检查工作区的文件是否损坏；仍有损坏时以状态码 1 退出",
        &[WORKSPACE_ID, WORKSPACE_OPTION, ("fix", "修复只有唯一修法的损坏")],
        "",
    ),
    page("node", "创建、修改、移动和完成工作区的节点", &[], ""),
    page(
        "node create",
        "创建节点",
        &[
            WORKSPACE,
            ("parent", "父节点"),
            ("kind", "planning（规划节点，用来组织子节点）或 execution（执行节点，一项具体任务）"),
            ("title", "节点标题"),
            ("requirement", "需求：要做什么（`-` 表示从标准输入读取）"),
            (
                "role",
                "节点角色：info_collection（其结论会把规则和文档加入工作区）、validation 或 summary（供自定义规则读取的标签）",
            ),
            ("note", "备注"),
            ("docs", "节点文档，格式为 `路径: 说明`；可重复"),
            ("isolated", "隔离节点：不接收祖先的上下文"),
            ("rules_hash", "如果工作区规则已改变则失败：`tanmi workspace show` 在“规则”后显示的哈希"),
            MASK_SECRETS,
        ],
        "\
示例：
  tanmi node create --type planning --title '令牌服务'
  tanmi node create --parent <NODE> --type execution --title '签发令牌' \\
    --requirement '用 RS256 签发令牌'",
    ),
    page(
        "plan",
        "用 Markdown 大纲创建节点，或把节点写成大纲",
        &[
            WORKSPACE,
            ("file", "要读取的大纲（`-` 表示从标准输入读取）；未给出 --export 时必需"),
            ("parent", "在该节点之下创建"),
            ("rules_hash", "如果工作区规则已改变则失败：`tanmi workspace show` 在“规则”后显示的哈希"),
            ("export", "把该节点及其后代写成大纲 [默认：全部节点]"),
            MASK_SECRETS,
        ],
        "\
大纲：
  - 设计：确定格式
  - 实现（after：设计）
    - **解析**：读取格式
    - **写入**（after：解析）：写出格式
  - [x] 建立项目

缩进表示子节点，`（after：标题）` 表示依赖，`[x]` 表示已完成。项下面缩进的行属于它的需求。\
也可以读取 spec-kit 的 tasks.md。

示例：
  tanmi plan plan.md
  tanmi plan tasks.md --parent <NODE>
  tanmi plan --export
  tanmi plan --export <NODE>",
    ),
    page(
        "next",
        "显示或开始依赖都已完成的节点",
        &[
            WORKSPACE,
            ("start", "认领并开始第一个节点；没有可以开始的节点时，退出状态为 1"),
            MAX_NODES,
            ("session", "开始节点的会话 [默认：在智能体的 shell 中自动识别]"),
        ],
        "\
示例：
  tanmi next
  tanmi next --limit 1 --json
  tanmi next --start",
    ),
    page(
        "node depend",
        "添加或移除依赖：节点开始之前必须完成的节点",
        &[
            WORKSPACE,
            NODE_ID,
            NODE_OPTION,
            ("on", "必须先完成的节点；可重复，也可用逗号分隔"),
            ("remove", "移除这些依赖，而不是添加"),
        ],
        "\
示例：
  tanmi node depend <NODE> --on <NODE>
  tanmi node depend <NODE> --on <NODE> --remove",
    ),
    page("node show", "显示一个节点", &[WORKSPACE, NODE_ID, NODE_OPTION], ""),
    page(
        "node list",
        "按树的顺序列出节点",
        &[
            WORKSPACE,
            BELOW,
            STATUS,
            ("query", "只显示标题含有全部这些词的节点"),
            ("depth", "父节点以下的层数 [默认：全部]"),
            MAX_NODES,
            ("after", "从该节点之后继续；上一页会给出它（JSON 中的 `nextAfter`）"),
        ],
        "",
    ),
    page(
        "node update",
        "修改节点的标题、需求、备注、角色、文档或隔离设置",
        &[
            WORKSPACE,
            NODE_ID,
            NODE_OPTION,
            ("title", "新标题"),
            ("requirement", "新需求（`-` 表示从标准输入读取）"),
            ("note", "新备注（`-` 表示从标准输入读取）"),
            ("role", "新角色：info_collection、validation、summary；none 表示去掉角色"),
            ("isolated", "是否与祖先的上下文隔离"),
            ("docs", "添加文档，或修改路径相同的文档：`路径: 说明`；可重复"),
            ("remove_docs", "删除该路径的文档；可重复"),
            MASK_SECRETS,
        ],
        "",
    ),
    page(
        "node move",
        "把节点及其后代移到另一个父节点下或另一个位置",
        &[
            WORKSPACE,
            NODE_ID,
            NODE_OPTION,
            ("parent", "新的父节点；未给出 --before 或 --after 时必需"),
            ("before", "排在该节点之前"),
            ("after", "排在该节点之后"),
        ],
        "\
示例：
  tanmi node move <NODE> --parent <NODE>
  tanmi node move '签发令牌' --before '验证令牌'",
    ),
    page("node restore", "从回收站恢复节点及其后代", &[WORKSPACE, NODE_ID, NODE_OPTION], ""),
    page(
        "node delete",
        "把节点及其后代移到回收站",
        &[
            WORKSPACE,
            NODE_ID,
            NODE_OPTION,
            ("yes", "不询问就删除有子节点的节点"),
            ("force", "即使另一个运行中的会话持有该节点或其后代，也删除"),
        ],
        "",
    ),
    page(
        "node transition",
        "通过动作改变节点的状态",
        &[
            WORKSPACE,
            NODE_ID,
            NODE_OPTION,
            ("action", "动作：start、submit、complete、fail、retry、reopen 或 cancel"),
            ("conclusion", "结论；complete、fail 和 cancel 必需（`-` 表示从标准输入读取）"),
            STEP_SESSION,
            ("agent", "执行该节点的子智能体的类型，如 Explore"),
            ("force", "即使节点由另一个运行中的会话持有，或 start 的依赖尚未完成，也执行动作"),
            MASK_SECRETS,
        ],
        "\
规划节点的动作：
  start、complete、cancel、reopen

执行节点的动作：
  start、submit、complete、fail、retry、reopen

示例：
  tanmi node transition <NODE> --action start
  tanmi node transition <NODE> --action complete --conclusion '测试全部通过'",
    ),
    page(
        "node reference",
        "添加、删除对节点或文档的引用，或标记为过期、有效",
        &[
            WORKSPACE,
            NODE_ID,
            NODE_OPTION,
            ("target", "引用指向的节点 ID 或文档路径"),
            ("description", "新引用的说明"),
            ("remove", "删除引用"),
            ("expire", "把引用标记为过期"),
            ("activate", "把过期的引用重新标记为有效"),
            MASK_SECRETS,
        ],
        "",
    ),
    page(
        "node context",
        "显示聚焦此节点的会话开始时收到的文本",
        &[
            WORKSPACE,
            ("id", "节点 ID [默认：聚焦节点]"),
            NODE_OPTION,
            ("session", "显示该会话收到的文本（见 `tanmi session list`）"),
        ],
        "",
    ),
    page(
        "tree",
        "以树的形式显示工作区的节点",
        &[
            WORKSPACE_ID,
            WORKSPACE_OPTION,
            BELOW,
            STATUS,
            ("depth", "父节点以下的层数 [默认：全部]"),
            ("limit", "最多显示多少个节点；0 表示全部"),
        ],
        "",
    ),
    page(
        "log",
        "添加日志条目，或显示日志",
        &[
            WORKSPACE,
            ("node", "节点 ID；`workspace` 表示工作区自己的日志 [默认：聚焦节点]"),
            ("text", "要添加的日志条目（`-` 表示从标准输入读取）[默认：显示日志]"),
            ("limit", "最多显示多少条日志；0 表示全部"),
            MASK_SECRETS,
        ],
        "\
示例：
  tanmi log '找到原因：时钟用的是 UTC'
  tanmi log --node workspace '计划已确认'
  tanmi log --limit 10",
    ),
    page(
        "problem",
        "记录、显示或清除节点或工作区的问题",
        &[
            WORKSPACE,
            ("node", "节点 ID；`workspace` 表示工作区自己的问题 [默认：聚焦节点]"),
            ("text", "问题描述（`-` 表示从标准输入读取）[默认：显示问题]"),
            ("next_step", "解决问题的下一步"),
            ("clear", "清除问题"),
            MASK_SECRETS,
        ],
        "\
示例：
  tanmi problem '测试服务器无法访问' --next-step '请管理员重启'
  tanmi problem --clear",
    ),
    page("trash", "显示已删除的工作区和节点", &[], ""),
    page(
        "trash list",
        "列出可以恢复的工作区和节点，最近删除的在前",
        &[("workspace", "只列出该工作区及其节点"), ("limit", "最多显示多少项；0 表示全部")],
        "",
    ),
    page("session", "列出会话，把会话绑定到工作区", &[], ""),
    page(
        "session bind",
        "把会话绑定到工作区，之后由钩子注入该工作区的上下文",
        &[SESSION, ("workspace", "工作区 ID [默认：项目中唯一活跃的工作区]"), ("node", "要聚焦的节点")],
        "\
示例：
  tanmi session bind --workspace <WS>
  tanmi session bind --session <ID> --workspace <WS> --node <NODE>",
    ),
    page("session unbind", "解除会话的绑定", &[SESSION], ""),
    page(
        "session list",
        "列出会话，最近活跃的在前",
        &[
            ("workspace", "只列出绑定到该工作区的会话"),
            ("live", "只列出智能体正在运行的会话"),
            ("bound", "只列出已绑定工作区的会话"),
            ("limit", "最多显示多少个会话；0 表示全部"),
        ],
        "",
    ),
    page("session status", "显示会话的绑定，或可以绑定的工作区", &[SESSION], ""),
    page("memory", "保存和搜索事实、摘要和过去的对话", &[], ""),
    page(
        "memory save-fact",
        "保存一条事实",
        &[
            ("text", "事实的文字 [默认：从标准输入读取，同 `-`]"),
            ("file", "从该文件读取文字"),
            ("memory_type", "事实类型：W、B 或 O"),
            ("entities", "事实涉及的实体，用逗号分隔"),
            ("confidence", "置信度，0 到 1 [O 类默认：0.8]"),
            SESSION,
            ("supersedes", "被这条事实取代的事实 ID；可重复"),
            ("paths", "事实涉及的项目文件；可重复"),
            ("scope", "事实适用的范围：project（本项目），或 user（所有项目）"),
        ],
        "\
类型：
  W  客观事实，例如代码如何工作
  B  项目历史：发生过的事或做出的决定
  O  观点或偏好；--confidence 默认为 0.8

示例：
  tanmi memory save-fact 'API 监听 8080 端口' --entities api,端口
  tanmi memory save-fact '偏好小的提交' --type O --confidence 0.9",
    ),
    page(
        "memory save-summary",
        "保存会话摘要",
        &[
            ("topic", "会话主题，几个词即可"),
            ("summary", "会话做了什么（`-` 表示从标准输入读取）"),
            ("decisions", "做出的决定；可重复"),
            ("todos", "尚未完成的工作；可重复"),
            SESSION,
        ],
        "",
    ),
    page(
        "memory search",
        "按词搜索记忆，支持中文和英文",
        &[
            ("query", "要搜索的词；以短横线开头的词前要加 `--`"),
            MEMORY_TYPE,
            SINCE,
            UNTIL,
            OF_SESSION,
            OF_SCOPE,
            ALL_MEMORIES,
            MAX_MEMORIES,
        ],
        "\
示例：
  tanmi memory search 端口
  tanmi memory search 令牌 过期 --type W --since 7d",
    ),
    page(
        "memory list",
        "列出记忆，最新的在前",
        &[
            MEMORY_TYPE,
            SINCE,
            UNTIL,
            OF_SESSION,
            OF_SCOPE,
            ALL_MEMORIES,
            MAX_MEMORIES,
            ("skip", "跳过多少条记忆"),
        ],
        "",
    ),
    page(
        "memory stale",
        "列出保存之后所涉文件有改动或已不存在的事实",
        &[("limit", "最多显示的事实数；0 表示全部")],
        "",
    ),
    page("memory show", "显示一条记忆", &[("id", "记忆 ID")], ""),
    page(
        "memory edit",
        "修改一条事实",
        &[("id", "事实 ID"), ("text", "新的文字（`-` 表示从标准输入读取）")],
        "",
    ),
    page("memory forget", "忘记记忆：隐藏起来，可用 `restore` 恢复", &[("ids", "一个或多个记忆 ID")], ""),
    page(
        "memory promote",
        "把本项目的事实移到用户记忆，在所有项目中适用",
        &[("ids", "一个或多个事实 ID")],
        "",
    ),
    page("memory restore", "恢复已忘记的记忆", &[("ids", "一个或多个记忆 ID")], ""),
    page(
        "memory import",
        "从文件导入记忆，每行一个 JSON 对象",
        &[("file", "要导入的文件（`-` 表示从标准输入读取）")],
        "\
每行的字段：
  content     记忆的文字；必需
  type        事实用 W、B 或 O [默认：W]，对话轮次用 turn
  timestamp   日期或时间，如 2026-01-31 或 2026-01-31T09:00:00Z
  entities    字符串列表
  confidence  置信度，0 到 1
  session     会话 ID
  speaker     对话轮次的说话者
  id          唯一 ID；已经保存过的 ID 会被跳过

示例：
  tanmi memory import notes.jsonl",
    ),
    page("memory export", "导出记忆，每行一个 JSON 对象，可用 `import` 导入", &[ALL_MEMORIES], ""),
    page(
        "memory ingest",
        "让过去的对话可以被搜索",
        &[("paths", "会话记录的文件或目录 [默认：Claude Code 在本项目中的会话记录]")],
        "",
    ),
    page("memory model", "管理本地嵌入模型，用于按语义搜索", &[], ""),
    page(
        "memory model add",
        "添加 model2vec 格式的静态嵌入模型",
        &[("dir", "含有 tokenizer.json、model.safetensors 和 config.json 的目录")],
        "",
    ),
    page("memory model remove", "移除模型，只按词搜索", &[], ""),
    page("memory model show", "显示正在使用的模型", &[], ""),
    page("memory lexicon", "管理词典，用于中英文互搜", &[], ""),
    page(
        "memory lexicon add",
        "添加汉英词典；同名文件的词典会被替换",
        &[("file", "CC-CEDICT 或 ECDICT（CSV）格式的文件")],
        "\
示例：
  tanmi memory lexicon add cedict_ts.u8
  tanmi memory lexicon add ecdict.csv",
    ),
    page("memory lexicon list", "列出词典", &[], ""),
    page("memory lexicon remove", "移除词典", &[("name", "`list` 显示的词典文件名")], ""),
    page("memory sync", "立即更新搜索索引（搜索时也会自动更新）", &[], ""),
    page("memory stats", "按类型统计记忆", &[], ""),
];
