//! Settings: `config.json` in the home store, overridden by the `config.json` of the project, which can only disable
//! features and counts only with content that the user agreed to.
//!
//! [`SETTINGS`] is the table of all settings; [`Config`] has the values that the program uses.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tanmi_base::fs::{self, Durability, FileSig, SwapFolders};
use tanmi_base::lock::Lock;
use tanmi_base::paths::CONFIG_DIR;
use tanmi_base::text::{BOM, without_bom};
use tanmi_base::{Bilingual, Lang};
use tanmi_workspace::context::ContextLimits;

use crate::error::{Error, Result};
use crate::similar::find_similar;
use crate::trust::{self, Consent, ProjectFile, ProjectTrust, Trust};

const FILE: &str = "config.json";
const MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub enum SettingKind {
    Switch,
    Number {
        min: u64,
        max: u64,
    },
    Word(&'static [&'static str]),
    /// A number of prompts, or `always` for every prompt, or `never`.
    Prompts,
}

impl SettingKind {
    /// Returns the allowed values, for people.
    pub fn allowed(&self) -> String {
        match self {
            SettingKind::Switch => String::from("true | false"),
            SettingKind::Number { min, max } => format!("{min}–{max}"),
            SettingKind::Word(words) => words.join(" | "),
            SettingKind::Prompts => String::from("always | never | 1–1000"),
        }
    }
}

#[derive(Debug)]
pub struct SettingSpec {
    pub name: &'static str,
    pub kind: SettingKind,
    pub default: &'static str,
    pub zh: &'static str,
    pub en: &'static str,
}

impl SettingSpec {
    /// Returns whether a project may set this value: a project can only disable features.
    fn allows_project_value(&self, value: &str) -> bool {
        matches!(self.kind, SettingKind::Switch) && value == "false"
    }
}

pub const SETTINGS: &[SettingSpec] = &[
    SettingSpec {
        name: "language",
        kind: SettingKind::Word(&["auto", "zh", "en"]),
        default: "auto",
        zh: "命令和页面输出的语言；智能体的文本跟随其工作区",
        en: "language of output for people; texts for agents follow their workspace",
    },
    SettingSpec {
        name: "autoLog",
        kind: SettingKind::Switch,
        default: "true",
        zh: "在日志中记录状态变化、清除的问题和规则变更",
        en: "log status changes, cleared problems and changed rules",
    },
    SettingSpec {
        name: "contextLogEntries",
        kind: SettingKind::Number { min: 0, max: 1000 },
        default: "20",
        zh: "`context_get` 结果中每个节点的日志条目数",
        en: "log entries per node in the result of `context_get`",
    },
    SettingSpec {
        name: "contextMaxBytes",
        kind: SettingKind::Number { min: 1000, max: 1_000_000 },
        default: "32768",
        zh: "`context_get` 结果的最大字节数",
        en: "maximum size of the result of `context_get` in bytes",
    },
    SettingSpec {
        name: "reminders",
        kind: SettingKind::Switch,
        default: "true",
        zh: "注入关于聚焦节点的提醒",
        en: "inject reminders about the focused node",
    },
    SettingSpec {
        name: "bindingHints",
        kind: SettingKind::Switch,
        default: "true",
        zh: "提示未绑定的会话如何绑定；绑定的工作区不存在时也提示",
        en: "tell sessions how to bind to a workspace, and when theirs is missing",
    },
    SettingSpec {
        name: "customRules",
        kind: SettingKind::Switch,
        default: "true",
        zh: "执行 rules.json 中的自定义规则",
        en: "run the custom rules in rules.json files",
    },
    SettingSpec {
        name: "contextRefresh",
        kind: SettingKind::Prompts,
        default: "10",
        zh: "每隔多少次提示词注入完整上下文（Cursor、Gemini CLI）；或 always、never",
        en: "prompts between full contexts (Cursor, Gemini CLI); or always, never",
    },
    SettingSpec {
        name: "declaredContext",
        kind: SettingKind::Switch,
        default: "true",
        zh: "注入 context.json 中声明的文件",
        en: "inject the files declared in context.json",
    },
    SettingSpec {
        name: "ledger",
        kind: SettingKind::Switch,
        default: "true",
        zh: "在账本中记录注入文本",
        en: "record injected text in the ledger",
    },
    SettingSpec {
        name: "logRetainDays",
        kind: SettingKind::Number { min: 1, max: 3650 },
        default: "30",
        zh: "账本以及会话开始和结束记录的保留天数",
        en: "days to keep the ledger and the records of session starts and ends",
    },
    SettingSpec {
        name: "memory",
        kind: SettingKind::Switch,
        default: "true",
        zh: "保存、加载和搜索记忆",
        en: "save, load and search memories",
    },
    SettingSpec {
        name: "askForSummary",
        kind: SettingKind::Switch,
        default: "true",
        zh: "会话停止时请求一次摘要",
        en: "ask for a summary once when a session stops",
    },
    SettingSpec {
        name: "memoryMaxBytes",
        kind: SettingKind::Number { min: 100, max: 100_000 },
        default: "8000",
        zh: "一条事实或摘要的最大字节数",
        en: "maximum size of a fact or summary in bytes",
    },
    SettingSpec {
        name: "memoryRecentDays",
        kind: SettingKind::Number { min: 0, max: 365 },
        default: "7",
        zh: "会话开始时注入最近多少天的事实",
        en: "maximum age in days of the facts injected at session start",
    },
    SettingSpec {
        name: "memoryRecentFacts",
        kind: SettingKind::Number { min: 0, max: 100 },
        default: "15",
        zh: "会话开始时最多注入的事实数",
        en: "maximum number of facts injected at session start",
    },
    SettingSpec {
        name: "shareMemory",
        kind: SettingKind::Switch,
        default: "false",
        zh: "让 Git 跟踪新建的记忆目录（不自动忽略）",
        en: "let Git track new memory folders instead of ignoring them",
    },
    SettingSpec {
        name: "ingestTranscripts",
        kind: SettingKind::Switch,
        default: "false",
        zh: "会话结束时收录会话记录，供搜索",
        en: "ingest transcripts for search when a session ends",
    },
    SettingSpec {
        name: "trashRetainDays",
        kind: SettingKind::Number { min: 0, max: 3650 },
        default: "30",
        zh: "回收站内容的保留天数",
        en: "days to keep deleted workspaces and nodes in the trash",
    },
];

