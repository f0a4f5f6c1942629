//! `tanmi demo`: a short scenario that runs this program in a temporary folder. It needs no agent.
//!
//! Each step is a separate process, started as a client or a user would start it. `TANMI_NOW` sets the clock.

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
                "\n演示文件保留在 {}。\n要继续，请进入其中的 project 文件夹，并设置 TANMI_HOME=../home/.tanmi-workspace。",
                dir.display()
            ),
            format!(
                "\nThe demo files are in {}.\nTo continue, change to the project folder in it and set TANMI_HOME=../home/.tanmi-workspace.",
                dir.display()
            ),
        );
        out::text(&lang.pick(zh, en));
    } else {
        out::text(lang.pick(
            "\n演示在临时文件夹中运行，该文件夹已删除。",
            "\nThe demo ran in a temporary folder, which has been deleted.",
        ));
    }
    if !context.json {
        out::text(lang.pick(
            "下一步：运行 tanmi install，为你的智能体安装钩子和 MCP 服务器。",
            "Next: run tanmi install to install hooks and the MCP server for your agents.",
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
            let source = std::io::Error::other(lang.pick("文件夹不为空", "the folder is not empty"));
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
            "An agent starts a session. It is not bound to a workspace yet.",
        ))?;
        self.prompt(
            say(
                "与工作区无关的问题：不注入任何内容。",
                "A question that is not about a workspace: nothing is injected.",
            ),
            say("怎么安装 node.js？", "how do I install node.js?"),
        )?;
        let ws = self.make(
            say("创建一个带一条规则的工作区。", "Create a workspace with one rule."),
            &[
                "workspace",
                "init",
                "--name",
                say("重构认证模块", "Rework auth"),
                "--goal",
                say("将 session 认证替换为 JWT", "Replace session authentication with JWT"),
                "--rule",
                say("密钥必须从环境变量读取", "Read keys from environment variables"),
            ],
        )?;
        let plan = self.make(
            say(
                "制定计划：一个规划节点和两个执行节点。",
                "Plan the work: a planning node with two execution nodes.",
            ),
            &[
                "node",
                "create",
                "--type",
                "planning",
                "--title",
                say("Token 认证", "Tokens"),
                "--requirement",
                say("签发并验证 token", "Issue and verify tokens"),
            ],
        )?;
        let task = |title: &'static str, requirement: &'static str| {
            vec!["node", "create", "--type", "execution", "--title", title, "--requirement", requirement]
        };
        let mut tasks = Vec::new();
        for (title, requirement) in [
            (say("签发 token", "Issue tokens"), say("登录后返回 JWT", "Return a JWT after login")),
            (say("验证 token", "Verify tokens"), say("验证签名和有效期", "Verify signature and expiry")),
        ] {
            let mut args = task(title, requirement);
            args.extend(["--parent", &plan]);
            tasks.push(self.make("", &args)?);
        }
        self.prompt(
            say(
                "用户提到工作区：提示如何绑定。",
                "The user mentions the workspace: the agent is told how to bind.",
            ),
            say("继续工作区任务", "continue the workspace"),
        )?;
        self.cli(
            say("将会话绑定到工作区。", "Bind the session to the workspace."),
            &["session", "bind", "--session", SESSION, "--workspace", &ws, "--node", &plan],
        )?;
        self.prompt(
            say(
                "下一次提示时注入完整上下文，并提醒先让用户确认计划。",
                "At the next prompt, the full context is injected, with a reminder to confirm the plan first.",
            ),
            say("好的，继续", "ok, continue"),
        )?;
        self.cli(
            say("开始第一个执行节点。", "Start the first execution node."),
            &["node", "transition", &tasks[0], "--action", "start", "--session", SESSION],
        )?;
        self.prompt(
            say("没有变化：不注入任何内容。", "Nothing has changed: nothing is injected."),
            say("继续", "continue"),
        )?;
        self.now += 2 * 60_000;
        self.prompt(
            say(
                "两分钟后仍没有日志：注入提醒。",
                "Two minutes later there is no log entry yet: a reminder is injected.",
            ),
            say("进展如何？", "how is it going?"),
        )?;
        self.cli(
            say("用户添加一条规则。", "The user adds a rule."),
            &[
                "workspace",
                "update",
                "--add-rule",
                say("token 有效期不超过一小时", "Tokens expire after one hour at most"),
            ],
        )?;
        self.prompt(
            say("上下文有变化：重新注入。", "The context has changed: it is injected again."),
            say("继续", "continue"),
        )?;
        let conclusion = say("已完成，测试通过", "Done, tests pass");
        for (at, task) in tasks.iter().enumerate() {
            self.now += 60_000;
            if at > 0 {
                self.cli("", &["node", "transition", task, "--action", "start", "--session", SESSION])?;
            }
            let scene = if at > 0 {
                say(
                    "完成第二个执行节点：命令的结果给出下一步提醒。",
                    "Complete the second node: the result contains a reminder of the next step.",
                )
            } else {
                say("完成第一个执行节点。", "Complete the first execution node.")
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
        self.cli(say("查看任务树。", "Show the tree."), &["tree"])?;
        self.cli(
            say("保存一条事实。", "Save a fact."),
            &[
                "memory",
                "save-fact",
                say("决定使用 JWT，有效期一小时", "Decided to use JWT with an expiry of one hour"),
                "--type",
                "B",
            ],
        )?;
        self.now += DAY;
        self.hook(
            say(
                "第二天，另一个会话开始：注入这条事实。",
                "The next day, another session starts: the fact is injected.",
            ),
            "another-session",
            json!({"hook_event_name": "SessionStart", "source": "startup"}),
        )?;
        self.cli(
            say(
                "账本记录了工作区创建以来的每一次注入。",
                "The ledger has a record of every injection since the workspace was created.",
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
                    let silence = self.lang.pick("（没有注入）", "(nothing injected)");
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
