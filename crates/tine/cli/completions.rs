//! `tine completions`

use super::Cx;
use super::failure::Failure;
use super::status::Status;
use clap::Args;
use clap_complete::Shell;

/// Prints what a shell needs to complete tine's commands and options
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine completions bash > ~/.local/share/bash-completion/completions/tine
  tine completions zsh > ~/.zfunc/_tine
  tine completions fish > ~/.config/fish/completions/tine.fish
  tine completions powershell >> $PROFILE
  tine completions elvish >> ~/.config/elvish/rc.elv

For zsh, ~/.zfunc must be in fpath before compinit runs. New shells complete.";

pub(crate) fn completions(cx: &mut Cx, args: &CompletionsArgs) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "tine", &mut script);
    cx.stdout.write(&String::from_utf8_lossy(&script));
    Ok(Status::Done)
}
