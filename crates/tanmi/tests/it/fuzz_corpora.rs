//! Runs the fuzz targets on their kept inputs (`fuzz/corpus/<target>/`).

#[path = "../../../../fuzz/lib.rs"]
mod fuzz;

use std::path::PathBuf;

#[test]
fn fuzz_corpus_inputs_pass() {
    let corpora = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, run_target) in fuzz::TARGETS {
        let mut count = 0;
        for entry in std::fs::read_dir(corpora.join(name)).unwrap().flatten() {
            let data = std::fs::read(entry.path()).unwrap();
            eprintln!("{}", entry.path().display());
            run_target(&data);
            count += 1;
        }
        assert!(count > 0, "{name} has no corpus");
    }
}
