//! The words by which [`super::statement`] recognises changes, negations, subjects and values.

use crate::word_list::WordList;

mod marks;

pub use marks::*;

/// Words that end the subject of a sentence: verbs in the forms that occur after a subject.
pub(super) static VERBS: WordList<{ VERB_LIST.len() }> = WordList::new(VERB_LIST);

const VERB_LIST: &[&str] = &[
    "accept", "accepts", "add", "adds", "allow", "allows", "always", "are", "aren't", "avoid", "be",
    "became", "becomes", "been", "belong", "belongs", "build", "builds", "cache", "caches", "call", "calls",
    "can", "can't", "cannot", "come", "comes", "contain", "contains", "default", "defaults", "depend",
    "depends", "deploy", "deploys", "do", "does", "doesn't", "don't", "end", "ended", "ends", "expire",
    "expires", "fail", "fails", "follow", "follows", "get", "gets", "go", "goes", "got", "had", "has",
    "have", "hold", "holds", "indent", "install", "is", "isn't", "keep", "keeps", "leave", "leaves", "let",
    "lets", "listen", "listens", "live", "lives", "load", "loads", "log", "make", "makes", "may", "mean",
    "means", "must", "name", "need", "needs", "never", "pass", "passes", "point", "points", "prefer",
    "prefers", "put", "puts", "read", "reads", "receive", "receives", "reject", "rejects", "render",
    "renders", "require", "requires", "return", "returns", "review", "reviews", "run", "runs", "send",
    "sends", "serve", "serves", "shall", "should", "sit", "sits", "speak", "speaks", "start", "starts",
    "stop", "stops", "store", "stores", "support", "supports", "take", "takes", "talk", "talks", "time",
    "times", "took", "use", "used", "uses", "was", "went", "were", "will", "work", "works", "write",
    "writes",
];

/// As [`VERBS`], with the characters before and after which they are part of another word.
pub const VERBS_ZH: &[(&str, &str, &str)] = &[
    ("使用", "", ""),
    ("采用", "", ""),
    ("选用", "", ""),
    ("需要", "不", ""),
    ("必须", "", ""),
    ("不能", "", ""),
    ("不要", "", ""),
    ("可以", "", ""),
    ("禁止", "", ""),
    ("允许", "不", ""),
    ("应该", "", ""),
    ("喜欢", "", ""),
    ("负责", "", "人"),
    ("部署在", "", ""),
    ("运行在", "", ""),
    ("来自", "", ""),
    ("设置为", "", ""),
    ("最多", "", ""),
    ("最大", "", ""),
    ("最少", "", ""),
    ("至少", "", ""),
    ("接入", "", ""),
    ("支持", "", ""),
    ("返回", "", ""),
    ("是", "于但还而", "否"),
    ("为", "行作认因成", "什"),
    ("用", "应通费引占复常公信作调启", "户例量途法"),
    ("由", "路自理", ""),
    ("存", "缓库内保", "储"),
    ("放", "开释", "置"),
    ("走", "", ""),
    ("跑", "", ""),
    ("在", "存正现", "线"),
    ("有", "所没", "效关"),
    ("每", "", ""),
    ("发到", "", ""),
    ("发往", "", ""),
    ("发给", "", ""),
    ("写到", "", ""),
    ("写入", "", ""),
    ("推送到", "", ""),
    ("监听", "", ""),
    ("保留", "", ""),
    ("达到", "", ""),
    ("选", "可筛勾多单", "项择"),
    ("取", "读获提领拉爬", "消代得"),
    ("托管在", "", ""),
    ("部署到", "", ""),
    ("上传到", "", ""),
    ("以", "可所", "及"),
    ("从", "", "库"),
    ("要", "需主重", "求"),
];

/// Words of a subject that do not tell it from another one.
pub const GENERIC: &[&str] = &[
    "servic",
    "code",
    "app",
    "applic",
    "page",
    "team",
    "job",
    "file",
    "project",
    "repositori",
    "repo",
    "tool",
    "system",
    "everi",
    "old",
    "new",
    "version",
];