/// The effective settings.
#[derive(Debug)]
pub struct Config {
    /// `None` means `auto`.
    pub language: Option<Lang>,
    pub auto_log: bool,
    pub context: ContextLimits,
    pub trash_retain_days: u32,
    pub reminders: bool,
    pub binding_hints: bool,
    pub ask_for_summary: bool,
    pub custom_rules: bool,
    /// The number of prompts; 0 means never.
    pub context_refresh: u32,
    pub declared_context: bool,
    pub ledger: bool,
    pub memory: bool,
    pub memory_max_bytes: usize,
    pub memory_recent_days: u32,
    pub memory_recent_facts: usize,
    pub share_memory: bool,
    pub ingest_transcripts: bool,
    pub log_retain_days: u32,
    /// Invalid entries of the files, which are ignored.
    pub warnings: Vec<Error>,
}

/// One line of `config list`.
#[derive(Debug)]
pub struct Setting {
    pub key: &'static SettingSpec,
    pub value: String,
    /// The file it comes from; `None` for the default.
    pub source: Option<PathBuf>,
}

impl Config {
    /// Loads the settings of the user, overridden by those of the project if there is one.
    pub fn load(home: &Path, project: Option<&ProjectTrust>) -> Config {
        let (settings, mut warnings) = read_all(home, project);
        // A file that the user did not agree to is not wrong; `tanmi config` and `tanmi doctor` name it.
        warnings.retain(|error| !matches!(error, Error::NotAgreed { .. }));
        let value =
            |name: &str| settings.iter().find(|s| s.key.name == name).map_or("", |s| s.value.as_str());
        let number = |name: &str| value(name).parse::<u64>().unwrap_or_default();
        let small = |name: &str| u32::try_from(number(name)).unwrap_or(u32::MAX);
        let is_on = |name: &str| value(name) == "true";
        Config {
            language: Lang::from_word(value("language")),
            auto_log: is_on("autoLog"),
            context: ContextLimits {
                log_entries: number("contextLogEntries") as usize,
                max_bytes: number("contextMaxBytes") as usize,
                ..ContextLimits::default()
            },
            trash_retain_days: small("trashRetainDays"),
            reminders: is_on("reminders"),
            binding_hints: is_on("bindingHints"),
            ask_for_summary: is_on("askForSummary"),
            custom_rules: is_on("customRules"),
            context_refresh: match value("contextRefresh") {
                "always" => 1,
                "never" => 0,
                _ => small("contextRefresh"),
            },
            declared_context: is_on("declaredContext"),
            ledger: is_on("ledger"),
            memory: is_on("memory"),
            memory_max_bytes: number("memoryMaxBytes") as usize,
            memory_recent_days: small("memoryRecentDays"),
            memory_recent_facts: number("memoryRecentFacts") as usize,
            share_memory: is_on("shareMemory"),
            ingest_transcripts: is_on("ingestTranscripts"),
            log_retain_days: small("logRetainDays"),
            warnings,
        }
    }
}

pub(crate) fn home_file(home: &Path) -> PathBuf {
    home.join(FILE)
}

