//! `tine threads delete`

use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::clean;
use clap::Args;
use serde_json::json;
use tine::engine::ThreadKey;
use tine::tools::paths::Home;

/// Deletes threads with everything in them: checkpoints, uploads, outputs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeleteArgs {
    /// The threads
    #[arg(required = true, value_name = "THREAD")]
    threads: Vec<String>,
    /// Does not ask first
    #[arg(long)]
    yes: bool,
    /// Prints one deleted thread a line as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads delete amber-heron-3f9c --yes
  tine threads delete amber-heron-3f9c ruby-moor-6df3

A thread that is being run is not deleted. If a name is wrong, none is.";

/// A thread to be deleted, or the files of one that is gone.
struct Doomed {
    key: ThreadKey,
    stored: bool,
}

pub(crate) async fn delete(cx: &mut Cx, args: &DeleteArgs) -> Result<Status, Failure> {
    let mut all: Vec<Doomed> = Vec::new();
    for name in &args.threads {
        let key = ThreadKey::local(name.as_str());
        if all.iter().any(|doomed| doomed.key == key) {
            continue;
        }
        let stored = match Store::find(cx, name).await {
            Ok(_) => true,
            // One whose deletion was broken off has files and nothing else.
            Err(_) if cx.env.home.exists() && Home::open(&cx.env.home)?.has_thread(&key) => false,
            Err(unknown) => return Err(unknown),
        };
        all.push(Doomed { key, stored });
    }
    let names: Vec<String> = all.iter().map(|doomed| clean(&doomed.key.thread)).collect();
    if !args.yes && !confirmed(cx, &names)? {
        if !args.json {
            cx.stdout.line("nothing was deleted");
        }
        return Ok(Status::Done);
    }
    let home = Home::open(&cx.env.home)?;
    for (Doomed { key, stored }, name) in all.iter().zip(&names) {
        // The store goes first: it refuses while somebody runs the thread.
        let deleted = match Store::open_existing(cx)? {
            Some(store) => store.0.delete(key).await?,
            None => false,
        };
        home.remove_thread(key)?;
        if args.json {
            let line = json!({"thread": key.thread, "deleted": true, "checkpoints": deleted});
            cx.stdout.line(&line.to_string());
            continue;
        }
        cx.stdout.line(&match stored {
            true => format!("deleted thread {name} and its files"),
            false => format!("deleted the files of thread {name}, which was gone already"),
        });
    }
    Ok(Status::Done)
}

fn confirmed(cx: &mut Cx, names: &[String]) -> Result<bool, Failure> {
    let what = match names {
        [name] => format!("thread `{name}` is"),
        names => format!("threads `{}` are", names.join("`, `")),
    };
    if !cx.env.stdin_terminal {
        return Err(Failure::usage(format!(
            "nobody is there to confirm that {what} to be deleted"
        ))
        .hint("`--yes` deletes without asking"));
    }
    let question = match names {
        [name] => format!("delete thread {name} and its files? [y/N] "),
        names => format!(
            "delete {} threads and their files ({})? [y/N] ",
            names.len(),
            names.join(", ")
        ),
    };
    cx.stderr.write(&question);
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::usage(format!("the answer can not be read: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