/// Nouns of which a sentence of this kind states one value: `The default branch is main`.
pub const SINGLE_VALUED: &[&str] = &[
    "branch",
    "databas",
    "port",
    "version",
    "owner",
    "name",
    "format",
    "languag",
    "framework",
    "runner",
    "manag",
    "url",
    "host",
    "region",
    "limit",
    "timeout",
    "orm",
    "linter",
    "formatt",
    "editor",
    "shell",
    "licens",
    "domain",
    "address",
    "engin",
    "provid",
    "level",
    "mode",
    "style",
    "zone",
    "currenc",
    "encod",
    "maintain",
    "path",
    "folder",
    "directori",
];

/// Verbs of [`VERBS`] that say little about what something does.
pub const WEAK_VERBS: &[&str] = &[
    "use", "run", "need", "work", "go", "live", "do", "have", "keep", "take", "get", "make", "start",
    "support",
];

/// The last characters of a Chinese subject of which a sentence states one value.
pub const SINGLE_VALUED_ZH: &[&str] = &[
    "语言", "版本", "分支", "端口", "框架", "地址", "域名", "时区", "编码", "名称", "级别", "模式", "格式",
    "工具", "引擎", "区域", "货币", "协议", "目录", "路径", "责人", "据库", "平台", "风格", "颜色", "主题",
    "仓库", "环境",
];

/// Words between the verb and the value: "is built with", "is called".
pub const LINKS: &[&str] = &[
    "called",
    "named",
    "built",
    "written",
    "tracked",
    "stored",
    "hosted",
    "deployed",
    "implemented",
    "managed",
    "kept",
    "linted",
    "tested",
    "formatted",
    "served",
    "provided",
    "maintained",
    "handled",
    "rendered",
    "generated",
    "with",
    "in",
    "on",
    "by",
    "to",
    "from",
    "using",
    "via",
    "the",
    "a",
    "an",
    "at",
    "as",
];

/// Words that name a unit after a number.
pub(super) static UNITS: WordList<{ UNIT_LIST.len() }> = WordList::new(UNIT_LIST);

const UNIT_LIST: &[&str] = &[
    "am", "b", "day", "days", "gb", "gib", "h", "hour", "hours", "kb", "kib", "mb", "mib", "min", "minute",
    "minutes", "month", "months", "ms", "percent", "pm", "px", "s", "sec", "second", "seconds", "tb", "utc",
    "week", "weeks", "year", "years",
];
pub const UNITS_ZH: &[&str] = &[
    "毫秒", "分钟", "小时", "个月", "像素", "次", "条", "秒", "分", "天", "位", "个", "人", "点", "号", "年",
    "月", "周", "元", "台",
];

/// Words after which a number is a name: `PR 12`.
pub const NUMBERED: &[&str] = &[
    "pr",
    "mr",
    "issue",
    "bug",
    "ticket",
    "sprint",
    "migration",
    "step",
    "phase",
    "shard",
    "error",
    "status",
    "code",
    "rfc",
    "adr",
    "task",
    "story",
    "milestone",
    "week",
    "chapter",
    "section",
    "line",
    "page",
    "room",
    "build",
    "case",
    "experiment",
];
pub const NUMBERED_ZH: &[&str] = &[
    "第",
    "迁移",
    "缺陷",
    "任务",
    "工单",
    "需求",
    "阶段",
    "步骤",
    "错误",
    "状态码",
    "返回",
    "分片",
    "冲刺",
    "实验",
];

/// Words of which a fact is about one: facts about different ones do not replace each other.
pub const CONTRASTS: &[&[&str]] = &[
    &[
        "staging",
        "production",
        "prod",
        "dev",
        "test",
        "local",
        "测试环境",
        "生产环境",
        "开发环境",
        "预发",
        "线上",
        "本地",
    ],
    &["frontend", "backend", "mobile", "前端", "后端", "移动端"],
    &["ios", "android", "安卓"],
    &["linux", "macos", "windows"],
    &["read", "write"],
    &["primary", "replica", "analytics", "主库", "从库"],
    &["access", "refresh"],
    &["import", "export", "导入", "导出"],
    &["request", "response"],
    &["client", "server", "客户端", "服务端"],
];
