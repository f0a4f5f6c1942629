//! `tanmi demo`: a short scenario that runs this program in a temporary folder. It needs no agent.
//!
//! Each step is a separate process, started as a client or a user would start it. `TANMI_NOW` sets the clock.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use serde_json::json;
use tanmi_app::Error;
use tanmi_base::clock::DAY;
use tanmi_base::{Lang, Millis, fs, id};
use tanmi_platform::DEFAULT_CLIENT;

use super::{CommandContext, Result};
use crate::out::{self, paint};
use crate::show;

const SESSION: &str = "demo-0001";

/// One step of the demo.
#[derive(Serialize)]
struct Scene {
    /// Describes the step for the user.
    #[serde(rename = "scene")]
    description: String,
    /// The command or prompt.
    command: String,
    /// The exact text that the hook injected. Empty if it injected nothing, `None` if no hook ran.
    #[serde(rename = "told", skip_serializing_if = "Option::is_none")]
    injected: Option<String>,
}

pub fn run(context: &CommandContext, keep: Option<PathBuf>) -> Result {
    let lang = context.app.lang();
    // The demo lasts a day and ends about now, so that none of its timestamps is in the future.
    let folder = DemoFolder::new(keep, context.app.now() - DAY - 10 * 60_000, lang)?;
    let mut scenes = Vec::new();
    let mut demo =
        Demo { folder: &folder, now: folder.start, lang, scenes: &mut scenes, prints: !context.json };
    demo.play()?;
    if context.json {
        out::json(&json!({"scenes": scenes, "kept": folder.kept().map(|dir| dir.display().to_string())}));
    } else if let Some(dir) = folder.kept() {
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

/// The folder of the demo. It is deleted on drop, unless the user wants to keep it.
struct DemoFolder {
    dir: PathBuf,
    is_kept: bool,
    start: Millis,
    lang: Lang,
}

impl DemoFolder {
    fn new(keep: Option<PathBuf>, start: Millis, lang: Lang) -> Result<DemoFolder> {
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
        Ok(DemoFolder { dir, is_kept, start, lang })
    }

    fn kept(&self) -> Option<&Path> {
        self.is_kept.then_some(self.dir.as_path())
    }

    /// Returns a command that runs this program in the folder, isolated from the environment of the user.
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

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_tree(&self.dir);
        }
    }
}

struct Demo<'a> {
    folder: &'a DemoFolder,
    now: Millis,
    lang: Lang,
    scenes: &'a mut Vec<Scene>,
    /// Whether each scene is printed when it has run.
    prints: bool,
}

