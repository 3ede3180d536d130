//! What the compiler says to somebody who passes what is not a node, a router, a reducer, ...

use crate::command::shipped;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the libraries that this test is linked with.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// The library `tine`, as it was built last: together with this test.
fn tine() -> PathBuf {
    let files = std::fs::read_dir(libraries()).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let built = paths.filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("libtine-") && name.ends_with(".rlib")
    });
    let newest = built.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.expect("the library is in the folder of the test")
}

/// What the compiler that built this test says about a file.
fn compile(file: &str) -> Vec<Value> {
    let compiler = Path::new(env!("CARGO")).with_file_name("rustc");
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(compiler)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
        .args(["--error-format=json", "--out-dir"])
        .arg(folder.path())
        .arg(format!("-Ldependency={}", libraries().display()))
        .arg(format!("--extern=tine={}", tine().display()))
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

/// The line a message is about, what it says, and its notes about no other place.
fn shown(message: &Value) -> Option<String> {
    let line = message["spans"][0]["text"][0]["text"].as_str()?;
    let mut shown = format!("{}\n  {}\n", line.trim(), message["message"].as_str()?);
    for child in message["children"].as_array()? {
        let is_note = child["level"] == "note" && child["spans"][0].is_null();
        let text = child["message"].as_str()?;
        // What the compiler adds of its own is its own affair.
        if is_note && !text.starts_with("required for ") {
            let _ = writeln!(shown, "  {text}");
        }
    }
    Some(shown)
}

#[test]
fn the_compiler_names_the_trait_and_the_way_out() {
    let messages = compile(&shipped("tests/fixtures/not_implemented.rs"));
    let errors: Vec<String> = messages.iter().filter_map(shown).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("not_implemented", errors.join("\n"));
    });
}