pub(crate) fn project_file(project: &Path) -> PathBuf {
    project.join(CONFIG_DIR).join(FILE)
}

/// Reads the settings of a project; `None` if there are none.
pub(crate) fn read_project_file(trust: &ProjectTrust) -> std::io::Result<Option<ProjectFile>> {
    trust.read_config_file(FILE, MAX_BYTES)
}

/// Returns the settings of a project. Without the user's consent to this content they do not count.
fn read_agreed(trust: &ProjectTrust) -> Result<Map<String, Value>> {
    let path = project_file(trust.project());
    let Some(file) = read_project_file(trust).map_err(Error::io(&path))? else { return Ok(Map::new()) };
    match trust.consent_to(&file) {
        Consent::Given => parse(&path, &file.bytes),
        consent => Err(Error::NotAgreed { path, is_changed: consent == Consent::Outdated }),
    }
}

/// Returns every setting with its value and source, and the errors in the files.
pub fn read_all(home: &Path, project: Option<&ProjectTrust>) -> (Vec<Setting>, Vec<Error>) {
    let mut settings: Vec<Setting> =
        SETTINGS.iter().map(|key| Setting { key, value: key.default.to_owned(), source: None }).collect();
    let mut warnings = Vec::new();
    for trust in std::iter::once(None).chain(project.map(Some)) {
        let from_project = trust.is_some();
        let path = trust.map_or_else(|| home_file(home), |trust| project_file(trust.project()));
        let values = match trust.map_or_else(|| read_file(&path), read_agreed) {
            Ok(values) => values,
            Err(error) => {
                warnings.push(error);
                continue;
            }
        };
        for (name, value) in values {
            let checked = find(&name).and_then(|key| {
                let text = check(key, &as_text(&value))?;
                if from_project && !key.allows_project_value(&text) {
                    return Err(Error::NotForProjects { key: key.name });
                }
                Ok((key, text))
            });
            match checked {
                Err(error) => warnings.push(Error::InFile { path: path.clone(), error: Box::new(error) }),
                Ok((key, text)) => {
                    for setting in settings.iter_mut().filter(|setting| setting.key.name == key.name) {
                        setting.value = text.clone();
                        setting.source = Some(path.clone());
                    }
                }
            }
        }
    }
    (settings, warnings)
}

/// Writes one setting and keeps everything else in the file. In a file of the project that the user agreed to, or that
/// is new in a trusted project, the change is agreed to as well.
pub fn set(home: &Path, project: Option<&Path>, name: &str, value: &str) -> Result<Setting> {
    let for_project = project.is_some();
    let path = &project.map_or_else(|| home_file(home), project_file);
    let key = find(name)?;
    let text = check(key, value)?;
    if for_project && !key.allows_project_value(&text) {
        return Err(Error::NotForProjects { key: key.name });
    }
    let json = match key.kind {
        SettingKind::Switch => Value::Bool(text == "true"),
        SettingKind::Number { .. } | SettingKind::Prompts => {
            text.parse::<u64>().map_or_else(|_| Value::from(text.clone()), Value::from)
        }
        SettingKind::Word(_) => Value::from(text.clone()),
    };
    change_file(home, project, key.name, Some(&json))?;
    Ok(Setting { key, value: text, source: Some(path.to_owned()) })
}

/// Removes one setting and keeps everything else in the file. A setting that is not there is no error.
pub fn unset(home: &Path, project: Option<&Path>, name: &str) -> Result<&'static SettingSpec> {
    let key = find(name)?;
    let path = project.map_or_else(|| home_file(home), project_file);
    if path.exists() {
        change_file(home, project, key.name, None)?;
    }
    Ok(key)
}

/// Writes or removes one value in the settings of the user or of a project.
fn change_file(home: &Path, project: Option<&Path>, key: &str, value: Option<&Value>) -> Result<()> {
    let path = &project.map_or_else(|| home_file(home), project_file);
    // The lock is in the home store, also for the file of a project, so that no lock file is left in the repository.
    fs::create_private_dir(home).map_err(Error::io(home))?;
    let _lock = Lock::exclusive(&home.join("config.lock")).map_err(tanmi_workspace::Error::from)?;
    let before = project.map(|project| ProjectSettings::read(home, project)).transpose()?;
    for _ in 0..MAX_ATTEMPTS {
        if write_value(path, key, value, project.is_some())? {
            return before.map_or(Ok(()), |before| before.agree_to_change(home));
        }
    }
    Err(Error::io(path)(std::io::ErrorKind::ResourceBusy.into()))
}

/// How often a setting is written again because a person saved the file at the same time.
const MAX_ATTEMPTS: usize = 20;

