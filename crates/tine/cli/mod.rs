//! The command line: wiring, the terminal, the environment.

mod answer;
mod artifact;
mod completions;
mod doctor;
mod env;
mod execute;
mod explain;
mod failure;
mod help;
mod host;
mod init;
mod log;
mod man;
mod output;
mod place;
mod prices;
mod resume;
mod run;
mod setup;
mod shipped;
mod show;
mod signal;
mod status;
mod store;
mod terminal;
mod text_input;
mod thread_name;
mod threads;
mod tools;
mod upload;
mod usage;
mod validate;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use env::Env;
use failure::Failure;
use output::Stream;
use status::Status;
use std::process::ExitCode;
use std::sync::Arc;
use tine::engine::{TokioWorld, failpoint};

/// Runs graphs of agents from files
#[derive(Parser, Debug)]
#[command(name = "tine", version, propagate_version = true, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Tells on standard error what is done: a level (info, debug), or levels by target
    #[arg(long, value_name = "FILTER", global = true, display_order = 1000)]
    log: Option<String>,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine run news_report \"find AI news and save it as Markdown\"
  tine init my-agent
  tine resume amber-heron-3f9c \"battery technology\"
  tine threads
  tine validate graphs/*.yaml

EXIT STATUS
  0 done, 1 findings (validate, doctor), 2 wrong usage, file or input, 3 waits for an answer,
  4 failed, or TINE_HOME can not be used, 5 a limit was met, 130 cancelled

ENVIRONMENT
  TINE_HOME  where threads and their files live; `.tine` in the working directory if unset
  TINE_LOG   what `--log` is if it is not given, such as `tine=debug`
  NO_COLOR   writes no colours if set";

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    Threads(threads::ThreadsArgs),
    Validate(validate::ValidateArgs),
    Explain(explain::ExplainArgs),
    Show(show::ShowArgs),
    Tools(tools::ToolsArgs),
    Doctor(doctor::DoctorArgs),
    Init(init::InitArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// Whether standard output is for programs.
    fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Resume(args) => args.json,
            Self::Threads(args) => args.json(),
            Self::Validate(args) => args.json,
            Self::Tools(args) => args.json(),
            Self::Doctor(args) => args.json,
            Self::Explain(_)
            | Self::Show(_)
            | Self::Init(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

/// What every command works with.
pub(crate) struct Cx {
    pub(crate) env: Env,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    pub(crate) world: Arc<TokioWorld>,
    /// Whether a run that stops with questions asks them here.
    pub(crate) prompts: bool,
}

impl Cx {
    fn new() -> Self {
        let env = Env::read();
        Self {
            stdout: Stream::stdout(env.stdout),
            stderr: Stream::stderr(env.stderr),
            world: Arc::new(TokioWorld::new()),
            prompts: env.stdin_terminal && env.stdout.terminal,
            env,
        }
    }

    /// Lends standard output out; what is written meanwhile is lost.
    fn take_stdout(&mut self) -> Stream {
        let device = self.stdout.device();
        std::mem::replace(&mut self.stdout, Stream::nowhere(device))
    }

    fn return_stdout(&mut self, stdout: Stream) {
        self.stdout = stdout;
    }
}

/// The command line, as help, completions and manual pages show it.
fn command() -> clap::Command {
    help::grouped(Cli::command())
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let mut cx = Cx::new();
    let parsed = command().try_get_matches();
    let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    let status = match parsed {
        Ok(cli) => {
            let json = cli.command.json();
            let done = arm(&cx.env)
                .and_then(|()| log::start(&cx, cli.log.as_deref()))
                .and_then(|()| perform(&mut cx, cli.command));
            done.unwrap_or_else(|failure| {
                if json {
                    cx.stdout.line(&failure.to_json().to_string());
                }
                failure.print(&mut cx.stderr);
                failure.status
            })
        }
        Err(error) => usage(&mut cx, &error),
    };
    // Nothing that was said may be lost without a word; a reader that went away wanted no more.
    match cx.stdout.take_error() {
        Some(error) => {
            let failure = Failure::usage(format!("standard output can not be written: {error}"));
            failure.print(&mut cx.stderr);
            Status::Failed.into()
        }
        None => status.into(),
    }
}

/// Prints help, the version, or what is wrong with the command.
fn usage(cx: &mut Cx, error: &clap::Error) -> Status {
    let stream = match error.use_stderr() {
        true => &mut cx.stderr,
        false => &mut cx.stdout,
    };
    let text = error.render();
    let text = match stream.device().colour {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    stream.write(&text);
    match error.use_stderr() {
        true => Status::Usage,
        false => Status::Done,
    }
}

/// Lets the process die where a test wants it to.
fn arm(env: &Env) -> Result<(), Failure> {
    match &env.failpoint {
        None => Ok(()),
        Some(_) if !failpoint::ENABLED => Err(Failure::usage(
            "TINE_FAILPOINT is set, and this build can not be made to die",
        )
        .hint("unset it")),
        Some(place) => {
            failpoint::arm(match place.parse() {
                Ok(number) => failpoint::Target::Number(number),
                Err(_) => failpoint::Target::Name(place.clone()),
            });
            Ok(())
        }
    }
}

fn perform(cx: &mut Cx, command: Command) -> Result<Status, Failure> {
    match command {
        Command::Run(args) => block_on(run::run(cx, args)),
        Command::Resume(args) => block_on(resume::resume(cx, args)),
        Command::Threads(args) => block_on(threads::threads(cx, args)),
        Command::Validate(args) => validate::validate(cx, &args),
        Command::Explain(args) => explain::explain(cx, &args),
        Command::Show(args) => show::show(cx, &args),
        Command::Tools(args) => block_on(tools::tools(cx, args)),
        Command::Doctor(args) => block_on(doctor::doctor(cx, &args)),
        Command::Init(args) => init::init(cx, &args),
        Command::Completions(args) => completions::completions(cx, &args),
        Command::Man(args) => man::man(cx, &args),
    }
}

/// Runs a command on a runtime of its own.
fn block_on(command: impl Future<Output = Result<Status, Failure>>) -> Result<Status, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("no runtime can be made: {error}")))?;
    let result = runtime.block_on(command);
    // A tool that blocks its thread can not be stopped; the program does not wait for it.
    runtime.shutdown_background();
    result
}
