//! Installation, settings, servers and shell support.

use super::{ArgumentText, ChineseTexts, page};

const PLATFORM: ArgumentText = (
    "platform",
    "要安装的智能体：claude-code、cursor、codex、gemini-cli、copilot-cli 或 all；可重复 [默认：检测到的智能体]",
);
const UNINSTALL_PLATFORM: ArgumentText = (
    "platform",
    "要移除 Tanmi 的智能体：claude-code、cursor、codex、gemini-cli、copilot-cli 或 all；可重复 [默认：全部]",
);
const DRY_RUN: ArgumentText = ("dry_run", "只显示会有哪些改动，不做改动");
const YES: ArgumentText = ("yes", "--purge 之前不询问确认");

pub(super) const DATABASE: ArgumentText = (
    "database",
    "数据库的地址，如 postgres://tanmi@db.example.org/tanmi [默认：环境变量 TANMI_DATABASE_URL]",
);

pub const PAGES: &[ChineseTexts] = &[
    page(
        "install",
        "为检测到的智能体安装钩子和 MCP 服务器",
        &[
            PLATFORM,
            DRY_RUN,
            YES,
            ("scope", "为用户的所有项目安装，或只为本项目安装"),
            ("guide", "同时写入使用指南，告诉智能体何时使用工作区和记忆"),
            ("no_hooks", "不安装钩子"),
            ("no_mcp", "不安装 MCP 服务器"),
            ("no_status_line", "不安装状态栏；已有的状态栏从不替换"),
            (
                "allow_tools",
                "允许 Claude Code 不经询问使用 Tanmi 的工具 [默认：在终端中询问，除非给出 --yes]",
            ),
            ("print", "输出配置和使用指南，供手动安装"),
        ],
        "\
示例：
  tanmi install --dry-run
  tanmi install
  tanmi install --platform claude-code --scope project --guide",
    ),
    page(
        "uninstall",
        "移除钩子和 MCP 服务器，并恢复原来的文件",
        &[
            UNINSTALL_PLATFORM,
            DRY_RUN,
            YES,
            ("scope", "只处理该范围 [默认：两者]"),
            (
                "purge",
                "同时永久删除 ~/.tanmi-workspace，以及所有已知项目中的 .tanmi-workspace 和 .tanmi；会先询问",
            ),
        ],
        "",
    ),
    page("doctor", "诊断安装情况，并给出修复建议", &[("fix", "自动执行可以安全完成的修复")], ""),
    page("config", "显示和修改设置", &[], ""),
    page("config list", "列出所有设置及其值和来源", &[], ""),
    page("config get", "显示一项设置", &[("key", "设置的名称，见 `tanmi config list`")], ""),
    page(
        "config set",
        "修改一项设置",
        &[
            ("key", "设置的名称，见 `tanmi config list`"),
            ("value", "新的值"),
            ("for_project", "只为本项目修改；项目级设置只能关闭功能"),
        ],
        "\
示例：
  tanmi config set language zh
  tanmi config set reminders false --for-project",
    ),
    page(
        "config unset",
        "删除一项设置，恢复默认值",
        &[("key", "设置的名称，见 `tanmi config list`"), ("for_project", "从本项目的设置中删除")],
        "",
    ),
    page("demo", "在临时目录中运行一个简短的演示", &[("keep", "在该目录中运行演示，并保留文件")], ""),
    page(
        "serve",
        "在 127.0.0.1 上提供网页、HTTP API 和 MCP 服务",
        &[
            ("port", "127.0.0.1 上的端口 [默认：空闲端口]"),
            ("no_open", "输出页面链接，不打开浏览器"),
            (
                "database",
                "通过该 PostgreSQL 数据库为团队提供服务 [给出 --listen 时默认：环境变量 TANMI_DATABASE_URL]",
            ),
            ("listen", "为团队提供服务的地址和端口，如 127.0.0.1:7777"),
            ("tls_cert", "服务器及其中间机构的证书（PEM）；收到 SIGHUP 时重新读取"),
            ("tls_key", "证书的私钥（PEM）；收到 SIGHUP 时重新读取"),
            ("rate_limit", "一个令牌每秒可以向团队服务器发送的请求数，短时间内可达十倍；0 表示不限"),
            ("log_level", "团队服务器写到标准错误的日志级别，每行一个 JSON"),
        ],
        "\
示例：
  tanmi serve
  tanmi serve --port 8080 --no-open
  tanmi serve --database postgres://tanmi@db/tanmi --listen 127.0.0.1:7777
  tanmi serve --listen 0.0.0.0:7777 --tls-cert cert.pem --tls-key key.pem",
    ),
    page("team", "加入团队，管理团队的服务器：数据库、成员、项目和令牌", &[], ""),
    page(
        "team setup",
        "创建数据库结构、项目及其第一位管理员，并输出令牌",
        &[
            DATABASE,
            ("team", "团队的名称"),
            ("project_name", "项目在服务器上的名称"),
            ("admin", "第一位管理员的名字"),
        ],
        "\
示例：
  export TANMI_DATABASE_URL=postgres://tanmi:PASSWORD@localhost/tanmi
  tanmi team setup --team Acme --project-name shop --admin ada
  tanmi serve --listen 127.0.0.1:7777

已有的内容保留。较旧的数据库结构会升级，与 tanmi team upgrade 相同。",
    ),
    page("team upgrade", "把数据库结构升级到此程序的版本", &[DATABASE], ""),
    page("mcp", "通过标准输入和标准输出提供 MCP 服务", &[], ""),
    page(
        "hook",
        "处理钩子事件（载荷从标准输入读取，响应写到标准输出）",
        &[
            ("platform", "发送事件的平台：claude-code、cursor、codex、gemini-cli 或 copilot-cli"),
            ("event", "客户端使用的事件名，如 UserPromptSubmit [默认：载荷中的名称]"),
            ("format", "输出格式；`prompt` 输出载荷，并在其提示词中加入声明的上下文"),
        ],
        "`tanmi install` 会把这个命令写入各智能体的配置。钩子从不失败：即使无法响应，也以状态码 0 退出。",
    ),
    page("statusline", "输出 Claude Code 的状态栏（载荷从标准输入读取）", &[], ""),
    page(
        "completions",
        "输出 shell 的补全脚本",
        &[("shell", "要补全的 shell")],
        "\
示例：
  tanmi completions bash > ~/.local/share/bash-completion/completions/tanmi
  tanmi completions zsh > ~/.zfunc/_tanmi
  tanmi completions fish > ~/.config/fish/completions/tanmi.fish",
    ),
    page(
        "man",
        "输出 man 手册页，或为每个命令写一个",
        &[("dir", "把 `tanmi.1`、`tanmi-node.1` 等写入该目录")],
        "",
    ),
    page("complete-line", "输出可以补全命令行的 ID 和标题", &[("words", "光标之前的命令行中的词")], ""),
    page("reference", "输出 docs/reference.md（命令参考）", &[], ""),
];
