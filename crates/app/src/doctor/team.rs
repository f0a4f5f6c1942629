//! Checks of a project that a team server keeps: whether the server answers, the clocks, the token, and what
//! waits here.

use std::time::Duration;

use tanmi_base::clock::{self, DAY};
use tanmi_base::{Interface, Millis, text};
use tanmi_team::{OutboxCounts, Presence, TeamWorkspaces};

use super::{Doctor, Health};

/// How long the server may take to answer.
const DEADLINE: Duration = Duration::from_secs(3);
/// A clock that differs by less is right.
const MAX_SKEW: Millis = 60_000;
/// How long before its end a token is reported.
const TOKEN_ENDS_SOON: Millis = 14 * DAY;
/// A replica that had no contact for longer is reported.
const MAX_AGE: Millis = DAY;

impl Doctor<'_> {
    /// Checks the server of the project, if a team server keeps it.
    pub(super) fn team(&mut self) {
        let project = self.core.project.clone();
        let Some(team) = project.team() else { return };
        let (server, now) = (text::one_line(team.connection().server()), self.core.now());
        match team.connection().probe(DEADLINE) {
            Ok(beat) => {
                let presence = Presence::of_beat(beat, now);
                self.server(&server, &presence);
                self.clock(presence.skew);
                self.token(&presence, now);
            }
            Err(error) => {
                let error = error.into_store_error(&server);
                let message = error.message(self.lang);
                self.report("team", Health::ByHand, message.clone(), message);
                if let Some(hint) = error.hint(self.lang, Interface::CommandLine) {
                    self.advise(&hint, &hint);
                }
                self.age(team, now);
            }
        }
        self.failing(team);
        self.outbox(team);
    }

    /// Reports the workspaces of the replica that cannot be brought up to date.
    fn failing(&mut self, team: &TeamWorkspaces) {
        for (workspace, reason) in team.connection().state().failing {
            let (workspace, reason) = (text::one_line(&workspace), text::one_line(&reason));
            self.report(
                "team",
                Health::ByHand,
                format!("团队：本机副本中的 {workspace} 无法更新：{reason}"),
                format!("team: {workspace} in the replica on this machine cannot be updated: {reason}"),
            );
            self.advise("排除原因后运行 tanmi team sync", "remove the cause, then run tanmi team sync");
        }
    }

    fn server(&mut self, server: &str, presence: &Presence) {
        let (program, schema) = (text::one_line(&presence.program), presence.schema);
        self.report_fine(
            "team",
            format!("团队：{server} 有应答（版本 {program}，数据库结构 {schema}）"),
            format!("team: {server} answers (version {program}, schema {schema})"),
        );
        let own = env!("CARGO_PKG_VERSION");
        if !program.is_empty() && program != own {
            self.report(
                "team",
                Health::Note,
                format!("团队：服务器的版本是 {program}，本机是 {own}"),
                format!("team: the server has version {program}, this machine {own}"),
            );
        }
    }

    fn clock(&mut self, skew: Millis) {
        if skew.abs() <= MAX_SKEW {
            return;
        }
        let seconds = skew.abs() / 1000;
        let (zh, en) = if skew > 0 { ("慢", "behind") } else { ("快", "ahead of") };
        self.report(
            "team",
            Health::ByHand,
            format!("团队：本机时钟比服务器{zh} {seconds} 秒"),
            format!("team: the clock of this machine is {seconds} s {en} the server"),
        );
        self.advise(
            "校正本机时钟；认领按服务器的时钟计算",
            "set the clock; claims follow the one of the server",
        );
    }

    fn token(&mut self, presence: &Presence, now: Millis) {
        let ends = presence.token_expires_at.map(|at| at - presence.skew);
        let Some(ends) = ends.filter(|ends| ends - now < TOKEN_ENDS_SOON) else { return };
        let at = clock::local_stamp(ends);
        self.report(
            "team",
            Health::ByHand,
            format!("团队：令牌将于 {at} 失效"),
            format!("team: the token expires at {at}"),
        );
        self.advise(
            "向管理员要新令牌，然后再次运行 tanmi team join",
            "ask an admin for a new token, then run tanmi team join again",
        );
    }

    /// Reports what waits for the server, and what it refused.
    fn outbox(&mut self, team: &TeamWorkspaces) {
        let OutboxCounts { queued, undelivered } = team.memory().outbox().counts();
        if queued > 0 {
            self.report(
                "team",
                Health::Note,
                format!("团队：{queued} 条写入等待发送"),
                format!("team: writes that wait for the server: {queued}"),
            );
            self.advise("tanmi team sync", "tanmi team sync");
        }
        if undelivered > 0 {
            self.report(
                "team",
                Health::ByHand,
                format!("团队：服务器拒绝了 {undelivered} 条写入"),
                format!("team: writes that the server refused: {undelivered}"),
            );
            self.advise("tanmi team outbox list", "tanmi team outbox list");
        }
    }

    /// Reports how old the replica is, when the server does not answer.
    fn age(&mut self, team: &TeamWorkspaces, now: Millis) {
        let contact = team.connection().state().contact_at;
        let (health, (zh, en)) = match contact {
            None => (
                Health::ByHand,
                (String::from("团队：从未连上服务器"), String::from("team: the server was never reached")),
            ),
            Some(at) => {
                let health = if now - at > MAX_AGE { Health::ByHand } else { Health::Note };
                let at = clock::local_stamp(at);
                let texts = (
                    format!("团队：本机副本截至 {at}"),
                    format!("team: the replica on this machine is as of {at}"),
                );
                (health, texts)
            }
        };
        self.report("team", health, zh, en);
        self.advise("服务器恢复后运行 tanmi team sync", "run tanmi team sync when the server is back");
    }
}
