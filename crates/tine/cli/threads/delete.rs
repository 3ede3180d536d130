//! `tine threads delete`

use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::clean;
use clap::Args;
use std::io::IsTerminal as _;
use tine::tools::paths::Home;

/// Deletes a thread with everything in it: checkpoints, uploads, outputs
#[derive(Args, Debug)]
#[command(after_help = "EXAMPLES\n  tine threads delete amber-heron-3f9c --yes")]
pub(crate) struct DeleteArgs {
    /// The thread
    thread: String,
    /// Does not ask first
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn delete(cx: &mut Cx, args: &DeleteArgs) -> Result<Status, Failure> {
    let (store, info, _) = Store::find(cx, &args.thread).await?;
    let name = clean(&args.thread);
    if !args.yes && !confirmed(cx, &name)? {
        cx.stdout.line("nothing was deleted");
        return Ok(Status::Done);
    }
    // The store goes first: it refuses while somebody runs the thread.
    store.0.delete(&info.key).await?;
    Home::open(&cx.env.home)?.remove_thread(&info.key)?;
    cx.stdout
        .line(&format!("deleted thread {name} and its files"));
    Ok(Status::Done)
}

fn confirmed(cx: &mut Cx, name: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "nobody is there to confirm that thread `{name}` is to be deleted"
        ))
        .hint("`--yes` deletes without asking"));
    }
    cx.stderr
        .write(&format!("delete thread {name} and its files? [y/N] "));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::usage(format!("the answer can not be read: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
