//! Maintenance: health checks, repairs, and messages about recoveries. Only stores in files on this machine need it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_base::Lang;
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::CheckReport;

use crate::core::{Core, WorkspaceRef};
use crate::doctor::{self, CheckResult};
use crate::error::Result;
use crate::memory::MemoryService;
use crate::pipeline;
use crate::rules::RuleService;
use crate::watch::Watcher;

/// The use cases for maintenance.
#[derive(Clone)]
pub struct MaintenanceService {
    core: Arc<Core>,
    rules: RuleService,
    memory: MemoryService,
}

impl MaintenanceService {
    pub(crate) fn new(core: Arc<Core>, rules: RuleService, memory: MemoryService) -> MaintenanceService {
        MaintenanceService { core, rules, memory }
    }

    /// Runs all checks. With `fix`, repairs what needs no decision by the user.
    pub fn run_checks(&self, fix: bool) -> Vec<CheckResult> {
        doctor::run_checks(&self.core, &self.rules, &self.memory, fix)
    }

    /// Checks the files of one workspace. Workspaces that are not kept in files here have nothing to check.
    pub fn check_workspace(&self, ws: &WorkspaceRef, repair: bool) -> Result<(WorkspaceId, CheckReport)> {
        let report = match ws.project.maintenance() {
            Some(local) => local.check(&ws.id, repair, self.core.now())?,
            None => CheckReport::default(),
        };
        Ok((ws.id.clone(), report))
    }

    /// Returns the folders of this project and of all other known projects.
    pub fn known_projects(&self) -> Vec<PathBuf> {
        let others = self.core.stores.projects.all().unwrap_or_default();
        let own = &self.core.project;
        let others = others.iter().filter(|project| project.id() != own.id());
        let others = others.map(|project| project.checkout());
        std::iter::once(own.checkout()).chain(others).map(Path::to_owned).collect()
    }

    /// Starts watching these projects. The current state is the baseline, so existing data is not reported as changed.
    pub fn watch(&self, projects: &[PathBuf]) -> Watcher {
        Watcher::new(self.core.clone(), projects)
    }

    /// Takes the messages about kept copies and damaged journals that recovery produced since the last call, and about
    /// damaged bindings. The caller shows them to the user.
    pub fn take_notices(&self, lang: Lang) -> Vec<String> {
        let mut notices = Vec::new();
        for kept in self.core.stores.bindings.take_set_aside() {
            let kept = kept.display();
            notices.push(lang.pick(
                format!("无法解析 session-bindings.json，其中的绑定不再有效；它保留在 {kept}，见 `tanmi doctor`"),
                format!(
                    "session-bindings.json could not be parsed, so its bindings are lost; it is kept in {kept}, \
                     see `tanmi doctor`"
                ),
            ));
        }
        for project in self.core.stores.projects.opened() {
            let recoveries = project.maintenance().map(|local| local.take_recoveries()).unwrap_or_default();
            for (id, recovery) in recoveries {
                for (path, kept_copy) in recovery.kept {
                    let kept_copy = kept_copy.display();
                    notices.push(lang.pick(
                        format!("{id}：{path} 已被手动修改，没有覆盖；Tanmi 的版本保留在 {kept_copy}"),
                        format!(
                            "{id}: {path} was edited by hand and was not overwritten; the version of Tanmi is kept in {kept_copy}"
                        ),
                    ));
                }
                for (path, kept_copy) in recovery.displaced {
                    let kept_copy = kept_copy.display();
                    notices.push(lang.pick(
                        format!("{id}：{path} 被同时写入两次；被替换的版本保留在 {kept_copy}"),
                        format!(
                            "{id}: {path} was written twice at the same time; the replaced version is kept in {kept_copy}"
                        ),
                    ));
                }
                if let Some(kept_copy) = recovery.damaged {
                    let kept_copy = kept_copy.display();
                    notices.push(lang.pick(
                        format!("{id}：重做日志已损坏；无法读取的部分保留在 {kept_copy}"),
                        format!("{id}: the journal was damaged; the unreadable part is kept in {kept_copy}"),
                    ));
                }
            }
        }
        notices
    }

    /// Writes the notices to the log in the home store. For a server, which cannot show them to a user.
    pub fn log_notices(&self) {
        for notice in self.take_notices(Lang::En) {
            pipeline::write_log(self.core.home(), self.core.now(), &notice);
        }
    }
}