/// Writes one value, or removes it. Returns `false` if another program changed the file meanwhile.
fn write_value(path: &Path, key: &str, value: Option<&Value>, for_project: bool) -> Result<bool> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let read = || -> std::io::Result<(Option<FileSig>, Vec<u8>)> {
        fs::recover_swaps(&SwapFolders::beside(dir), |target| target == name)?;
        Ok((FileSig::of(path)?, fs::read_limited(path, MAX_BYTES)?.unwrap_or_default()))
    };
    let (sig, bytes) = read().map_err(Error::io(path))?;
    let mut values = if sig.is_some() { parse(path, &bytes)? } else { Map::new() };
    match value {
        Some(value) => values.insert(key.to_owned(), value.clone()),
        None => values.remove(key),
    };
    let mut body = if bytes.starts_with(BOM) { BOM.to_vec() } else { Vec::new() };
    body.extend(format!("{:#}\n", Value::Object(values)).bytes());
    let written = match sig {
        Some(sig) => fs::replace_if(path, &body, &SwapFolders::beside(dir), Durability::Synced, sig)
            .map(|sig| sig.is_some()),
        None if for_project => std::fs::create_dir_all(dir)
            .and_then(|()| fs::create_atomic(path, &body, dir, Durability::Synced).map(|sig| sig.is_some())),
        None => fs::write_private(path, &body).map(|()| true),
    };
    written.map_err(Error::io(path))
}

/// The settings of a project before a change by the user.
struct ProjectSettings<'a> {
    project: &'a Path,
    was_clean: bool,
    was_agreed: bool,
}

impl ProjectSettings<'_> {
    fn read<'a>(home: &Path, project: &'a Path) -> Result<ProjectSettings<'a>> {
        let dir = project.join(CONFIG_DIR);
        if fs::is_link(&dir) {
            let reason = std::io::Error::other("a symbolic link, which is not followed");
            return Err(Error::io(dir)(reason));
        }
        let trust = Trust::new(home).of_project(project);
        let file = read_project_file(&trust).map_err(Error::io(project_file(project)))?;
        let was_agreed = match file {
            None => trust.is_trusted(),
            Some(file) => trust.consent_to(&file) == Consent::Given,
        };
        Ok(ProjectSettings { project, was_clean: trust::is_clean(project), was_agreed })
    }

    /// Agrees to the changed file, if everything else in it was agreed to. The first file of a project is its
    /// user's own.
    fn agree_to_change(&self, home: &Path) -> Result<()> {
        let (trust, now) = (Trust::new(home), tanmi_base::clock::now());
        let file = read_project_file(&trust.of_project(self.project)).ok().flatten();
        match file {
            Some(file) if self.was_agreed => trust.add_files(self.project, &[file], now),
            Some(file) if self.was_clean => trust.add_project(self.project, "created", &[file], now),
            _ => Ok(()),
        }
    }
}

pub fn find(name: &str) -> Result<&'static SettingSpec> {
    SETTINGS.iter().find(|key| key.name == name).ok_or_else(|| {
        let near = find_similar(name, SETTINGS.iter().map(|key| key.name));
        Error::UnknownKey { key: name.to_owned(), near }
    })
}

fn check(key: &'static SettingSpec, value: &str) -> Result<String> {
    let checked = match key.kind {
        SettingKind::Switch => match value {
            "true" | "on" | "yes" => Some(String::from("true")),
            "false" | "off" | "no" => Some(String::from("false")),
            _ => None,
        },
        SettingKind::Number { min, max } => number_in(value, min, max),
        SettingKind::Prompts => match value {
            "always" | "never" => Some(value.to_owned()),
            _ => number_in(value, 1, 1000),
        },
        SettingKind::Word(words) => words.contains(&value).then(|| value.to_owned()),
    };
    checked.ok_or_else(|| Error::BadValue {
        key: key.name,
        value: value.to_owned(),
        expected: key.kind.allowed(),
    })
}

fn number_in(value: &str, min: u64, max: u64) -> Option<String> {
    let number = value.parse::<u64>().ok()?;
    (min..=max).contains(&number).then(|| number.to_string())
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the reason of a JSON error.
pub(crate) fn malformed_json(error: &serde_json::Error) -> Bilingual {
    Bilingual::new(format!("JSON 格式错误（{error}）"), format!("malformed JSON ({error})"))
}

fn read_file(path: &Path) -> Result<Map<String, Value>> {
    match fs::read_limited(path, MAX_BYTES).map_err(Error::io(path))? {
        Some(bytes) => parse(path, &bytes),
        None => Ok(Map::new()),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>> {
    let bad = |line: usize, reason: Bilingual| Error::BadFile { path: path.to_owned(), line, reason };
    match serde_json::from_slice(without_bom(bytes)) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err(bad(1, Bilingual::new("应为 JSON 对象", "expected a JSON object"))),
        Err(error) => Err(bad(error.line(), malformed_json(&error))),
    }
}
