//! `tine doctor`

mod configuration;
mod machine;
mod online;
mod threads;

use super::Cx;
use super::failure::Failure;
use super::output::Tone;
use super::setup::ConfigArgs;
use super::status::Status;
use super::terminal::line::clean;
use clap::Args;
use serde::Serialize;
use serde_json::json;

/// Checks the home, the configuration, the models, the tools and the terminal
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Asks the endpoints of models for the list of their models, too
    #[arg(long)]
    online: bool,
    /// Prints what was found as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine doctor
  tine doctor --online
  tine doctor --config other.yaml --json

Values of keys are never printed, and no model is asked to reply.

Exit status: 0 nothing is wrong, 1 there are problems.";

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Ok,
    /// Not wrong, and worth knowing.
    Note,
    Problem,
}

/// One line of what was found.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    text: String,
    /// Ways out.
    hints: Vec<String>,
}

/// All that was found, in order.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: &'static str, level: Level, text: impl Into<String>) {
        self.0.push(Finding {
            check,
            level,
            text: text.into(),
            hints: Vec::new(),
        });
    }

    fn ok(&mut self, check: &'static str, text: impl Into<String>) {
        self.add(check, Level::Ok, text);
    }

    fn note(&mut self, check: &'static str, text: impl Into<String>) {
        self.add(check, Level::Note, text);
    }

    fn problem(&mut self, check: &'static str, text: impl Into<String>, hint: impl Into<String>) {
        self.add(check, Level::Problem, text);
        self.hint(hint);
    }

    fn failure(&mut self, check: &'static str, failure: &Failure) {
        self.add(check, Level::Problem, failure.message());
        for hint in failure.hints() {
            self.hint(hint.as_str());
        }
    }

    /// Adds a way out to the last finding.
    fn hint(&mut self, hint: impl Into<String>) {
        if let Some(last) = self.0.last_mut() {
            last.hints.push(hint.into());
        }
    }
}

pub(crate) async fn doctor(cx: &mut Cx, args: &DoctorArgs) -> Result<Status, Failure> {
    let mut findings = Findings::default();
    machine::program(&mut findings);
    machine::home(cx, &mut findings);
    threads::check(cx, &mut findings).await;
    let endpoints = configuration::check(cx, &args.config, &mut findings);
    if args.online {
        online::check(cx, &endpoints, &mut findings).await;
    }
    machine::terminal(cx, &mut findings);

    let is_problem = |finding: &&Finding| finding.level == Level::Problem;
    let problems = findings.0.iter().filter(is_problem).count();
    if args.json {
        let json = json!({"checks": findings.0, "problems": problems});
        cx.stdout.line(&json.to_string());
    } else {
        print(cx, &findings, problems);
    }
    Ok(match problems {
        0 => Status::Done,
        _ => Status::Findings,
    })
}

fn print(cx: &mut Cx, findings: &Findings, problems: usize) {
    let out = &mut cx.stdout;
    for finding in &findings.0 {
        let (tone, word) = match finding.level {
            Level::Ok => (Tone::Good, "ok     "),
            Level::Note => (Tone::Hint, "note   "),
            Level::Problem => (Tone::Bad, "problem"),
        };
        let word = out.paint(tone, word);
        let text = clean(&finding.text).replace('\n', "\n                 ");
        out.line(&format!("{word}  {:8}  {text}", finding.check));
        for hint in &finding.hints {
            let label = out.paint(Tone::Hint, "hint:");
            out.line(&format!("                   {label} {}", clean(hint)));
        }
    }
    let (tone, summary) = match problems {
        0 => (Tone::Good, "nothing is wrong".to_owned()),
        1 => (Tone::Bad, "1 problem".to_owned()),
        problems => (Tone::Bad, format!("{problems} problems")),
    };
    let summary = out.paint(tone, &summary);
    out.line(&format!("\n{summary}"));
}
