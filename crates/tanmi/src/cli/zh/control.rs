//! Declared context, rules, trust, the ledger and pauses.

use super::{ChineseTexts, YES, page};

pub const PAGES: &[ChineseTexts] = &[
    page("context", "显示、构建和分发声明的上下文", &[], ""),
    page(
        "context show",
        "显示会话开始时收到的内容的来源和大小；--text 同时输出文本",
        &[
            ("platform", "会话的平台：claude-code、cursor、codex、gemini-cli 或 copilot-cli"),
            ("agent", "子智能体的类型，如 Explore [默认：会话的主智能体]"),
            ("session", "显示该会话的上下文（见 `tanmi session list`）"),
            ("user", "使用该用户的目录，而不是项目"),
            ("root", "存放用户目录（如 `user_42/data`）的目录"),
            ("container", "用户目录在容器中的路径"),
            ("text", "同时输出会话收到的文本"),
        ],
        "",
    ),
    page(
        "context build",
        "用项目的智能体、技能和命令生成 .claude/CLAUDE.md（或 .tanmi/context.json 中 `output` 指定的文件）",
        &[("check", "不写入；文件过期时以状态码 1 退出")],
        "",
    ),
    page(
        "context provision",
        "创建和更新由宿主程序挂载到容器中的用户目录",
        &[
            ("root", "存放用户目录（如 `user_42/data`）的目录"),
            ("users", "要处理的用户；可重复；未给出 --all 时必需"),
            ("all", "处理所有已有目录的用户"),
            ("extensions", "要同步到每个 `.claude` 目录的智能体、命令和技能所在的目录"),
            ("manifest", "要复制给每个用户的 `context.json`"),
            ("tanmi_path", "`tanmi` 程序在容器中的路径"),
            ("container", "用户目录在容器中的路径"),
            ("dry_run", "只显示会有哪些改动，不做改动"),
        ],
        "\
示例：
  tanmi context provision --user alice --dry-run
  tanmi context provision --all --extensions extensions",
    ),
    page("rules", "列出、检查、信任和解释注入规则", &[], ""),
    page(
        "rules list",
        "列出在本项目中生效的注入规则",
        &[
            ("source", "只列出来自此处的规则：built-in、workspace、project 或 global"),
            ("event", "只列出针对该事件的规则，如 session_start 或 prompt_submit"),
            ("limit", "最多显示多少条规则；0 表示全部"),
        ],
        "",
    ),
    page(
        "rules check",
        "检查规则文件中的错误",
        &[("file", "要检查的规则文件 [默认：在本项目中生效的全部文件]")],
        "",
    ),
    page("rules trust", "信任本项目及其工作区当前的规则文件", &[YES], ""),
    page(
        "rules explain",
        "显示每条规则对事件的决策，不做任何改动",
        &[
            ("session", "会话 ID [默认：在智能体的 shell 中自动识别，否则用 SESSION 代替]"),
            (
                "event",
                "事件：session_start、prompt_submit、task_complete、status_check、subagent_start、pre_tool_use、\
                 pre_compact、stop 或 session_end",
            ),
            ("prompt", "用户的提示词"),
            (
                "platform",
                "会话的平台：claude-code、cursor、codex、gemini-cli、copilot-cli、web 或 api \
                 [默认：会话或载荷的平台，否则为 claude-code]",
            ),
            ("start", "session_start 事件的原因：startup、resume、clear、compact 或 fork"),
            ("payload", "客户端发给钩子的载荷文件（`-` 表示从标准输入读取）"),
            ("workspace", "事件所属的工作区 [默认：会话绑定的工作区]"),
            ("node", "事件所属的节点 [默认：聚焦节点]"),
            ("rules", "代替项目规则的规则文件"),
            ("at", "事件的时间，Unix 毫秒时间戳 [默认：现在]"),
            ("all", "也显示针对其他事件的规则"),
        ],
        "\
示例：
  tanmi rules explain --prompt '工作区的下一步是什么？'
  tanmi rules explain --event session_start --start resume --all
  tanmi rules explain --payload payload.json --platform cursor",
    ),
    page(
        "trust",
        "信任本项目的记忆、规则、声明的上下文和设置",
        &[
            YES,
            ("revoke", "不再信任本项目及其所有文件"),
            ("allow_owner", "允许使用本项目，即使它属于另一个用户；不信任其内容"),
        ],
        "",
    ),
    page(
        "ledger",
        "显示注入的文本，以及时间、规则和估算的 token 数",
        &[
            ("session", "只看该会话"),
            ("event", "只看该事件，如 session_start 或 prompt_submit"),
            ("platform", "只看该平台，如 claude-code"),
            ("rule", "只看由该规则注入的记录；规则 ID 见 `tanmi rules list`"),
            ("workspace", "只看该工作区"),
            ("node", "只看该节点"),
            ("since", "从这一天起（YYYY-MM-DD，UTC）"),
            ("until", "到这一天为止，含当天（YYYY-MM-DD，UTC）"),
            ("day", "只看这一天（YYYY-MM-DD，UTC）"),
            ("limit", "显示最近多少条注入记录；0 表示全部"),
            ("text", "同时输出注入的文本"),
        ],
        "\
示例：
  tanmi ledger --limit 5 --text
  tanmi ledger --since 2026-01-01 --event session_start
  tanmi ledger --node 'Write the parser'",
    ),
    page(
        "pause",
        "停止向所有智能体注入文本，直到 `tanmi resume`",
        &[("duration", "在这段时间后自动恢复，如 30m、2h 或 1d")],
        "",
    ),
    page("resume", "结束暂停", &[], ""),
];
