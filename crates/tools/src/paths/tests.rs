#![allow(clippy::unwrap_used)]

use std::io::{self, Read, Write};

use tine_engine::ThreadKey;

use super::*;

struct Fixture {
    _disk: tempfile::TempDir,
    home: Home,
    thread: ThreadFolders,
}

fn fixture() -> Fixture {
    let disk = tempfile::tempdir().unwrap();
    let home = Home::open(disk.path().join("home")).unwrap();
    let thread = home.thread(&ThreadKey::local("t1")).unwrap();
    std::fs::write(thread.host_root().join("outputs/a.md"), "a").unwrap();
    std::fs::write(thread.host_root().join("beside.txt"), "b").unwrap();
    Fixture {
        _disk: disk,
        home,
        thread,
    }
}

fn refusal(thread: &ThreadFolders, path: &str, access: Access) -> String {
    match thread.resolve(path, access) {
        Ok(found) => format!("accepted as {}", found.virtual_path()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn paths_of_the_thread_resolve() {
    let f = fixture();
    let check = |path: &str, expected: &str| {
        let found = f.thread.resolve(path, Access::Read).unwrap();
        assert_eq!(found.virtual_path(), expected, "path {path:?}");
    };
    check("/mnt/user-data/outputs/a.md", "/mnt/user-data/outputs/a.md");
    check(
        "//mnt/user-data//outputs/./a.md",
        "/mnt/user-data/outputs/a.md",
    );
    check("/mnt/user-data/outputs/", "/mnt/user-data/outputs");
    check("/mnt/user-data", "/mnt/user-data");
}

#[test]
fn a_refused_path_is_told_why_and_what_to_do() {
    let f = fixture();
    let lines: Vec<String> = [
        "",
        "notes.md",
        "mnt/user-data/outputs/a.md",
        "/mnt/user-data/outputs/../../t2/user-data/outputs/a.md",
        "/mnt/user-data/outputs/..\\x",
        "/mnt/user-data-evil/outputs/a.md",
        "/mnt/user-data/outputs-evil/a.md",
        "/mnt/user-data/secrets",
        "/etc/passwd",
        "/mnt/user-data/outputs/a\0.md",
        "/mnt/skills/public/SKILL.md",
        "/mnt/user-data/outputs/missing.md",
        "/mnt/user-data/outputs/a.md/b",
        &format!("/mnt/user-data/outputs/{}", "x".repeat(256)),
        &format!("/mnt/user-data/outputs/{}", "x/".repeat(2100)),
        f.thread.host_root().join("outputs/a.md").to_str().unwrap(),
    ]
    .iter()
    .map(|path| refusal(&f.thread, path, Access::Read))
    .map(|line| line.replace(f.thread.host_root().to_str().unwrap(), "HOST"))
    .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_cannot_be_written_is_told_so() {
    let f = fixture();
    let lines: Vec<String> = [
        "/mnt/skills/public/SKILL.md",
        "/mnt/acp-workspace/x",
        "/mnt/user-data",
        "/mnt/user-data/outputs",
        "/mnt/user-data/outputs/a.md/b.md",
        "/mnt/user-data/outputs/new/",
        "/mnt/user-data/outputs/new/.",
        "/mnt/user-data/outputs/a\n/mnt/user-data/outputs/b.md",
        "/mnt/user-data/outputs/r\u{202e}dm.exe",
    ]
    .iter()
    .map(|path| refusal(&f.thread, path, Access::Write))
    .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    `/mnt/skills/public/SKILL.md` cannot be written: /mnt/skills is read-only; write below /mnt/user-data/workspace or /mnt/user-data/outputs
    `/mnt/acp-workspace/x` cannot be written: /mnt/acp-workspace is read-only; write below /mnt/user-data/workspace or /mnt/user-data/outputs
    `/mnt/user-data` is a folder, not a file
    `/mnt/user-data/outputs` is a folder, not a file
    `/mnt/user-data/outputs/a.md/b.md` is not a folder, or a part of its path is a file
    `/mnt/user-data/outputs/new/` ends in `/`, which names a folder: add the name of the file
    `/mnt/user-data/outputs/new/.` ends in `/`, which names a folder: add the name of the file
    the path "/mnt/user-data/outputs/a\n/mnt/user-data/outputs/b.md" holds the invisible character U+000A: remove it
    the path "/mnt/user-data/outputs/r\u{202e}dm.exe" holds the invisible character U+202E: remove it
    "#);
}

#[cfg(unix)]
#[test]
fn links_may_stay_inside_and_never_lead_out() {
    use std::os::unix::fs::symlink;
    let f = fixture();
    let other = f.home.thread(&ThreadKey::local("t2")).unwrap();
    std::fs::write(other.host_root().join("outputs/secret.md"), "s").unwrap();
    let outputs = f.thread.host_root().join("outputs");
    symlink("a.md", outputs.join("in.md")).unwrap();
    symlink("../workspace", outputs.join("work")).unwrap();
    symlink("/etc/hostname", outputs.join("out.md")).unwrap();
    symlink(other.host_root(), outputs.join("other")).unwrap();
    symlink("../beside.txt", outputs.join("beside.md")).unwrap();
    symlink("nowhere", outputs.join("dead.md")).unwrap();
    symlink("loop.md", outputs.join("loop.md")).unwrap();

    let check = |name: &str, access: Access, expected: &str| {
        let path = format!("/mnt/user-data/outputs/{name}");
        let said = refusal(&f.thread, &path, access);
        assert!(said.contains(expected), "{name}: {said}");
    };
    check(
        "in.md",
        Access::Read,
        "accepted as /mnt/user-data/outputs/a.md",
    );
    check(
        "work/new.md",
        Access::Write,
        "accepted as /mnt/user-data/workspace/new.md",
    );
    for access in [Access::Read, Access::Write] {
        check("out.md", access, "leads out");
        check("other/outputs/secret.md", access, "leads out");
        check("other/outputs/new.md", access, "leads out");
        check("beside.md", access, "leads out");
        check("dead.md", access, "does not exist");
        check("loop.md", access, "loop.md`:");
    }
}

#[cfg(unix)]
#[test]
fn a_link_made_after_resolving_is_not_followed_out() {
    let f = fixture();
    let path = f
        .thread
        .resolve("/mnt/user-data/outputs/sub/x.md", Access::Write)
        .unwrap();
    std::os::unix::fs::symlink("/tmp", f.thread.host_root().join("outputs/sub")).unwrap();
    assert!(path.write(b"x").is_err());
}

#[test]
fn a_write_creates_folders_and_replaces_whole_files() {
    let f = fixture();
    let path = f
        .thread
        .resolve("/mnt/user-data/outputs/deep/er/x.md", Access::Write)
        .unwrap();
    assert!(!path.exists());
    path.write("one".as_bytes()).unwrap();
    path.append("two".as_bytes()).unwrap();
    let mut text = String::new();
    path.open().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "onetwo");
    path.write("three".as_bytes()).unwrap();
    assert_eq!(std::fs::read_to_string(path.host_path()).unwrap(), "three");
}

#[test]
fn appends_through_two_handles_of_a_thread_all_stay() {
    let f = fixture();
    let key = ThreadKey::local("t1");
    let handles = [f.home.thread(&key).unwrap(), f.home.thread(&key).unwrap()];
    std::thread::scope(|scope| {
        for handle in &handles {
            scope.spawn(move || {
                let log = "/mnt/user-data/outputs/log";
                for _ in 0..100 {
                    let path = handle.resolve(log, Access::Write).unwrap();
                    path.append(b"x").unwrap();
                }
            });
        }
    });
    let log = f.thread.host_root().join("outputs/log");
    assert_eq!(std::fs::read(log).unwrap().len(), 200);
}

#[test]
fn a_full_disk_keeps_the_old_file_and_leaves_no_temporary_one() {
    let f = fixture();
    let path = f
        .thread
        .resolve("/mnt/user-data/outputs/a.md", Access::Write)
        .unwrap();
    let error = path
        .replace(|file, _| {
            file.write_all(b"half of it")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
    insta::assert_snapshot!(error, @"`/mnt/user-data/outputs/a.md` was not written, because the disk is full; what was there before is unchanged");
    assert_eq!(std::fs::read_to_string(path.host_path()).unwrap(), "a");
    let names: Vec<_> = std::fs::read_dir(f.thread.host_root().join("outputs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.md"]);
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let f = fixture();
    let path = f
        .thread
        .resolve("/mnt/user-data/outputs/a.md", Access::Write)
        .unwrap();
    std::fs::set_permissions(path.host_path(), std::fs::Permissions::from_mode(0o750)).unwrap();
    path.write(b"new").unwrap();
    let mode = std::fs::metadata(path.host_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[test]
fn a_file_that_appears_while_its_path_is_resolved_is_no_dead_link() {
    let f = fixture();
    let resolve = |n: usize| {
        let path = format!("/mnt/user-data/outputs/{n}.md");
        f.thread.resolve(&path, Access::Write).unwrap()
    };
    std::thread::scope(|scope| {
        // Looks again and again until each is there.
        scope.spawn(|| (0..1000).for_each(|n| while !resolve(n).exists() {}));
        scope.spawn(|| {
            for n in 0..1000 {
                std::fs::write(resolve(n).host_path(), "x").unwrap();
            }
        });
    });
}

#[test]
fn a_thread_id_that_looks_like_a_path_stays_a_name() {
    let f = fixture();
    let thread = f.home.thread(&ThreadKey::local("../../x")).unwrap();
    let inside = thread.host_root().strip_prefix(f._disk.path()).unwrap();
    assert_eq!(
        inside.to_str().unwrap(),
        "home/threads/local/=2e=2e=2f=2e=2e=2fx/user-data"
    );
    assert!(inside.components().count() == 5 && !f._disk.path().join("x").exists());
}

#[test]
fn removing_a_thread_removes_its_files_and_no_others() {
    let f = fixture();
    let other = f.home.thread(&ThreadKey::local("t2")).unwrap();
    f.home.remove_thread(&ThreadKey::local("t1")).unwrap();
    f.home.remove_thread(&ThreadKey::local("t1")).unwrap();
    assert!(!f.thread.host_root().exists());
    assert!(other.host_root().exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_before_it_can_block() {
    let f = fixture();
    let socket = f.thread.host_root().join("outputs/s");
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let path = f
        .thread
        .resolve("/mnt/user-data/outputs/s", Access::Write)
        .unwrap();
    for error in [path.open().err(), path.write(b"x").err()] {
        assert!(
            matches!(error, Some(PathError::NotRegular { .. })),
            "{error:?}"
        );
    }
}
