use super::*;

struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Scratch {
        let scratch = Scratch { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(scratch.project().join("src")).unwrap();
        scratch
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.project().join(path);
        let dir = path.parent().unwrap();
        fs::write_atomic(&path, bytes, dir, fs::Durability::Journaled).unwrap();
    }

    fn record(&self, named: &[&str], content: &str) -> Result<Vec<String>, PathProblem> {
        let named: Vec<String> = named.iter().map(|path| (*path).to_owned()).collect();
        let anchors = Anchors::record(&self.project(), &named, content).map_err(|(_, problem)| problem)?;
        Ok(anchors.files.into_iter().map(|file| file.path).collect())
    }
}

/// The named paths, the text, and the expected files.
type Case<'a> = (&'a [&'a str], &'a str, Result<&'a [&'a str], PathProblem>);

#[test]
fn record_finds_files_of_the_project_and_refuses_others() {
    let scratch = Scratch::new();
    scratch.put("src/auth.rs", b"fn a() {}");
    scratch.put("Makefile.toml", b"x");
    let inside = scratch.project().join("src/auth.rs").display().to_string();
    let cases: &[Case<'_>] = &[
        (&[], "Tokens are checked in `src/auth.rs`.", Ok(&["src/auth.rs"])),
        (&[], "见 src/auth.rs，以及 Makefile.toml。", Ok(&["src/auth.rs", "Makefile.toml"])),
        (&[], "nothing here: 1.5 e.g. src/none.rs ../x /etc/passwd", Ok(&[])),
        (&["./src/auth.rs"], "src/auth.rs", Ok(&["src/auth.rs"])),
        (&[&inside], "", Ok(&["src/auth.rs"])),
        (&["src/none.rs"], "", Err(PathProblem::Missing)),
        (&["src"], "", Err(PathProblem::Missing)),
        (&["../secret"], "", Err(PathProblem::Outside)),
        (&["/etc/passwd"], "", Err(PathProblem::Outside)),
        (&["/nowhere/at/all"], "", Err(PathProblem::Outside)),
    ];
    for (named, content, want) in cases {
        let want = want.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
        assert_eq!(scratch.record(named, content), want, "{named:?} {content}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", scratch.project().join("link")).unwrap();
        assert_eq!(scratch.record(&["link/passwd"], ""), Err(PathProblem::Outside));
        assert_eq!(scratch.record(&[], "link/passwd"), Ok(Vec::new()));
    }
}

#[test]
fn record_many_files_keeps_the_limit() {
    let scratch = Scratch::new();
    let mut text = String::new();
    for n in 0..1000 {
        scratch.put(&format!("src/f{n}.rs"), b"x");
        text.push_str(&format!("src/f{n}.rs "));
    }
    assert_eq!(scratch.record(&[], &text).unwrap().len(), MAX_FOUND);
    let named: Vec<String> = (0..1000).map(|n| format!("src/f{n}.rs")).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(scratch.record(&named, "").unwrap().len(), MAX_FILES);
}

#[test]
fn state_follows_the_content_of_the_file() {
    let scratch = Scratch::new();
    scratch.put("src/auth.rs", b"fn a() {}");
    let project = scratch.project();
    let file = record_file(&project, "src/auth.rs").unwrap();
    assert_eq!(file.state(&project), FileState::Same);
    scratch.put("src/auth.rs", b"fn b() {}");
    assert_eq!(file.state(&project), FileState::Changed);
    scratch.put("src/auth.rs", b"fn a() {}");
    assert_eq!(file.state(&project), FileState::Same, "another time, the same content");
    std::fs::remove_file(project.join("src/auth.rs")).unwrap();
    assert_eq!(file.state(&project), FileState::Gone);
    scratch.put("large", &vec![b'x'; (MAX_BYTES + 1) as usize]);
    let large = record_file(&project, "large").unwrap();
    assert_eq!((large.digest.as_str(), large.state(&project)), ("", FileState::Same));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", project.join("src/auth.rs")).unwrap();
        assert_eq!(file.state(&project), FileState::Gone, "a link out of the project");
    }
}

#[test]
fn of_fields_leaves_out_malformed_entries() {
    let fields = |files: Value| {
        let fields = json!({"files": files, "commit": "c"});
        Anchors::of_fields(fields.as_object().unwrap()).files.len()
    };
    assert_eq!(
        fields(json!([{"path": "a.rs"}, {"path": "b/c.rs", "digest": "d", "size": 1, "mtime": 2}])),
        2
    );
    for bad in [
        json!(7),
        json!("a"),
        json!([7, {}, {"path": "/etc"}, {"path": "../x"}, {"path": ""}, {"path": "a\nb"}]),
    ] {
        assert_eq!(fields(bad), 0);
    }
    let many: Vec<Value> = (0..1000).map(|n| json!({"path": format!("f{n}")})).collect();
    assert_eq!(fields(json!(many)), MAX_FILES);
}
