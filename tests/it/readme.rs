//! What the README shows is what the commands print.

use crate::command::{Desk, finish, shipped};
use regex::Regex;
use std::path::{Path, PathBuf};

/// The commands of the `console` blocks, each with the output shown below it.
fn transcripts(text: &str) -> Vec<(Vec<String>, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            found.push((shlex::split(command).unwrap(), String::new()));
        } else if inside {
            let (_, shown) = found.last_mut().unwrap();
            shown.push_str(line);
            shown.push('\n');
        }
    }
    found
}

/// The arguments of `tine`, for a command that runs it.
fn arguments(command: &[String]) -> Option<&[String]> {
    let cargo = ["cargo", "run", "--release", "--"];
    match command {
        [tine, rest @ ..] if tine == "tine" => Some(rest),
        _ if command.len() > 4 && command[..4] == cargo => Some(&command[4..]),
        _ => None,
    }
}

/// Ids of runs and made-up names of threads differ from run to run.
fn settled(text: &str) -> String {
    let id = Regex::new(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let thread = Regex::new(r"\b[a-z]+-[a-z]+-[0-9a-f]{4}\b").unwrap();
    let text = id.replace_all(text.trim_end(), "<id>");
    thread.replace_all(&text, "<thread>").into_owned()
}

#[test]
fn the_commands_of_the_readme_print_what_it_shows() {
    let desk = Desk::new();
    for folder in ["graphs", "config"] {
        std::os::unix::fs::symlink(shipped(folder), desk.path().join(folder)).unwrap();
    }
    let readme = std::fs::read_to_string(shipped("README.md")).unwrap();
    let mut status = 0;
    let mut ran = 0;
    for (command, shown) in transcripts(&readme) {
        if command == ["echo", "$?"] {
            assert_eq!(shown.trim(), status.to_string());
        } else if let Some(args) = arguments(&command) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            // Threads in the working directory, as for a reader.
            let printed = finish(desk.command(&args).env_remove("TINE_HOME"));
            assert_eq!(printed.stderr, "", "{command:?}");
            assert_eq!(settled(&printed.stdout), settled(&shown), "{command:?}");
            status = printed.code;
            ran += 1;
        }
    }
    assert_eq!(ran, 4, "commands of the README that run tine");
}

/// Whether a document has code that doctests compile: blocks of Rust, or of no language.
fn has_rust(text: &str) -> bool {
    let mut fences = text.lines().filter(|line| line.starts_with("```"));
    let mut any = false;
    while let Some(opening) = fences.next() {
        any |= matches!(opening, "```" | "```rust");
        fences.next();
    }
    any
}

#[test]
fn the_rust_of_every_readme_is_compiled() {
    let crates = std::fs::read_dir(shipped("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path());
    let of_crate = |folder: &Path| (folder.join("README.md"), folder.join("src/lib.rs"));
    let mut pages: Vec<(PathBuf, PathBuf)> = crates.map(|folder| of_crate(&folder)).collect();
    pages.push((
        shipped("README.md").into(),
        shipped("crates/tine/lib.rs").into(),
    ));
    let mut compiled = 0;
    for (readme, library) in pages {
        let Ok(text) = std::fs::read_to_string(&readme) else {
            continue;
        };
        let library = std::fs::read_to_string(library).unwrap();
        let is_included = library.contains("/README.md\")]");
        assert_eq!(is_included, has_rust(&text), "{}", readme.display());
        compiled += u32::from(is_included);
    }
    assert!(
        compiled >= 2,
        "the README of the repository and that of the engine have code"
    );
    for other in ["graphs", "config", "tests", "benches", "examples"] {
        let text = std::fs::read_to_string(shipped(&format!("{other}/README.md"))).unwrap();
        assert!(
            !has_rust(&text),
            "nobody compiles the code of {other}/README.md"
        );
    }
}

/// The graph files among the `yaml` blocks.
fn graph_files(text: &str) -> Vec<&str> {
    let blocks = text.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| block.starts_with("schema: graph/"))
        .collect()
}

#[test]
fn the_graph_files_of_the_docs_have_no_findings() {
    let desk = Desk::new();
    for (document, count) in [("README.md", 1), ("graphs/README.md", 1)] {
        let text = std::fs::read_to_string(shipped(document)).unwrap();
        let files = graph_files(&text);
        assert_eq!(files.len(), count, "graph files in {document}");
        for text in files {
            let file = desk.file("graph.yaml", text);
            let ran = desk.run(&["validate", "--deny-warnings", &file]);
            assert_eq!(ran.code, 0, "{document}\n{}{}", ran.stdout, ran.stderr);
        }
    }
}
