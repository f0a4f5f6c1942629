//! The errors of `tanmi team` on a machine.

use std::path::PathBuf;

use super::{Texts, texts};

/// Why a command about the team of a project was refused.
#[derive(Debug)]
pub enum TeamProblem {
    /// A project with data of its own cannot join: the data would be out of sight.
    HasLocalData {
        project: PathBuf,
    },
    /// The folder belongs to another project of a team.
    AlreadyJoined {
        server: String,
        project: String,
    },
    NotJoined {
        project: PathBuf,
    },
    /// Writes wait for the server.
    OutboxNotEmpty {
        count: usize,
    },
    /// The server has other documents of a workspace than those that were sent.
    NotEqual {
        workspace: String,
    },
    /// Another program changed the files of a workspace after they were sent to the server.
    ChangedSince {
        workspace: String,
    },
    /// The project joined or left a team since this process opened it.
    Changed {
        project: PathBuf,
        is_joined: bool,
    },
}

impl TeamProblem {
    pub fn code(&self) -> &'static str {
        match self {
            TeamProblem::HasLocalData { .. } => "LOCAL_DATA",
            TeamProblem::AlreadyJoined { .. } => "ALREADY_JOINED",
            TeamProblem::NotJoined { .. } => "NOT_JOINED",
            TeamProblem::OutboxNotEmpty { .. } => "OUTBOX_NOT_EMPTY",
            TeamProblem::NotEqual { .. } | TeamProblem::ChangedSince { .. } => "NOT_EQUAL",
            TeamProblem::Changed { .. } => "TEAM_CHANGED",
        }
    }

    pub(super) fn message(&self) -> Texts {
        match self {
            TeamProblem::HasLocalData { project } => (
                format!("{} 已有本地的工作区或记忆", project.display()),
                format!("{} has workspaces or memory of its own", project.display()),
            ),
            TeamProblem::AlreadyJoined { server, project } => (
                format!("此文件夹已加入 {server} 的项目 {project}"),
                format!("this folder has joined the project {project} on {server}"),
            ),
            TeamProblem::NotJoined { project } => (
                format!("{} 没有加入团队", project.display()),
                format!("{} has not joined a team", project.display()),
            ),
            TeamProblem::OutboxNotEmpty { count } => {
                (format!("有 {count} 个写入尚未送达服务器"), format!("{count} writes wait for the server"))
            }
            TeamProblem::NotEqual { workspace } => (
                format!("服务器上的 {workspace} 与本地文件不同；没有移走任何内容"),
                format!("{workspace} on the server differs from the local files; nothing was moved away"),
            ),
            TeamProblem::ChangedSince { workspace } => (
                format!("{workspace} 的本地文件在发送到服务器之后又有改动；它们保留在原处"),
                format!(
                    "the local files of {workspace} were changed after they were sent to the server; they stay in place"
                ),
            ),
            TeamProblem::Changed { project, is_joined: true } => (
                format!("{} 在此程序启动之后加入了团队；没有任何改动", project.display()),
                format!(
                    "{} joined a team since this program started; nothing was changed",
                    project.display()
                ),
            ),
            TeamProblem::Changed { project, is_joined: false } => (
                format!("{} 在此程序启动之后离开了团队；没有任何改动", project.display()),
                format!(
                    "{} left its team since this program started; nothing was changed",
                    project.display()
                ),
            ),
        }
    }

    pub(super) fn hint(&self) -> Texts {
        match self {
            TeamProblem::HasLocalData { .. } => texts(
                "用 `tanmi team push` 加入并把它们移到服务器",
                "join and move them to the server with `tanmi team push`",
            ),
            TeamProblem::AlreadyJoined { .. } => {
                texts("先运行 `tanmi team leave`", "run `tanmi team leave` first")
            }
            TeamProblem::NotJoined { .. } => {
                texts("用 `tanmi team join URL` 加入", "join one with `tanmi team join URL`")
            }
            TeamProblem::OutboxNotEmpty { .. } => texts(
                "用 `tanmi team sync` 送达，或加上 `--discard` 放弃它们",
                "deliver them with `tanmi team sync`, or drop them with `--discard`",
            ),
            TeamProblem::NotEqual { .. } => texts(
                "没有会话写入时再次运行 `tanmi team push`",
                "run `tanmi team push` again while no session writes",
            ),
            TeamProblem::ChangedSince { .. } => texts(
                "把该工作区的文件夹从 .tanmi-workspace 移到别处，再次运行 `tanmi team push`，然后用命令重做这些改动",
                "move the folder of the workspace out of .tanmi-workspace, run `tanmi team push` again, and then make the changes again with commands",
            ),
            TeamProblem::Changed { .. } => texts("重启它，然后重试", "restart it, then repeat the command"),
        }
    }
}
