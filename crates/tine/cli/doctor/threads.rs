//! The store of threads.

use super::Findings;
use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::terminal::line::quoted;
use tine::engine::checkpoint::{Checkpointer as _, ThreadInfo};
use tine::engine::{StoreError, ThreadKey};
use tine::stores::{Health, SqliteCheckpointer, SqliteOptions};

const CHECK: &str = "threads";

pub(super) async fn check(cx: &Cx, findings: &mut Findings) {
    let path = cx.env.database();
    let shown = cx.env.shown(&path);
    if !path.exists() {
        return findings.ok(CHECK, "none yet; `tine run` starts one");
    }
    let look = async {
        let store = SqliteCheckpointer::open(&path, SqliteOptions::default())?;
        let health = store.health().await?;
        let threads = store.threads(ThreadKey::LOCAL).await?;
        Ok::<(Health, Vec<ThreadInfo>), StoreError>((health, threads))
    };
    let (health, threads) = match look.await {
        Ok(found) => found,
        Err(error) => return findings.failure(CHECK, &Failure::from(error)),
    };
    if let Some((first, more)) = health.problems.split_first() {
        let more = match more.len() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        return findings.problem(
            CHECK,
            format!("{shown} is damaged: {first}{more}"),
            format!(
                "put a good copy in its place, or try `sqlite3 {} .recover`",
                quoted(&shown)
            ),
        );
    }
    let count = match threads.len() {
        1 => "1 thread".to_owned(),
        count => format!("{count} threads"),
    };
    let schema = health.schema;
    let text = format!("{shown} is sound: {count}, schema {schema}");
    match health.holders.as_slice() {
        [] => findings.ok(CHECK, text),
        holders => findings.ok(
            CHECK,
            format!(
                "{text}, {} being run ({})",
                holders.len(),
                holders.join(", ")
            ),
        ),
    }
}
