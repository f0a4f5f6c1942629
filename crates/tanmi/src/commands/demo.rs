//! `tanmi demo`: a small story played through this very program, with no agent installed, in a folder of its own.
//!
//! Every step is a process of its own, started as a client or a person would start it; time passes by `TANMI_NOW`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_app::Error;
use tanmi_base::{Lang, Millis, fs, id};

use super::{Context, Result};
use crate::out::{self, paint};
use crate::show;

const SESSION: &str = "demo-session";
const DAY: Millis = 86_400_000;

#[derive(Serialize)]
struct Scene {
    /// What happens, for people.
    scene: String,
    /// What was run.
    command: String,
    /// Exactly what the agent was told; empty for silence, absent where no agent is involved.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<String>,
}

pub fn run(context: &Context, keep: Option<PathBuf>) -> Result {
    let lang = context.app.lang(None);
    // It ends about now: what it shows lies in the past.
    let stage = Stage::new(keep, context.app.now() - DAY - 10 * 60_000, lang)?;
    let mut scenes = Vec::new();
    let mut play = Play { stage: &stage, now: stage.start, lang, scenes: &mut scenes, live: !context.json };
    play.story()?;
    if context.json {
        out::json(&json!({"scenes": scenes, "kept": stage.kept().map(|dir| dir.display().to_string())}));
    } else if let Some(dir) = stage.kept() {
        let (zh, en) = (
            format!(
                "\n已保留在 {}；进入 project 文件夹可用 TANMI_HOME=../home/.tanmi-workspace 继续。",
                dir.display()
            ),
            format!(
                "\nKept in {}; go on in its folder `project` with TANMI_HOME=../home/.tanmi-workspace.",
                dir.display()
            ),
        );
        out::text(&lang.pick(zh, en));
    } else {
        out::text(lang.pick(
            "\n以上都在一个临时文件夹中进行，现已删除。",
            "\nAll of this happened in a scratch folder, which is gone now.",
        ));
    }
    if !context.json {
        out::text(lang.pick(
            "接下来：tanmi install 把它装进你的智能体。",
            "Next: tanmi install puts it into your agents.",
        ));
    }
    Ok(())
}

/// The folder it happens in. Unless it is to be kept, it goes when the story is over.
struct Stage {
    dir: PathBuf,
    is_kept: bool,
    start: Millis,
    lang: Lang,
}

impl Stage {
    fn new(keep: Option<PathBuf>, start: Millis, lang: Lang) -> Result<Stage> {
        let is_kept = keep.is_some();
        let dir = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("tanmi-demo-{}", id::random(8))));
        let is_used = std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            let source = std::io::Error::other(lang.pick("文件夹不是空的", "the folder is not empty"));
            return Err(Error::io(&dir)(source));
        }
        for name in ["home", "project"] {
            fs::create_private_dir(&dir.join(name)).map_err(Error::io(&dir))?;
        }
        let dir = dir.canonicalize().map_err(Error::io(&dir))?;
        Ok(Stage { dir, is_kept, start, lang })
    }

    fn kept(&self) -> Option<&Path> {
        self.is_kept.then_some(self.dir.as_path())
    }

    /// Nothing of the person's own world but the way to this program.
    fn command(&self, now: Millis, args: &[&str]) -> Result<Command> {
        let program = std::env::current_exe().map_err(Error::io("tanmi"))?;
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.dir.join("project"))
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .env("USERPROFILE", self.dir.join("home"))
            .env("TANMI_NOW", now.to_string())
            .env("LANG", self.lang.pick("zh_CN.UTF-8", "en_US.UTF-8"));
        for name in ["TZ", "SystemRoot"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        Ok(command)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_tree(&self.dir);
        }
    }
}

struct Play<'a> {
    stage: &'a Stage,
    now: Millis,
    lang: Lang,
    scenes: &'a mut Vec<Scene>,
    /// Shown as it happens.
    live: bool,
}

