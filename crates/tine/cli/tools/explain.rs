//! `tine tools explain`

use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::output::{Stream, Tone};
use crate::cli::setup::ConfigArgs;
use crate::cli::status::Status;
use crate::cli::terminal::line::clean;
use crate::cli::{host, place};
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use tine::engine::text::nearest;
use tine::tools::assemble::{AssemblyReport, BoundTool, Scene, Step, Verdict, assemble};
use tine::tools::config::{Config, ToolEntry};
use tine::tools::schema::Argument;
use tine::tools::{Effect, Source};

/// Says where a tool comes from, what it takes and does, and why agents have it or not
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExplainArgs {
    /// The tool, by the name that models call it by
    name: String,
    #[command(flatten)]
    config: ConfigArgs,
    /// Takes only the configured tools of these groups
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    groups: Option<Vec<String>>,
    /// Prints it as JSON, with the schema as the model is told it
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine tools explain web_search
  tine tools explain bash
  tine tools explain write_file --groups web --json";

pub(super) fn explain(cx: &mut Cx, args: &ExplainArgs) -> Result<Status, Failure> {
    let scene = Scene {
        groups: args.groups.clone(),
        ..Scene::default()
    };
    let path = place::config(&cx.env, args.config.config.as_deref(), None);
    let config = host::configure(
        Path::new(&cx.env.shown(&path)),
        &args.config.set,
        Path::new(""),
    )?;
    let (toolbox, report) = assemble(&config, &host::extensions(cx), &scene)?;
    let tool = toolbox.get(&args.name);
    if tool.is_none() && report.about(&args.name).next().is_none() {
        return Err(unknown(&args.name, &report));
    }
    if args.json {
        let json = to_json(&args.name, tool, &config, &report);
        cx.stdout.line(&json.to_string());
    } else {
        print(&mut cx.stdout, &args.name, tool, &config, &report);
    }
    Ok(Status::Done)
}

/// What is said of a name that no tool has.
pub(super) fn unknown(name: &str, report: &AssemblyReport) -> Failure {
    let failure = Failure::usage(format!(
        "the configuration {} gives no tool `{}`",
        report.config,
        clean(name)
    ));
    let known = report.decisions.iter().filter_map(|d| d.tool.as_deref());
    let failure = match nearest(name, known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint(format!("its tools are {}", report.tools.join(", "))),
    };
    failure.hint("config/README.md says what an entry of `tools:` looks like")
}

/// The entry that a tool was made of. Of two with one name the first that was not left out, as assembly takes it.
fn entry<'a>(config: &'a Config, name: &str, report: &AssemblyReport) -> Option<&'a ToolEntry> {
    let all = config.tools().iter().filter(|entry| entry.name == name);
    let mut left: Vec<&ToolEntry> = all.collect();
    let first = left.first().copied();
    // Each of these steps decides on all entries that are left, in their order.
    for step in [Step::Config, Step::HostBash, Step::Resolve] {
        let decisions = report.about(name).filter(|decision| decision.step == step);
        let verdicts: Vec<Verdict> = decisions.map(|decision| decision.verdict).collect();
        if verdicts.len() == left.len() {
            let mut verdicts = verdicts.iter();
            left.retain(|_| verdicts.next() != Some(&Verdict::Dropped));
        }
    }
    left.first().copied().or(first)
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "read-only: nothing outside changes",
        Effect::Idempotent => "idempotent: a second time changes nothing more",
        Effect::Effectful => {
            "effectful: each time changes something, so a call cut off is asked about"
        }
    }
}

fn from(tool: Option<&BoundTool>, entry: Option<&ToolEntry>) -> String {
    let source = tool.map(|tool| tool.spec().source);
    match (source, entry) {
        (Some(Source::Config) | None, Some(entry)) => {
            format!("{}, group {}", entry.settings.place(), entry.group)
        }
        (Some(Source::Builtin), _) => "built in".to_owned(),
        (Some(source), _) => source.name().to_owned(),
        (None, None) => "nowhere: nothing stands behind this name here".to_owned(),
    }
}

