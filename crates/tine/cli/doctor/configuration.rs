//! The configuration, and what comes of it: models, tools, graphs.

use super::{Findings, Level};
use crate::cli::failure::Failure;
use crate::cli::host::{self, Host};
use crate::cli::setup::ConfigArgs;
use crate::cli::terminal::line::quoted;
use crate::cli::{Cx, place, shipped, validate};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tine::graphfile::{Level as Severity, Registry};
use tine::tools::assemble::{AssemblyReport, Scene, Step, Toolbox, Verdict, assemble};
use tine::tools::config::{Config, EnvSource as _, ModelEntry};

/// Where a model is reached.
pub(super) struct Endpoint {
    pub(super) model: String,
    pub(super) base_url: String,
    /// Never printed.
    pub(super) key: Option<String>,
}

/// Checks all of it; gives the endpoints of the models.
pub(super) fn check(cx: &Cx, args: &ConfigArgs, findings: &mut Findings) -> Vec<Endpoint> {
    const CHECK: &str = "config";
    let path = place::config(&cx.env, args.config.as_deref(), None);
    let shown = cx.env.shown(&path);
    let config = match host::configure(Path::new(&shown), &args.set, Path::new("")) {
        Ok(config) => config,
        Err(failure) => {
            findings.failure(CHECK, &failure);
            findings.hint("models, tools and graphs are not checked without it");
            return Vec::new();
        }
    };
    if shipped::is_ours(&path) {
        findings.ok(
            CHECK,
            "the one that ships with tine, for there is no other here",
        );
    } else {
        findings.ok(CHECK, shown);
    }
    for note in config.notes() {
        findings.note(CHECK, note.as_str());
    }
    models(cx, &config, findings);
    let names = match assemble(&config, &host::extensions(cx), &Scene::default()) {
        Ok((toolbox, report)) => {
            tools(&report, findings);
            sandbox(&config, &toolbox, &report, findings);
            host::names(cx, &config).ok()
        }
        Err(error) => {
            findings.failure("tools", &Failure::from(error));
            None
        }
    };
    // Every graph would be found wrong for want of what was told already.
    match names {
        Some(registry) => graphs(cx, &path, &registry, findings),
        None => findings.note("graphs", "not checked: first the models and tools"),
    }
    endpoints(cx, &config)
}

fn models(cx: &Cx, config: &Config, findings: &mut Findings) {
    const CHECK: &str = "models";
    if config.models().is_empty() {
        let text = "none: no graph with a model can run";
        return findings.problem(
            CHECK,
            text,
            "config/README.md explains the `models:` section",
        );
    }
    match host::models(cx, config) {
        Ok((made, unusable)) => {
            for entry in config.models() {
                if made.iter().any(|(name, _)| *name == entry.name) {
                    findings.ok(CHECK, usable(cx, entry));
                }
            }
            // `default` may stand for the first of them.
            let named = config.models().iter();
            for reason in named.filter_map(|entry| unusable.get(&entry.name)) {
                findings.problem(
                    CHECK,
                    reason,
                    "graphs that do not ask for it run; take it out, or put right what is missing",
                );
            }
        }
        Err(failure) => findings.failure(CHECK, &failure),
    }
}

/// Says that a model can be used, with the variables and the file that it needs; never their values.
fn usable(cx: &Cx, entry: &ModelEntry) -> String {
    let mut text = format!("`{}` can be used: {}", entry.name, entry.use_path);
    for key in entry.settings.keys() {
        let Some(value) = entry.settings.raw(key).and_then(|value| value.as_str()) else {
            continue;
        };
        if let Some(variable) = value.strip_prefix('$') {
            let state = match cx.env.var(variable) {
                Some(_) => "is set",
                None => "is not set",
            };
            text.push_str(&format!(", ${variable} {state}"));
        } else if key == "script" {
            text.push_str(&format!(", plays {value}"));
        }
    }
    text
}

fn tools(report: &AssemblyReport, findings: &mut Findings) {
    const CHECK: &str = "tools";
    let dropped: BTreeSet<&str> = report
        .decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Dropped && decision.step != Step::Builtin)
        .filter_map(|decision| decision.tool.as_deref())
        .filter(|name| !report.tools.iter().any(|tool| tool == name))
        .collect();
    let there = match report.tools.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    let text = format!("{there}: {}", report.tools.join(", "));
    if dropped.is_empty() {
        findings.ok(CHECK, text);
    } else {
        let dropped: Vec<&str> = dropped.into_iter().collect();
        let text = format!("{text}; {} left out: {}", dropped.len(), dropped.join(", "));
        findings.note(CHECK, text);
        findings.hint(format!("`tine tools explain {}` says why", dropped[0]));
    }
    let noted = |decision: &&tine::tools::assemble::Decision| {
        decision.verdict == Verdict::Noted && decision.tool.is_some()
    };
    for decision in report.decisions.iter().filter(noted) {
        let tool = decision.tool.as_deref().unwrap_or_default();
        findings.note(CHECK, format!("{tool}: {}", decision.reason));
    }
}

