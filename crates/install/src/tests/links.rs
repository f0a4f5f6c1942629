//! Symbolic links in a project.

use std::os::unix::fs::symlink;

use super::*;

/// Installs in the project and returns the link and the target of the refusal.
fn refusal(env: &TestEnv, client: &'static ClientSpec) -> (PathBuf, PathBuf) {
    let options = options("/t/tanmi");
    let plans = env.target_files(client, Scope::Project).into_iter();
    let plans = plans.map(|target| plan(target, &options)).collect();
    match apply(&env.home(), plans, &options, 1) {
        Err(Error::LeavesProject { link, to }) => (link, to),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the link was followed"),
    }
}

#[test]
fn install_link_that_leaves_project_writes_nothing() {
    for (id, link, to) in [
        ("codex", "AGENTS.md", ".bashrc"),
        ("claude-code", ".mcp.json", ".claude.json"),
        ("claude-code", ".claude/settings.json", ".claude/settings.json"),
        ("claude-code", ".claude/skills", ".claude"),
        ("cursor", ".cursor", ".cursor"),
        ("copilot-cli", ".github", ".github"),
    ] {
        let env = TestEnv::new();
        let (link, to) = (env.folders.project.join(link), env.folders.user.join(to));
        write(&env.folders.user.join(".bashrc"), "alias a=b\n");
        write(&env.folders.user.join(".claude.json"), "{}\n");
        for dir in [".claude", ".cursor", ".github"] {
            write(&env.folders.user.join(dir).join("settings.json"), "{}\n");
        }
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&to, &link).unwrap();
        let before = env.files();
        let refused = refusal(&env, find(id));
        assert_eq!(refused, (link.clone(), to.canonicalize().unwrap()), "{id}");
        assert_eq!(env.files(), before, "{id}: {}", link.display());
        assert!(!env.home().exists(), "{id}: not even a receipt");
        let found = inspect(find(id), Scope::Project, &env.folders);
        assert!(
            found.iter().any(|file| matches!(file.refusal, Some(Refusal::LeavesProject { .. }))),
            "{id}: the doctor reports the link"
        );
        assert!(found.iter().all(|file| file.hooks.is_empty()));
    }
}

#[test]
fn install_link_that_stays_in_project_is_followed() {
    let env = TestEnv::new();
    let project = &env.folders.project;
    write(&project.join("CLAUDE.md"), "# Mine\n");
    symlink("CLAUDE.md", project.join("AGENTS.md")).unwrap();
    write(&project.join("tools/codex/hooks.json"), "{}\n");
    symlink("tools/codex", project.join(".codex")).unwrap();
    let before = env.files();
    env.install(find("codex"), Scope::Project, "/t/tanmi");
    assert!(std::fs::read_to_string(project.join("CLAUDE.md")).unwrap().contains("tanmi:begin"));
    assert!(parsed(&project.join("tools/codex/hooks.json"))["hooks"].is_object());
    env.uninstall(find("codex"), Scope::Project);
    assert_eq!(env.files(), before);
}

#[test]
fn install_link_to_git_files_is_refused() {
    let env = TestEnv::new();
    let project = &env.folders.project;
    for dir in [".git", "sub/.git"] {
        write(&project.join(dir).join("config"), "[core]\n");
        symlink(format!("{dir}/config"), project.join("AGENTS.md")).unwrap();
        assert_eq!(refusal(&env, find("codex")).1, project.canonicalize().unwrap().join(dir).join("config"));
        std::fs::remove_file(project.join("AGENTS.md")).unwrap();
    }
}

/// The repository replaces a folder with a link after the installation.
#[test]
fn uninstall_link_that_leaves_project_changes_nothing() {
    let env = TestEnv::new();
    let client = find("cursor");
    env.install(client, Scope::User, "/t/tanmi");
    env.install(client, Scope::Project, "/t/tanmi");
    let folder = env.folders.project.join(".cursor");
    tanmi_base::fs::remove_tree(&folder).unwrap();
    symlink(env.folders.user.join(".cursor"), &folder).unwrap();
    let before = env.files();
    let receipts = Receipts::load(&env.home());
    let targets = target_files(client, Scope::Project, &env.folders, None).into_iter();
    let plans = targets.filter_map(|target| plan_removal(target, &receipts)).collect();
    assert!(matches!(remove(&env.home(), plans), Err(Error::LeavesProject { .. })));
    assert_eq!(env.files(), before);
}

/// Earlier versions followed every link. What they wrote can still be removed, but not the files of another scope.
#[test]
fn uninstall_link_followed_by_earlier_version_is_followed() {
    let env = TestEnv::new();
    let client = find("codex");
    let (real, link) = (env.dir.path().join("shared/AGENTS.md"), env.folders.project.join("AGENTS.md"));
    write(&real, "# Mine\n");
    symlink(&real, &link).unwrap();
    let options = options("/t/tanmi");
    let target = env.target_files(client, Scope::Project).into_iter().find(|t| t.path == link).unwrap();
    let user_scope = TargetFile { project: None, scope: Scope::User, ..target.clone() };
    let planned = plan(user_scope.clone(), &options);
    apply(&env.home(), vec![planned], &options, 1).unwrap();
    assert!(plan_removal(target.clone(), &Receipts::load(&env.home())).is_none(), "written for the user");
    let receipts = env.home().join("install/receipts.json");
    let mut file = parsed(&receipts);
    let key = real.canonicalize().unwrap();
    file["files"][key.to_str().unwrap()]["project"] = env.folders.project.to_str().unwrap().into();
    write(&receipts, file.to_string());
    env.uninstall(client, Scope::Project);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "# Mine\n");
}
