//! Checks of the home store: who can access it, and files in it that cannot be parsed.

use std::path::Path;

use tanmi_base::{Lang, fs, paths};
use tanmi_session::Binding;
use tanmi_workspace::model::WorkspaceId;

use super::files::{find_unusable, open_to_others, restrict};
use super::{Doctor, Health};
use crate::{Error, Result, trust};

impl Doctor<'_> {
    pub(super) fn home(&mut self) {
        self.permissions();
        self.damaged_trust();
        self.kept_files();
    }

    /// Checks that only the owner can access the home store.
    fn permissions(&mut self) {
        let home = self.core.home().to_owned();
        if self.access("home", &home) {
            return;
        }
        let open = open_to_others(&home);
        if !home.is_dir() {
            self.report_fine("home", "主目录存储：尚未创建".into(), "home store: not created yet".into());
            return;
        }
        if open.is_empty() {
            let shown = home.display();
            self.report_fine(
                "home",
                format!("主目录存储：{shown} 仅所有者可访问"),
                format!("home store: only the owner can access {shown}"),
            );
            return;
        }
        let (zh, en) = (
            format!("主目录存储：{} 中有 {} 个文件或文件夹可被其他用户访问", home.display(), open.len()),
            format!("home store: {} is accessible to other users (paths: {})", home.display(), open.len()),
        );
        self.repair("home", zh, en, || {
            for path in &open {
                restrict(path).map_err(crate::Error::io(path))?;
            }
            Ok(())
        });
    }

    /// Reports what the user may not read or write in the project store. A file is enough to make writes fail.
    pub(super) fn project_access(&mut self) {
        let store = paths::project_store(self.core.folder());
        self.access("project", &store);
    }

    /// Reports files and folders of a store that the user may not use. Returns whether there are any.
    fn access(&mut self, check: &'static str, store: &Path) -> bool {
        let found = find_unusable(store);
        let Some(first) = found.first().map(|path| path.display()) else { return false };
        let count = found.len();
        let (zh, en) = (
            format!("权限：你无法读写 {first}（共 {count} 处）"),
            format!("permissions: you cannot read or write {first} (paths: {count})"),
        );
        self.report(check, Health::ByHand, zh, en);
        let (zh, en) = tanmi_workspace::error::access_hint(&found[0]);
        self.advise(&zh, &en);
        true
    }

    /// Reports a `trust.json` that cannot be read. Without it, no project is trusted.
    fn damaged_trust(&mut self) {
        let Some(error) = self.core.trust().damage() else { return };
        let is_damaged = matches!(error, Error::BadFile { .. });
        let (zh, en) = (error.message(Lang::Zh), error.message(Lang::En));
        if !is_damaged {
            return self.report_error("trust", Err(error));
        }
        let (zh, en) = (
            format!("信任：{zh}；没有项目被信任；--fix 会将它改名保留"),
            format!("trust: {en}; no project is trusted; --fix renames it"),
        );
        self.repair("trust", zh, en, || self.core.trust().set_aside());
    }

    /// Reports damaged files that were set aside, until the user deletes them.
    fn kept_files(&mut self) {
        for path in self.core.stores.bindings.set_aside() {
            let path = path.display();
            let (zh, en) = (
                format!("绑定：{path} 是无法解析的旧绑定"),
                format!("bindings: {path} has earlier bindings that could not be parsed"),
            );
            self.report("bindings", Health::Note, zh, en);
            self.advise(
                "用 tanmi session bind 重新绑定会话，或把需要的条目抄入 session-bindings.json，然后删除该文件",
                "bind the sessions again with tanmi session bind, or copy entries into session-bindings.json, \
                 then delete the file",
            );
        }
        for path in fs::find_set_aside(&self.core.home().join(trust::TRUST_FILE)) {
            let path = path.display();
            let (zh, en) = (
                format!("信任：{path} 是无法解析的旧记录"),
                format!("trust: {path} has earlier consent that could not be parsed"),
            );
            self.report("trust", Health::Note, zh, en);
            self.advise(
                "在你信任的项目中运行 tanmi trust，然后删除该文件",
                "run tanmi trust in the projects that you trust, then delete the file",
            );
        }
    }

    pub(super) fn bindings(&mut self) -> Result<()> {
        let (bindings, projects) = (&self.core.stores.bindings, &self.core.stores.projects);
        let is_damaged = bindings.is_damaged()?;
        if is_damaged {
            let (zh, en) = (
                "绑定：session-bindings.json 已损坏；--fix 会将它改名保留",
                "bindings: session-bindings.json is damaged; --fix renames it and starts a new one",
            );
            self.repair("bindings", zh.into(), en.into(), || Ok(bindings.repair().map(|_| ())?));
        }
        let all = bindings.all()?;
        let is_stale = |binding: &Binding| {
            let workspaces = projects.in_folder(&binding.project);
            let exists = || {
                WorkspaceId::parse(&binding.workspace_id)
                    .is_ok_and(|id| workspaces.workspaces().exists(&id).unwrap_or(true))
            };
            // A project that was moved or is on a disk that is not mounted may come back, also while we look.
            binding.project.is_dir() && !exists() && binding.project.is_dir()
        };
        let stale = all.iter().filter(|(_, binding)| is_stale(binding)).count();
        if stale > 0 {
            let (zh, en) = (
                format!("绑定：{stale} 个会话绑定的工作区已不存在"),
                format!("bindings: {stale} bound to workspaces that no longer exist"),
            );
            self.repair("bindings", zh, en, || {
                Ok(bindings.prune(&|_, binding| is_stale(binding)).map(|_| ())?)
            });
        } else if !is_damaged {
            let count = all.len();
            self.report_fine(
                "bindings",
                format!("绑定：没有损坏（会话：{count}）"),
                format!("bindings: no damage (sessions: {count})"),
            );
        }
        Ok(())
    }
}
