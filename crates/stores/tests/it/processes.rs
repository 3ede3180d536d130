//! Two processes and one thread. The other process is this test binary, running one of the ignored tests below.

use crate::kit::{advance, append, namespace, open, root, set, wait};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use tine_engine::checkpoint::Checkpointer;
use tine_engine::{StoreError, Value};

const FILE: &str = "TINE_TEST_FILE";

/// Another process, killed when dropped.
struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(test: &str, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What the process says next, among the lines of the test runner.
    fn says(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.unwrap();
            if let Some((_, said)) = line.split_once("says ") {
                return Some(said.to_owned());
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn say(what: &str) {
    println!("says {what}");
    std::io::stdout().flush().unwrap();
}

#[test]
#[ignore = "the other process"]
fn holds() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let store = open(Path::new(&file));
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        say("held");
        // Until the first process says something, or is gone.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        drop(writer);
        say("free");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    });
}

#[test]
#[ignore = "the other process"]
fn writes() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let store = open(Path::new(&file));
    wait(async {
        let scope = root("t");
        let writer = store.open(&scope.thread).await.unwrap();
        let newest = store.load(&scope, None).await.unwrap();
        let mut last = newest.map(|it| it.id.0);
        loop {
            let id = last.unwrap_or(0) + 1;
            let effects = match last {
                None => set(Value::list()),
                Some(_) => append(id as u64),
            };
            let stored = advance(id, last, &[("list", effects)]);
            writer.advance(&scope.namespace, stored).await.unwrap();
            say(&id.to_string());
            last = Some(id);
        }
    });
}

#[test]
fn a_thread_held_by_another_process_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.db");
    let store = open(&file);
    let key = root("t").thread;
    let mut other = Other::start("processes::holds", &file);
    assert_eq!(other.says().unwrap(), "held");
    for refused in [
        wait(store.open(&key)).map(drop),
        wait(store.delete(&key)).map(drop),
    ] {
        let StoreError::Held { holder, .. } = refused.unwrap_err() else {
            panic!("it is held");
        };
        assert!(
            holder.starts_with(&format!("process {}", other.child.id())),
            "{holder}"
        );
    }
    writeln!(other.child.stdin.as_ref().unwrap()).unwrap();
    assert_eq!(other.says().unwrap(), "free");
    drop(wait(store.open(&key)).unwrap());
}

#[test]
fn a_killed_process_lets_the_thread_go_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.db");
    let scope = root("t");
    let mut known = 0;
    for round in 1..=4 {
        let mut other = Other::start("processes::writes", &file);
        let said = (0..50 * round).map_while(|_| other.says()).last().unwrap();
        other.kill();
        // What it said is stored; what it did not say may be.
        let store = open(&file);
        let newest = wait(store.load(&scope, None)).unwrap().unwrap();
        assert!(newest.id.0 >= said.parse().unwrap(), "{} {said}", newest.id);
        assert!(newest.id.0 > known);
        known = newest.id.0;
        let items = newest.values["list"].as_list().unwrap();
        let expected: Vec<Value> = (2..=known as u64).map(Into::into).collect();
        assert_eq!(items.iter().cloned().collect::<Vec<_>>(), expected);
        // The lock went with the process.
        drop(wait(store.open(&scope.thread)).unwrap());
    }
}

#[test]
fn processes_write_different_threads_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.db");
    let mut other = Other::start("processes::writes", &file);
    assert_eq!(other.says().unwrap(), "1");
    let store = open(&file);
    wait(async {
        let writer = store.open(&root("mine").thread).await.unwrap();
        for id in 1..=500_u128 {
            let stored = advance(id, (id > 1).then(|| id - 1), &[("n", set(id as u64))]);
            writer.advance(&namespace(""), stored).await.unwrap();
        }
    });
    other.kill();
    for thread in wait(store.threads("local")).unwrap() {
        let history = wait(store.history(&root(&thread.key.thread), None, None)).unwrap();
        assert_eq!(history.len() as u64, thread.checkpoints);
        let whole: Vec<u128> = (1..=history.len() as u128).rev().collect();
        assert_eq!(history.iter().map(|it| it.id.0).collect::<Vec<_>>(), whole);
    }
}