fn print(
    out: &mut Stream,
    name: &str,
    tool: Option<&BoundTool>,
    config: &Config,
    report: &AssemblyReport,
) {
    let entry = entry(config, name, report);
    let title = out.paint(Tone::Strong, &clean(name));
    let verdict = match tool {
        Some(_) => out.paint(Tone::Good, "agents have it"),
        None => out.paint(Tone::Bad, "agents do not have it"),
    };
    out.line(&format!("{title}: {verdict}"));
    let mut fact = |what: &str, text: &str| out.line(&format!("  {what:9} {}", clean(text)));
    fact("from", &from(tool, entry));
    let is_configured = tool.is_none_or(|tool| tool.spec().source == Source::Config);
    if let Some(entry) = entry.filter(|_| is_configured) {
        fact("use", &entry.use_path);
    }
    if let Some(tool) = tool {
        let spec = tool.spec();
        if tool.id().name != spec.name {
            fact("itself", &tool.id().name);
        }
        fact("effect", effect(spec.effect));
        fact(
            "parallel",
            match spec.parallel {
                true => "beside other calls of a message",
                false => "alone: other calls of a message wait",
            },
        );
        if spec.return_direct {
            fact("then", "the turn ends with its result");
        }
        let manifest = &spec.manifest;
        let optional = manifest
            .may_write
            .iter()
            .map(|name| format!("{name} (if the graph has it)"));
        let writes: Vec<String> = manifest.writes.iter().cloned().chain(optional).collect();
        if !writes.is_empty() {
            fact("writes", &writes.join(", "));
        }
        let routes = manifest.routes.iter().map(|route| match route.optional {
            true => format!("{} (if the node maps it)", route.label),
            false => route.label.clone(),
        });
        let routes: Vec<String> = routes.collect();
        if !routes.is_empty() {
            fact("routes", &routes.join(", "));
        }
        out.line(&format!("\n{}", clean(spec.description.trim())));
        print_arguments(out, &spec.args.arguments());
    }
    let title = out.paint(Tone::Strong, "why");
    out.line(&format!("\n{title}"));
    for decision in report.about(name) {
        let mark = match decision.verdict {
            Verdict::Kept => out.paint(Tone::Good, "+"),
            Verdict::Dropped => out.paint(Tone::Bad, "-"),
            Verdict::Noted => "·".to_owned(),
        };
        out.line(&format!(
            "  {mark} {}: {}",
            decision.step.title(),
            clean(&decision.reason)
        ));
    }
}

fn print_arguments(out: &mut Stream, arguments: &[Argument]) {
    let title = out.paint(Tone::Strong, "arguments");
    if arguments.is_empty() {
        return out.line(&format!("\n{title}: none"));
    }
    out.line(&format!("\n{title}"));
    let width = arguments.iter().map(|one| one.name.len()).max();
    for argument in arguments {
        let need = match (argument.needed, &argument.default) {
            (true, _) => ", needed".to_owned(),
            (false, Some(default)) => format!(", {default} if left out"),
            (false, None) => ", may be left out".to_owned(),
        };
        let name = format!("{:1$}", argument.name, width.unwrap_or(0));
        out.line(&clean(&format!("  {name}  {}{need}", argument.takes)));
        if let Some(description) = &argument.description {
            let words: Vec<&str> = description.split_whitespace().collect();
            let words = out.paint(Tone::Faint, &clean(&words.join(" ")));
            out.line(&format!("  {:1$}  {words}", "", width.unwrap_or(0)));
        }
    }
}

fn to_json(
    name: &str,
    tool: Option<&BoundTool>,
    config: &Config,
    report: &AssemblyReport,
) -> Value {
    let entry = entry(config, name, report)
        .filter(|_| tool.is_none_or(|tool| tool.spec().source == Source::Config));
    let mut json = json!({
        "name": name,
        "available": tool.is_some(),
        "config": report.config,
        "entry": entry.map(|entry| json!({
            "place": entry.settings.place().to_string(),
            "group": entry.group,
            "use": entry.use_path,
        })),
        "decisions": report.about(name).collect::<Vec<_>>(),
    });
    if let Some(tool) = tool {
        let spec = tool.spec();
        json["source"] = json!(spec.source);
        json["own_name"] = json!(tool.id().name);
        json["description"] = json!(spec.description);
        json["effect"] = json!(spec.effect);
        json["parallel"] = json!(spec.parallel);
        json["return_direct"] = json!(spec.return_direct);
        json["manifest"] = json!(spec.manifest);
        json["arguments"] = json!(spec.args.arguments());
        json["schema"] = spec.args.value().clone();
    }
    json
}
