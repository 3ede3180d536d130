//! The examples run to their ends, and print what their snapshots say.

use crate::command::{REPOSITORY, finish, shipped};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// The folder of the built examples, all of them as new as their sources.
///
/// `cargo test` builds examples, unless it is told which tests to run; they are built here then.
static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let folder = profile.join("examples");
    let stale = || names().into_iter().find(|name| is_stale(&folder, name));
    if stale().is_some() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package=tine", "--examples", "--offline"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let built = finish(cargo.current_dir(REPOSITORY));
        assert_eq!(built.code, 0, "{}", built.stderr);
    }
    if let Some(name) = stale() {
        panic!("example `{name}` is not in {folder:?}, or older than its source: run `cargo test`");
    }
    folder
});

/// The examples, by the files that are there.
fn names() -> BTreeSet<String> {
    let files = std::fs::read_dir(shipped("examples")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let code =
        paths.filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "rs"));
    code.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// Whether an example is missing, or a source file that cargo made it of is newer.
fn is_stale(folder: &Path, name: &str) -> bool {
    let modified = |path: &Path| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
    let sources = std::fs::read_to_string(folder.join(format!("{name}.d"))).unwrap_or_default();
    let sources = sources.split_once(": ").map(|(_, sources)| sources);
    match (modified(&folder.join(name)), sources) {
        (Some(built), Some(sources)) => {
            let escaped = sources.trim_end().replace("\\ ", "\0");
            let mut paths = escaped.split(' ').map(|path| path.replace('\0', " "));
            paths.any(|path| modified(Path::new(&path)).is_none_or(|changed| changed > built))
        }
        _ => true,
    }
}

/// Runs an example, once with each of these arguments, and compares what it printed with its snapshot.
fn check(name: &str, runs: &[&[&str]]) {
    let mut printed = Vec::new();
    for args in runs {
        let ran = finish(Command::new(BUILT.join(name)).args(*args));
        assert_eq!(ran.code, 0, "{name} {args:?}\n{}", ran.stderr);
        assert_eq!(ran.stderr, "", "{name} {args:?}");
        printed.push(ran.stdout);
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("example_{name}"), printed.join("---\n"));
    });
}

#[test]
fn every_example_prints_what_its_snapshot_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.db");
    let (file, folder) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
    for name in names() {
        match name.as_str() {
            // The second process answers what the first asked; the third changes nothing.
            "durable_thread" => check(&name, &[&[file], &[file, "Ada"], &[file, "Bob"]]),
            "json_files" => check(&name, &[&[folder], &[folder]]),
            _ => check(&name, &[&[]]),
        }
    }
}
