//! Running outside a checkout: the graphs that ship with the program, and where a configuration is looked for.

use crate::command::{Desk, Ran, finish, news_report, shipped};
use std::path::{Path, PathBuf};

/// The folder that the files that ship were unpacked in.
fn unpacked(desk: &Desk) -> PathBuf {
    let entries = std::fs::read_dir(desk.home().join("shipped")).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.extension().is_none());
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(std::fs::copy(path, to).unwrap()),
        }
    }
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(inner) = open.pop() {
        for entry in std::fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => found.push((
                    path.strip_prefix(folder).unwrap().to_owned(),
                    std::fs::read(&path).unwrap(),
                )),
            }
        }
    }
    found.sort();
    found
}

fn done(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_graph_that_ships_is_run_in_an_empty_folder() {
    let mut desk = Desk::new();
    let ran = desk.tine(&["run", "news_report", "find tea", "--thread", "tea"]);
    done(&ran);
    assert_eq!(
        ran.stderr,
        "note: graph and configuration are the ones that ship with tine\n"
    );
    assert!(ran.stdout.contains("done after 7 steps"), "{}", ran.stdout);
    let report = "threads/local/tea/user-data/outputs/tea.md";
    assert!(desk.home().join(report).is_file());
    for folder in ["graphs", "config"] {
        assert_eq!(
            files(&unpacked(&desk).join(folder)),
            files(shipped(folder).as_ref()),
            "what is in the program is what is in {folder}"
        );
    }
    // A file goes before a name, and a name is not guessed.
    desk.file("react", "no graph");
    desk.record_bare(&["run", "react", "x"]);
    desk.record_bare(&["run", "news_reprot", "x"]);
    desk.record_bare(&["run", "something", "x"]);
    desk.assert("graphs_by_name");
}

#[test]
fn looking_at_what_ships_makes_nothing() {
    let desk = Desk::new();
    done(&desk.tine(&["validate", "news_report", "react", "--deny-warnings"]));
    done(&desk.tine(&["show", "news_report"]));
    done(&desk.tine(&["tools"]));
    assert!(!desk.home().exists());
}

#[test]
fn a_thread_goes_on_from_anywhere_and_with_a_home_that_was_moved() {
    let desk = Desk::new();
    let args = ["run", "news_report", "write a report", "--thread", "t"];
    assert_eq!(desk.tine(&args).code, 3);
    let moved = desk.path().join("elsewhere");
    std::fs::rename(desk.home(), &moved).unwrap();
    let mut resume = desk.command(&["resume", "t", "tea"]);
    let ran = finish(resume.current_dir("/").env("TINE_HOME", &moved));
    done(&ran);
    assert_eq!(ran.stderr, "");
    assert!(!desk.home().exists());
}

#[test]
fn a_thread_goes_on_with_the_files_of_an_older_program() {
    let desk = Desk::new();
    let old = desk.home().join("shipped/0123456789abcdef");
    for folder in ["graphs", "config"] {
        copy(shipped(folder).as_ref(), &old.join(folder));
    }
    let graph = old.join("graphs/news_report.yaml");
    let config = old.join("config/config.yaml");
    for thread in ["t", "u"] {
        let ran = desk.tine(&[
            "run",
            graph.to_str().unwrap(),
            "write a report",
            "--config",
            config.to_str().unwrap(),
            "--thread",
            thread,
        ]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
    }
    let resume = |thread: &str| {
        let mut command = desk.command(&["resume", thread, "tea"]);
        finish(command.current_dir("/"))
    };
    done(&resume("t"));
    std::fs::remove_dir_all(&old).unwrap();
    let ran = resume("u");
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("0123456789abcdef"), "{}", ran.stderr);
    // The way out that is named: the files of this program.
    let ran = desk.tine(&["run", "news_report", "tea", "--thread", "u"]);
    done(&ran);
}

#[test]
fn damaged_files_are_unpacked_anew() {
    let desk = Desk::new();
    let run = || desk.tine(&["run", "news_report", "find tea"]);
    done(&run());
    let folder = unpacked(&desk);
    let whole = files(&folder);
    let script = folder.join("graphs/news_report.script.yaml");
    let damages: [&dyn Fn(); 4] = [
        &|| std::fs::write(&script, "").unwrap(),
        &|| std::fs::remove_file(&script).unwrap(),
        &|| std::fs::write(folder.join("graphs/corpus/more.md"), "# Tea").unwrap(),
        &|| {
            std::fs::remove_dir_all(folder.join("graphs/corpus")).unwrap();
            std::fs::write(folder.join("graphs/corpus"), "").unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        let damaged = files(&folder);
        let ran = run();
        done(&ran);
        assert!(ran.stderr.contains("was unpacked anew"), "{}", ran.stderr);
        assert_eq!(files(&folder), whole);
        let aside = folder.with_extension(format!("changed-{}", number + 1));
        assert_eq!(files(&aside), damaged, "nothing is lost");
    }
    assert!(!run().stderr.contains("unpacked"));
}

#[test]
fn many_programs_unpack_at_once() {
    let desk = Desk::new();
    let start = |number: usize| {
        let thread = format!("t{number}");
        desk.command(&["run", "news_report", "find tea", "--thread", &thread])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..6).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        assert!(!stderr.contains("anew"), "{stderr}");
    }
    let left = std::fs::read_dir(desk.home().join("shipped")).unwrap();
    assert_eq!(left.count(), 1);
}

#[test]
fn the_configuration_is_looked_for() {
    let desk = Desk::new();
    let project = desk.path().join("project");
    copy(shipped("graphs").as_ref(), &project.join("graphs"));
    let config = std::fs::read_to_string(shipped("config/config.yaml")).unwrap();
    let graph = desk.file(
        "project/graphs/deep/er/graph.yaml",
        &std::fs::read_to_string(news_report()).unwrap(),
    );
    let run = |graph: &str, more: &[&str]| {
        let mut args = vec!["run", graph, "find tea"];
        args.extend(more);
        let ran = desk.tine(&args);
        done(&ran);
        ran.stderr
    };
    // None anywhere.
    assert!(run(&graph, &[]).contains("the configuration is the one that ships with tine"));
    // Above the graph; what it names is taken from its own folder, wherever the command is run.
    desk.file(
        "project/config.yaml",
        &config.replace("../graphs", "graphs"),
    );
    assert_eq!(
        run(&graph, &[]),
        "note: the configuration is project/config.yaml\n"
    );
    desk.file("project/config/config.yaml", &config);
    assert_eq!(
        run(&graph, &[]),
        "note: the configuration is project/config/config.yaml\n"
    );
    // Here, which goes without saying.
    desk.file(
        "config.yaml",
        &config.replace("../graphs", "project/graphs"),
    );
    assert_eq!(run(&graph, &[]), "");
    assert_eq!(
        run("news_report", &[]),
        "note: the graph is the one that ships with tine\n"
    );
    assert!(
        desk.tine(&["tools"])
            .stdout
            .starts_with("tools of config.yaml\n")
    );
    // Named, which goes without saying too.
    let named = shipped("config/config.yaml");
    assert_eq!(run(&graph, &["--config", &named]), "");
}

#[test]
fn a_configuration_in_the_way_is_named() {
    let desk = Desk::new();
    desk.file("config.yaml", "apiVersion: v1\n");
    let ran = desk.tine(&["run", "news_report", "find tea"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("config.yaml:1:1: unknown section `apiVersion`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("--config FILE"), "{}", ran.stderr);
}

#[test]
fn a_home_that_can_not_be_written_is_one_failure_wherever_it_is_met() {
    let mut desk = Desk::new();
    let plain = desk.file("plain", "");
    let graph = news_report();
    let check = |home: &str, args: &[&str]| {
        let ran = finish(desk.command(args).env("TINE_HOME", home));
        assert_eq!(ran.code, 4, "{args:?} {}{}", ran.stdout, ran.stderr);
        for part in ["error: ", "hint: ", "TINE_HOME", "writable"] {
            assert!(ran.stderr.contains(part), "{args:?} {}", ran.stderr);
        }
    };
    let below = format!("{plain}/home");
    check(&below, &["run", "news_report", "x"]);
    check(&below, &["run", &graph, "x"]);
    check(&plain, &["run", &graph, "x"]);
    // A place for the files of threads, and none for the database, or for what ships.
    let home = desk.file("home/threads.db/in-the-way", "");
    let home = Path::new(&home).ancestors().nth(2).unwrap().to_owned();
    let check = |args: &[&str]| {
        let ran = finish(desk.command(args).env("TINE_HOME", &home));
        assert_eq!(ran.code, 4, "{args:?} {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("TINE_HOME"), "{args:?} {}", ran.stderr);
    };
    check(&["run", &graph, "x"]);
    check(&["threads"]);
    desk.file("home/shipped", "");
    let ran = desk.tine(&["run", "news_report", "x"]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.stderr.contains("can not be unpacked to"),
        "{}",
        ran.stderr
    );
    desk.record_bare(&["run", "news_report", "x", "--json"]);
    desk.assert("unwritable_home");
}