fn sandbox(config: &Config, toolbox: &Toolbox, report: &AssemblyReport, findings: &mut Findings) {
    const CHECK: &str = "sandbox";
    let bash = match toolbox.iter().any(|tool| tool.id().name == "bash") {
        true => "agents have bash",
        false => "agents have no bash",
    };
    let files = "file tools see the folders of their thread and nothing else";
    let noted = |decision: &&tine::tools::assemble::Decision| {
        decision.step == Step::HostBash && decision.tool.is_none()
    };
    let text = match config.sandbox() {
        None => format!("none is configured; {files}; {bash}"),
        Some(sandbox) => {
            let allowed = match sandbox.allow_host_bash {
                true => "shells on this machine are allowed",
                false => "shells on this machine are not allowed",
            };
            match report.decisions.iter().find(noted) {
                Some(decision) => format!("{}; {bash}", decision.reason),
                None => format!("{}; {files}; {allowed}; {bash}", sandbox.use_path),
            }
        }
    };
    let risky = config
        .sandbox()
        .is_some_and(|sandbox| sandbox.allow_host_bash);
    let level = if risky { Level::Note } else { Level::Ok };
    findings.add(CHECK, level, text);
}

/// Checks the graph files of the working directory, or of the project that the configuration belongs to.
fn graphs(cx: &Cx, config: &Path, registry: &Registry, findings: &mut Findings) {
    const CHECK: &str = "graphs";
    let mut places = vec![cx.env.directory.join("graphs")];
    if !shipped::is_ours(config) {
        let project = config
            .parent()
            .into_iter()
            .flat_map(|folder| folder.ancestors().take(2));
        places.extend(project.map(|folder| folder.join("graphs")));
    }
    let Some(folder) = places.iter().find(|folder| folder.is_dir()) else {
        let names = shipped::graphs().join(" and ");
        return findings.ok(CHECK, format!("none here; {names} ship with tine"));
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let shown = cx.env.shown(folder);
            let text = format!("{shown} can not be read: {error}");
            return findings.problem(CHECK, text, "see to its permissions");
        }
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
        })
        .collect();
    files.sort();
    let mut sound = 0;
    for file in &files {
        let shown = cx.env.shown(file);
        let hint = format!("`tine validate {}` says what", quoted(&shown));
        let text = match host::read(cx, file) {
            Ok((text, _)) => text,
            Err(failure) => {
                findings.failure(CHECK, &failure);
                continue;
            }
        };
        if validate::is_script(&text) {
            match tine::models::Script::parse(&shown, &text) {
                Ok(_) => sound += 1,
                Err(error) => findings.problem(CHECK, error.to_string(), hint),
            }
            continue;
        }
        let (_, found) = Host::check(&shown, &text, file, registry);
        let errors = found.count(Severity::Error);
        let warnings = found.count(Severity::Warning);
        match (errors, warnings) {
            (0, 0) => sound += 1,
            (0, warnings) => {
                findings.note(CHECK, format!("{shown} has {warnings} warnings"));
                findings.hint(hint);
            }
            (errors, _) => findings.problem(CHECK, format!("{shown} has {errors} errors"), hint),
        }
    }
    let shown = cx.env.shown(folder);
    match sound {
        0 if files.is_empty() => findings.ok(CHECK, format!("{shown} has none")),
        0 => {}
        1 => findings.ok(CHECK, format!("1 file of {shown} is sound")),
        sound => findings.ok(CHECK, format!("{sound} files of {shown} are sound")),
    }
}

fn endpoints(cx: &Cx, config: &Config) -> Vec<Endpoint> {
    let models = config.models().iter().filter_map(|entry| {
        let settings = entry.settings.with(&cx.env);
        let text = |key: &str| settings.text(key).ok().flatten();
        Some(Endpoint {
            model: entry.name.clone(),
            base_url: text("base_url").or_else(|| text("api_base"))?,
            key: text("api_key"),
        })
    });
    models.collect()
}
