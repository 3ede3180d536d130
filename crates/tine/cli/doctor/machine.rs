//! The program, its home, the terminal.

use super::Findings;
use crate::cli::Cx;
use crate::cli::terminal::line::size_of;
use std::io;
use std::path::{Path, PathBuf};
use tine::stores::SqliteCheckpointer;
use tine::tools::config::EnvSource as _;

/// With less room than this no thread can be relied on.
const TOO_FULL: u64 = 16 << 20;
/// With less room than this it is time to clear up.
const RATHER_FULL: u64 = 256 << 20;

pub(super) fn program(findings: &mut Findings) {
    findings.ok(
        "program",
        format!(
            "tine {}, SQLite {}, {} {}",
            env!("CARGO_PKG_VERSION"),
            SqliteCheckpointer::sqlite_version(),
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
    );
}

pub(super) fn home(cx: &Cx, findings: &mut Findings) {
    const CHECK: &str = "home";
    let home = &cx.env.home;
    let shown = cx.env.shown(home);
    let hint =
        "TINE_HOME names the folder that tine keeps threads and files in; it must be writable";
    // Looking makes nothing: a home that is not there yet is made by the first run, in what is there.
    let there = existing(home);
    if let Err(error) = try_writing(&there) {
        let place = there.display();
        return findings.problem(CHECK, format!("{place} can not be written: {error}"), hint);
    }
    let state = match there == *home {
        true => format!("{shown} can be written"),
        false => format!("{shown} is not there yet; the first run makes it"),
    };
    match free(&there) {
        Some(free) if free < TOO_FULL => {
            let text = format!("{shown} has {} of room", size_of(free));
            findings.problem(
                CHECK,
                text,
                "make room, or set TINE_HOME to a folder on another disk",
            );
        }
        Some(free) if free < RATHER_FULL => {
            findings.note(CHECK, format!("{state}; only {} of room", size_of(free)));
        }
        Some(free) => findings.ok(CHECK, format!("{state}; {} of room", size_of(free))),
        None => findings.ok(CHECK, state),
    }
}

/// The folder itself, or the nearest one above it that is there.
fn existing(folder: &Path) -> PathBuf {
    let there = folder
        .ancestors()
        .find(|folder| folder.symlink_metadata().is_ok())
        .unwrap_or(Path::new("."));
    there.to_owned()
}

fn try_writing(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".tine-doctor-{}", std::process::id()));
    std::fs::write(&probe, "can this folder be written to?")?;
    std::fs::remove_file(&probe)
}

#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

pub(super) fn terminal(cx: &Cx, findings: &mut Findings) {
    const CHECK: &str = "terminal";
    let device = cx.stdout.device();
    let kind = match device.terminal {
        true => "a terminal",
        false => "no terminal",
    };
    let colour = match device.colour {
        true => "colours",
        false => "no colours",
    };
    let width = device.width;
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| cx.env.var(name))
        .find(|value| !value.is_empty());
    let unicode = locale.as_deref().is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    let text = format!("standard output is {kind}: {width} columns, {colour}");
    match (unicode, locale) {
        (true, _) => findings.ok(CHECK, format!("{text}, Unicode")),
        (false, locale) => {
            let locale = locale.unwrap_or_else(|| "not set".to_owned());
            findings.note(
                CHECK,
                format!("{text}; the locale ({locale}) does not say UTF-8, which tine writes"),
            );
            findings.hint("if characters are garbled: `export LC_ALL=C.UTF-8`");
        }
    }
}