impl Play<'_> {
    fn story(&mut self) -> Result {
        let lang = self.lang;
        let say = |zh: &'static str, en: &'static str| lang.pick(zh, en);

        self.start(say(
            "智能体开始一个会话。它还没有绑定任何工作区。",
            "An agent starts a session. It is not bound to anything.",
        ))?;
        self.prompt(
            say("普通问题：保持安静。", "An ordinary question: silence."),
            say("怎么安装 node.js？", "how do I install node.js?"),
        )?;
        let ws = self.make(
            say("创建一个工作区，带一条规则。", "A workspace is created, with one rule."),
            &[
                "workspace",
                "init",
                "--name",
                say("重构认证模块", "Rework auth"),
                "--goal",
                say("将 session 认证替换为 JWT", "Replace sessions by JWT"),
                "--rule",
                say("密钥必须从环境变量读取", "Keys come from the environment"),
            ],
        )?;
        let plan = self.make(
            say("计划：一个规划节点，两个任务。", "The plan: one planning node with two tasks."),
            &[
                "node",
                "create",
                "--type",
                "planning",
                "--title",
                say("令牌", "Tokens"),
                "--requirement",
                say("签发并验证令牌", "Issue and check tokens"),
            ],
        )?;
        let task = |title: &'static str, requirement: &'static str| {
            vec!["node", "create", "--type", "execution", "--title", title, "--requirement", requirement]
        };
        let mut tasks = Vec::new();
        for (title, requirement) in [
            (say("签发 token", "Issue tokens"), say("登录后返回 JWT", "A JWT after login")),
            (say("验证 token", "Check tokens"), say("验证签名和有效期", "Check signature and expiry")),
        ] {
            let mut args = task(title, requirement);
            args.extend(["--parent", &plan]);
            tasks.push(self.make("", &args)?);
        }
        self.prompt(
            say("用户提到工作区：提示如何绑定。", "The user speaks of the workspace: how to bind it."),
            say("继续工作区任务", "continue the workspace"),
        )?;
        self.cli(
            say("会话绑定到工作区。", "The session is bound."),
            &["session", "bind", "--session", SESSION, "--workspace", &ws, "--node", &plan],
        )?;
        self.prompt(
            say(
                "下一个提示带上完整上下文，并提醒先确认计划。",
                "The next prompt brings the whole context, and asks to show the plan first.",
            ),
            say("好的，继续", "fine, go on"),
        )?;
        self.cli(
            say("开始第一个任务。", "The first task is started."),
            &["node", "transition", &tasks[0], "--action", "start", "--session", SESSION],
        )?;
        self.prompt(say("没有新情况：保持安静。", "Nothing new: silence."), say("继续", "go on"))?;
        self.now += 2 * 60_000;
        self.prompt(
            say("两分钟后仍没有日志：提醒。", "Two minutes later there is still no log: a reminder."),
            say("现在怎么样了？", "how is it going?"),
        )?;
        self.cli(
            say("有人编辑了规则。", "Somebody changes the rules."),
            &[
                "workspace",
                "update",
                "--add-rule",
                say("令牌有效期不超过一小时", "Tokens live for an hour at most"),
            ],
        )?;
        self.prompt(
            say("变化的上下文会再告知一次。", "The changed context is told once more."),
            say("继续", "go on"),
        )?;
        let conclusion = say("完成，测试通过", "done, tests pass");
        for (at, task) in tasks.iter().enumerate() {
            self.now += 60_000;
            if at > 0 {
                self.cli("", &["node", "transition", task, "--action", "start", "--session", SESSION])?;
            }
            let scene = if at > 0 {
                say(
                    "完成最后一个任务：结果本身带回下一步。",
                    "The last task is completed: the result itself says what comes next.",
                )
            } else {
                say("完成第一个任务。", "The first task is completed.")
            };
            self.cli(
                scene,
                &[
                    "node",
                    "transition",
                    task,
                    "--action",
                    "complete",
                    "--conclusion",
                    conclusion,
                    "--session",
                    SESSION,
                ],
            )?;
        }
        self.cli(say("结果：", "What came of it:"), &["tree"])?;
        self.cli(
            say("记住一个决定。", "A decision is remembered."),
            &[
                "memory",
                "save-fact",
                say("使用 JWT，有效期一小时", "JWT it is, valid for an hour"),
                "--type",
                "B",
            ],
        )?;
        self.now += DAY;
        self.hook(
            say("第二天，另一个会话开始：它会被告知。", "The next day another session starts: it is told."),
            "another-session",
            json!({"hook_event_name": "SessionStart", "source": "startup"}),
        )?;
        self.cli(
            say(
                "自工作区存在以来告知过的都有记录：",
                "What was said since there is a workspace is on record:",
            ),
            &["ledger"],
        )
    }

    fn start(&mut self, scene: &str) -> Result {
        self.hook(scene, SESSION, json!({"hook_event_name": "SessionStart", "source": "startup"}))
    }

    fn prompt(&mut self, scene: &str, prompt: &str) -> Result {
        self.now += 1000;
        self.hook(scene, SESSION, json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}))
    }

    fn hook(&mut self, scene: &str, session: &str, mut payload: Value) -> Result {
        payload["session_id"] = json!(session);
        payload["cwd"] = json!(self.stage.dir.join("project"));
        let shown =
            payload["prompt"].as_str().map_or(String::from("SessionStart"), |prompt| format!("“{prompt}”"));
        let mut command = self.stage.command(self.now, &["hook", "claude-code"])?;
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(Error::io("tanmi"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(payload.to_string().as_bytes()).map_err(Error::io("tanmi hook"))?;
        }
        let output = child.wait_with_output().map_err(Error::io("tanmi hook"))?;
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let told = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
        self.show(Scene { scene: scene.to_owned(), command: shown, told: Some(told.to_owned()) }, "");
        Ok(())
    }

    fn cli(&mut self, scene: &str, args: &[&str]) -> Result {
        let printed = self.run(args)?;
        self.show(Scene { scene: scene.to_owned(), command: shell(args), told: None }, &printed);
        Ok(())
    }

    /// Makes something and says its id, which is printed at the end of the first line.
    fn make(&mut self, scene: &str, args: &[&str]) -> Result<String> {
        let printed = self.run(args)?;
        let first = printed.lines().next().unwrap_or_default().to_owned();
        let id = first.rsplit(' ').next().unwrap_or_default().to_owned();
        self.show(Scene { scene: scene.to_owned(), command: shell(args), told: None }, &first);
        Ok(id)
    }

    fn run(&self, args: &[&str]) -> Result<String> {
        let output = self.stage.command(self.now, args)?.output().map_err(Error::io("tanmi"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::io("tanmi demo")(std::io::Error::other(reason)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn show(&mut self, scene: Scene, printed: &str) {
        if self.live {
            let mut text = String::new();
            if !scene.scene.is_empty() {
                text.push_str(&format!("\n{}\n", paint(out::BOLD, &scene.scene)));
            }
            text.push_str(&format!("  {}\n", paint(out::DIM, &scene.command)));
            for line in printed.lines() {
                text.push_str(&format!("  {line}\n"));
            }
            match scene.told.as_deref() {
                None => {}
                Some("") => {
                    let silence = self.lang.pick("（什么都不说）", "(nothing is said)");
                    text.push_str(&format!("  {}\n", paint(out::DIM, silence)));
                }
                Some(told) => text.push_str(&show::rules::quoted(told)),
            }
            out::text(&text);
        }
        self.scenes.push(scene);
    }
}

/// As one would type it.
fn shell(args: &[&str]) -> String {
    let quoted = args.iter().map(|arg| {
        let is_plain =
            !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
        if is_plain { (*arg).to_owned() } else { format!("'{}'", arg.replace('\'', "'\\''")) }
    });
    format!("$ tanmi {}", quoted.collect::<Vec<_>>().join(" "))
}
