//! `tine validate`

use super::Cx;
use super::failure::Failure;
use super::host::{self, Host, read};
use super::output::Tone;
use super::setup::{ConfigArgs, Setup};
use super::shipped;
use super::status::Status;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use tine::graphfile::{Level, Registry};
use tine::models::Script;

/// Checks graph files and scripts, and says everything that is wrong with them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// The files, or names of graphs that ship with tine
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Prints the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Counts warnings as errors
    #[arg(long)]
    deny_warnings: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine validate graphs/*.yaml
  tine validate graphs/*.yaml --deny-warnings --json

Names of tools and models are looked up in the configuration that `tine run` would take for the
file. If that is the one that ships with tine, for want of another, unknown names are warnings.

Exit status: 0 nothing is wrong, 1 there are errors, 2 a file could not be read.";

/// The check for names that only the host knows.
const UNKNOWN_NAME: &str = "G104";

/// What was found in one file.
#[derive(Default)]
struct Found {
    errors: usize,
    warnings: usize,
    unreadable: bool,
    /// Whether a name was unknown to the host.
    unknown: bool,
    /// For people.
    text: String,
    /// For programs.
    findings: Value,
}

pub(crate) fn validate(cx: &mut Cx, args: &ValidateArgs) -> Result<Status, Failure> {
    let mut all = Found::default();
    let mut lines = Vec::new();
    let mut known: BTreeMap<PathBuf, Registry> = BTreeMap::new();
    for file in &args.files {
        let setup = Setup::new(cx, file, &args.config, &[]);
        let names = match known.entry(setup.config.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = cx.env.shown(&setup.config);
                let config = host::configure(Path::new(&path), &setup.set, Path::new(""))?;
                entry.insert(host::names(cx, &config)?)
            }
        };
        // The configuration that the file is meant for may not be here.
        names.offline = args.config.config.is_none()
            && shipped::is_ours(&setup.config)
            && !shipped::is_ours(&setup.graph);
        let path = match shipped::is_ours(&setup.graph) {
            true => &setup.graph,
            false => file,
        };
        let found = check(cx, path, names);
        if !found.text.is_empty() {
            if !all.text.is_empty() {
                all.text.push('\n');
            }
            all.text.push_str(&found.text);
        }
        all.errors += found.errors;
        all.warnings += found.warnings;
        all.unreadable |= found.unreadable;
        all.unknown |= found.unknown;
        let shown = file.display().to_string();
        lines.push(json!({"file": shown, "findings": found.findings}));
    }
    if args.json {
        cx.stdout.line(&Value::from(lines).to_string());
    } else {
        if !all.text.is_empty() {
            cx.stdout.line(&all.text);
        }
        if all.unknown {
            let label = cx.stdout.paint(Tone::Hint, "hint:");
            cx.stdout.line(&format!(
                "{label} `tine tools` says which tools the configuration gives, and why\n"
            ));
        }
        let summary = summary(cx, args.files.len(), &all);
        cx.stdout.line(&summary);
    }
    let wrong = all.errors > 0 || (args.deny_warnings && all.warnings > 0);
    Ok(match (all.unreadable, wrong) {
        (true, _) => Status::Usage,
        (false, true) => Status::Findings,
        (false, false) => Status::Done,
    })
}

fn check(cx: &Cx, file: &Path, registry: &Registry) -> Found {
    let (text, shown) = match read(cx, file) {
        Ok(read) => read,
        Err(failure) => {
            let error = cx.stdout.paint(Tone::Bad, "error:");
            let mut text = format!("{error} {}\n", failure.message());
            for hint in failure.hints() {
                let label = cx.stdout.paint(Tone::Hint, "hint:");
                text.push_str(&format!("{label} {hint}\n"));
            }
            return Found {
                unreadable: true,
                text,
                findings: json!([{"level": "error", "title": failure.message()}]),
                ..Found::default()
            };
        }
    };
    if is_script(&text) {
        return check_script(cx, &shown, &text);
    }
    let (_, diagnostics) = Host::check(&shown, &text, file, registry);
    Found {
        errors: diagnostics.count(Level::Error),
        warnings: diagnostics.count(Level::Warning),
        text: match cx.stdout.device().colour {
            true => diagnostics.render_coloured(),
            false => diagnostics.render(),
        },
        findings: diagnostics.to_json(),
        unreadable: false,
        unknown: diagnostics
            .iter()
            .any(|found| found.check.code == UNKNOWN_NAME && found.level == Level::Error),
    }
}

/// Whether a file says that it is a script for the scripted model.
pub(crate) fn is_script(text: &str) -> bool {
    text.lines()
        .filter_map(|line| line.strip_prefix("schema:"))
        .any(|schema| {
            schema
                .trim()
                .trim_matches(['"', '\''])
                .starts_with("script/")
        })
}

fn check_script(cx: &Cx, shown: &str, text: &str) -> Found {
    match Script::parse(shown, text) {
        Ok(_) => Found {
            findings: json!([]),
            ..Found::default()
        },
        Err(error) => {
            let label = cx.stdout.paint(Tone::Bad, "error:");
            Found {
                errors: 1,
                text: format!("{label} {error}\n"),
                findings: json!([{"level": "error", "title": error.to_string()}]),
                ..Found::default()
            }
        }
    }
}

fn summary(cx: &Cx, files: usize, all: &Found) -> String {
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    };
    let files = count(files, "file");
    let (tone, words) = match (all.unreadable, all.errors, all.warnings) {
        (false, 0, 0) => (Tone::Good, "nothing is wrong".to_owned()),
        (unreadable, errors, warnings) => {
            let mut words = vec![count(errors, "error"), count(warnings, "warning")];
            if unreadable {
                words.push("not all could be read".to_owned());
            }
            (Tone::Strong, words.join(", "))
        }
    };
    format!("{files}: {}", cx.stdout.paint(tone, &words))
}