impl Demo<'_> {
    fn play(&mut self) -> Result {
        let lang = self.lang;
        let pick = |zh: &'static str, en: &'static str| lang.pick(zh, en);

        self.start(pick(
            "智能体开始一个会话。它还没有绑定任何工作区。",
            "An agent starts a session. It is not bound to a workspace yet.",
        ))?;
        self.prompt(
            pick(
                "与工作区无关的问题：不注入任何内容。",
                "A question that is not about a workspace: nothing is injected.",
            ),
            pick("怎么安装 node.js？", "how do I install node.js?"),
        )?;
        let ws = self.create(
            pick("创建一个带一条规则的工作区。", "Create a workspace with one rule."),
            &[
                "workspace",
                "init",
                "--name",
                pick("重构认证模块", "Rework auth"),
                "--goal",
                pick("将 session 认证替换为 JWT", "Replace session authentication with JWT"),
                "--rule",
                pick("密钥必须从环境变量读取", "Read keys from environment variables"),
            ],
        )?;
        let plan = self.create(
            pick(
                "制定计划：一个规划节点和两个执行节点。",
                "Plan the work: a planning node with two execution nodes.",
            ),
            &[
                "node",
                "create",
                "--type",
                "planning",
                "--title",
                pick("Token 认证", "Tokens"),
                "--requirement",
                pick("签发并验证 token", "Issue and verify tokens"),
            ],
        )?;
        let task = |title: &'static str, requirement: &'static str| {
            vec!["node", "create", "--type", "execution", "--title", title, "--requirement", requirement]
        };
        let mut tasks = Vec::new();
        for (title, requirement) in [
            (pick("签发 token", "Issue tokens"), pick("登录后返回 JWT", "Return a JWT after login")),
            (pick("验证 token", "Verify tokens"), pick("验证签名和有效期", "Verify signature and expiry")),
        ] {
            let mut args = task(title, requirement);
            args.extend(["--parent", &plan]);
            tasks.push(self.create("", &args)?);
        }
        self.prompt(
            pick(
                "用户提到工作区：提示如何绑定。",
                "The user mentions the workspace: the agent is told how to bind.",
            ),
            pick("继续工作区任务", "continue the workspace"),
        )?;
        self.cli(
            pick("将会话绑定到工作区。", "Bind the session to the workspace."),
            &["session", "bind", "--session", SESSION, "--workspace", &ws, "--node", &plan],
        )?;
        self.prompt(
            pick(
                "用户下一次发送提示词时注入完整上下文，并提醒先让用户确认计划。",
                "At the next prompt, the full context is injected, with a reminder to confirm the plan first.",
            ),
            pick("好的，继续", "ok, continue"),
        )?;
        self.cli(
            pick("开始第一个执行节点。", "Start the first execution node."),
            &["node", "transition", &tasks[0], "--action", "start", "--session", SESSION],
        )?;
        self.prompt(
            pick("没有变化：不注入任何内容。", "Nothing has changed: nothing is injected."),
            pick("继续", "continue"),
        )?;
        self.now += 2 * 60_000;
        self.prompt(
            pick(
                "两分钟后仍没有日志：注入提醒。",
                "Two minutes later there is no log entry yet: a reminder is injected.",
            ),
            pick("进展如何？", "how is it going?"),
        )?;
        self.cli(
            pick("用户添加一条规则。", "The user adds a rule."),
            &[
                "workspace",
                "update",
                "--add-rule",
                pick("token 有效期不超过一小时", "Tokens expire after one hour at most"),
            ],
        )?;
        self.prompt(
            pick(
                "上下文有变化：告知变化的部分。",
                "The context has changed: the session is told what changed.",
            ),
            pick("继续", "continue"),
        )?;
        let conclusion = pick("已完成，测试通过", "Done, tests pass");
        for (at, task) in tasks.iter().enumerate() {
            self.now += 60_000;
            if at > 0 {
                self.cli("", &["node", "transition", task, "--action", "start", "--session", SESSION])?;
            }
            let description = if at > 0 {
                pick(
                    "完成第二个执行节点：命令的结果给出下一步提醒。",
                    "Complete the second node: the result contains a reminder of the next step.",
                )
            } else {
                pick("完成第一个执行节点。", "Complete the first execution node.")
            };
            self.cli(
                description,
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
        self.cli(pick("查看任务树。", "Show the tree."), &["tree"])?;
        self.cli(
            pick("保存一条事实。", "Save a fact."),
            &[
                "memory",
                "save-fact",
                pick("决定使用 JWT，有效期一小时", "Decided to use JWT with an expiry of one hour"),
                "--type",
                "B",
            ],
        )?;
        self.now += DAY;
        self.hook(
            pick(
                "第二天，另一个会话开始：注入这条事实。",
                "The next day, another session starts: the fact is injected.",
            ),
            "demo-0002",
            None,
        )?;
        self.cli(pick("账本记录了每一次注入。", "The ledger has a record of every injection."), &["ledger"])
    }

    fn start(&mut self, description: &str) -> Result {
        self.hook(description, SESSION, None)
    }

    fn prompt(&mut self, description: &str, prompt: &str) -> Result {
        self.now += 1000;
        self.hook(description, SESSION, Some(prompt))
    }

    /// Runs the hook of a prompt, or of a session start without one.
    fn hook(&mut self, description: &str, session: &str, prompt: Option<&str>) -> Result {
        let payload = tanmi_platform::demo_payload(session, &self.folder.dir.join("project"), prompt);
        let shown = prompt.map_or(String::from("SessionStart"), |prompt| format!("“{prompt}”"));
        let mut command = self.folder.command(self.now, &["hook", DEFAULT_CLIENT.id()])?;
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(Error::io("tanmi"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(payload.to_string().as_bytes()).map_err(Error::io("tanmi hook"))?;
        }
        let output = child.wait_with_output().map_err(Error::io("tanmi hook"))?;
        let injected = Some(tanmi_platform::injected_text(&output.stdout).unwrap_or_default());
        self.show(Scene { description: description.to_owned(), command: shown, injected }, "");
        Ok(())
    }

    fn cli(&mut self, description: &str, args: &[&str]) -> Result {
        let printed = self.run(args)?;
        self.show(
            Scene { description: description.to_owned(), command: shell_command(args), injected: None },
            &printed,
        );
        Ok(())
    }

    /// Runs a command that creates something, and returns the id at the end of the first line of its output.
    fn create(&mut self, description: &str, args: &[&str]) -> Result<String> {
        let printed = self.run(args)?;
        let first = printed.lines().next().unwrap_or_default().to_owned();
        let id = first.rsplit(' ').next().unwrap_or_default().to_owned();
        self.show(
            Scene { description: description.to_owned(), command: shell_command(args), injected: None },
            &first,
        );
        Ok(id)
    }

    fn run(&self, args: &[&str]) -> Result<String> {
        let output = self.folder.command(self.now, args)?.output().map_err(Error::io("tanmi"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::io("tanmi demo")(std::io::Error::other(reason)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn show(&mut self, scene: Scene, printed: &str) {
        if self.prints {
            let mut text = String::new();
            if !scene.description.is_empty() {
                text.push_str(&format!("\n{}\n", paint(out::BOLD, &scene.description)));
            }
            text.push_str(&format!("  {}\n", paint(out::DIM, &scene.command)));
            for line in printed.lines() {
                text.push_str(&format!("  {line}\n"));
            }
            match scene.injected.as_deref() {
                None => {}
                Some("") => {
                    let nothing = self.lang.pick("（没有注入）", "(nothing injected)");
                    text.push_str(&format!("  {}\n", paint(out::DIM, nothing)));
                }
                Some(injected) => text.push_str(&show::rules::quoted(injected)),
            }
            out::text(&text);
        }
        self.scenes.push(scene);
    }
}

/// Returns the command as the user would type it in a shell.
fn shell_command(args: &[&str]) -> String {
    let quoted = args.iter().map(|arg| {
        let is_plain =
            !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
        if is_plain { (*arg).to_owned() } else { format!("'{}'", arg.replace('\'', "'\\''")) }
    });
    format!("$ tanmi {}", quoted.collect::<Vec<_>>().join(" "))
}
