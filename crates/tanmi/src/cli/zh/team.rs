//! The administration of a team.

use super::setup::DATABASE;
use super::{ArgumentText, ChineseTexts, page};

const PROJECT_NAME: ArgumentText = ("project_name", "项目在服务器上的名称 [默认：唯一的项目]");
const TEAM: ArgumentText = ("team", "团队的名称 [默认：唯一的团队]");
const PERSON: ArgumentText = ("person", "人的名字");
const NAME: ArgumentText = ("name", "人的名字");
const TOKEN_ID: ArgumentText = ("id", "令牌的 ID，见 `tanmi team token list`");
const JOIN: &[ArgumentText] = &[
    ("url", "服务器的地址，如 https://team.example.org [默认：.tanmi/team.json 中的地址，需要确认]"),
    ("project_name", "项目在服务器上的名称"),
    ("token_file", "含有令牌的文件，- 表示标准输入"),
    ("ca", "服务器证书的颁发机构的证书文件 [默认：系统的证书]"),
    ("machine", "此机器的名称，其他人会看到 [默认：主机名]"),
    ("yes", "使用 .tanmi/team.json 中的服务器和项目"),
];

pub const PAGES: &[ChineseTexts] = &[
    page(
        "team login",
        "输出一个链接，五分钟内可打开一次团队服务器的页面",
        &[
            ("url", "服务器的地址，如 https://tanmi.example.org:7777"),
            ("token_file", "存有令牌的文件（`-` 从标准输入读取）"),
            PROJECT_NAME,
            ("ca", "签发服务器证书的机构的证书（PEM） [默认：系统的证书]"),
            ("open", "同时在浏览器中打开页面"),
        ],
        "\
示例：
  tanmi team login --url https://tanmi.example.org:7777 --token-file ~/token
  pass tanmi | tanmi team login --url https://team.example.org --token-file -",
    ),
    page(
        "team join",
        "让此文件夹加入团队服务器上的项目",
        JOIN,
        "\
示例：
  tanmi team join https://team.example.org --project-name shop \\
    --token-file token.txt

项目的工作区和共享记忆保存在服务器上，本机保留一份副本。偏好、会话记录和会话留在本机。",
    ),
    page("team push", "把此项目连同工作区和记忆移到团队服务器，并加入", JOIN, ""),
    page(
        "team leave",
        "把项目写回此文件夹的文件，并离开团队",
        &[("discard", "放弃尚未送达服务器的写入"), ("yes", "不询问，直接离开")],
        "",
    ),
    page("team sync", "发送等待的写入，并更新项目的副本", &[("check", "与服务器逐个比较文档")], ""),
    page("team status", "显示此项目的服务器、人员、连接和副本", &[], ""),
    page("team outbox", "查看、重新发送和删除等待服务器或被服务器拒绝的写入", &[], ""),
    page(
        "team outbox list",
        "列出等待服务器的写入和被服务器拒绝的写入",
        &[
            ("state", "只列出等待的（queued），或只列出被拒绝的（undelivered）"),
            ("limit", "最多条数；0 表示全部 [默认：50]"),
        ],
        "",
    ),
    page(
        "team outbox retry",
        "重新发送被拒绝的写入",
        &[("ids", "写入的 ID [默认：所有被服务器拒绝的写入]")],
        "",
    ),
    page(
        "team outbox discard",
        "删除没有送达的写入；它们会丢失",
        &[("ids", "写入的 ID [默认：所有被服务器拒绝的写入]")],
        "",
    ),
    page("team person", "添加、停用和列出成员", &[], ""),
    page(
        "team person add",
        "把一个人加入团队；给出角色时也加入项目",
        &[DATABASE, TEAM, NAME, ("role", "此人在项目中的角色"), PROJECT_NAME],
        "",
    ),
    page("team person disable", "停用一个人；其令牌在 5 秒内失效", &[DATABASE, TEAM, NAME], ""),
    page("team person enable", "重新启用已停用的人", &[DATABASE, TEAM, NAME], ""),
    page(
        "team person list",
        "列出成员及其角色",
        &[
            DATABASE,
            TEAM,
            ("project_name", "只列出该项目的成员"),
            ("role", "只列出在某个项目中有该角色的人"),
            ("limit", "最多列出多少人；0 表示全部"),
        ],
        "",
    ),
    page("team member", "设置成员在项目中的角色", &[], ""),
    page(
        "team member set",
        "设置一个人在项目中的角色，或把此人移出项目",
        &[DATABASE, PROJECT_NAME, PERSON, ("role", "此人的角色；`none` 把此人移出项目")],
        "",
    ),
    page("team project", "添加和列出项目", &[], ""),
    page("team project add", "为团队添加项目", &[DATABASE, TEAM, ("name", "项目的名称")], ""),
    page(
        "team project list",
        "列出项目及其成员数和工作区数",
        &[DATABASE, TEAM, ("limit", "最多列出多少个项目；0 表示全部")],
        "",
    ),
    page("team token", "创建、列出、轮换和撤销成员的令牌", &[], ""),
    page(
        "team token create",
        "创建令牌并输出一次；此人成为项目成员，角色不低于令牌",
        &[
            DATABASE,
            PROJECT_NAME,
            PERSON,
            ("role", "令牌允许的操作：读，读和写，或者还可以管理成员"),
            ("name", "令牌的用途，如机器的名称"),
            ("expires", "令牌在多久后过期，如 90d 或 12h [默认：不过期]"),
            ("days", "令牌在多少天后过期 [默认：不过期]"),
            ("this_project_only", "令牌只在该项目中有效 [默认：此人的所有项目]"),
        ],
        "\
示例：
  tanmi team token create --person bob --role member --name laptop
  tanmi team token create --project-name shop --person ci --role reader \\
    --expires 90d --this-project-only",
    ),
    page(
        "team token list",
        "列出令牌，不含密文",
        &[
            DATABASE,
            ("person", "只列出此人的令牌"),
            ("project_name", "只列出在该项目中有效的令牌"),
            ("valid", "只列出既未过期也未撤销的令牌"),
            ("limit", "最多列出多少个令牌；0 表示全部"),
        ],
        "",
    ),
    page(
        "team token revoke",
        "撤销一个令牌，或一个人的所有令牌",
        &[DATABASE, PROJECT_NAME, PERSON, TOKEN_ID],
        "",
    ),
    page(
        "team token rotate",
        "用限制相同的新令牌替换一个令牌，并输出一次",
        &[DATABASE, TOKEN_ID, ("overlap", "旧令牌继续有效多久，如 24h；0s 表示立即失效")],
        "",
    ),
    page(
        "team audit",
        "显示谁登录过，谁修改过成员、角色、令牌和项目",
        &[
            DATABASE,
            ("project_name", "只显示该项目的条目"),
            ("person", "只显示此人做的，或对此人做的"),
            ("what", "只显示该类条目"),
            ("since", "从这一天起，或最近若干天，如 2026-01-31 或 7d"),
            ("before", "只显示该 ID 的条目之前的条目"),
            ("limit", "最多显示多少条；0 表示全部"),
        ],
        "",
    ),
    page("team check", "检查项目的数据行与其文档是否一致", &[DATABASE, ("project_name", "只检查该项目")], ""),
    page(
        "team export",
        "把项目写入新目录，tanmi 可以在其中工作",
        &[DATABASE, PROJECT_NAME, ("dir", "要写入的目录；必须为空或不存在")],
        "\
示例：
  tanmi team export ./shop --project-name shop

已删除的工作区和节点不会导出。",
    ),
    page(
        "team import",
        "把本地项目的工作区和共享的记忆加入服务器上的项目",
        &[DATABASE, PROJECT_NAME, ("dir", "本地项目的目录")],
        "\
示例：
  tanmi team project add shop
  tanmi team import ~/src/shop --project-name shop

项目已有的内容会跳过，因此可以再次运行。如果项目中某个工作区或记忆的内容不同，则拒绝导入，
什么也不会写入。看法、会话记录、MEMORY.md 和回收站中的内容留在本机。",
    ),
];
