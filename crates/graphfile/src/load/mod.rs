//! From text to a graph: reading, decoding, resolving, compiling, analysing, building.

mod channels;
mod compile;
mod kinds;
mod nodes;
mod outline;
mod plan;
mod tools;

pub(crate) use channels::ChannelPlan;
pub(crate) use nodes::target;
pub(crate) use plan::{InterruptPlan, NodePlan, SpecPlan, ThenPlan};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;
use tine_engine::Value;

use crate::build::build;
use crate::diag::{Diagnostic, Diagnostics, G006, G007, G108, G310, G501, Span, find_secrets};
use crate::expr::{Names, Root, VISITS, unknown_channel};
use crate::flow::{Flow, check_targets, check_usage, check_visits};
use crate::graph::{Channels, LoadedGraph, Outline};
use crate::host::{NoSources, NodeKinds, Registry, Sources};
use crate::report::{Report, nearest};
use crate::spec::{FileKeys, Kind, decode, decode_node, decode_then, merge_defaults};
use crate::syntax::{At, read};
use crate::types::{Others, Type, Types, read_types, record};
use compile::Compiler;
use nodes::Nodes;
use tools::{NamedTool, ToolNames};

const SCHEMA: &str = "graph/v1";

/// Loads a graph file.
///
/// `name` is the path to show in messages. The graph exists if and only if there is no error;
/// warnings and notes come with it.
pub fn load(
    name: &str,
    text: &str,
    sources: &dyn Sources,
    kinds: &dyn NodeKinds,
    registry: &Registry,
) -> (Option<LoadedGraph>, Diagnostics) {
    let (loaded, mut diagnostics) = analyse(name, text, sources, registry);
    let Some(loaded) = loaded else {
        return (None, diagnostics);
    };
    match build(&loaded, kinds) {
        Ok(graph) => (
            Some(LoadedGraph {
                graph,
                outline: Arc::new(loaded.outline),
            }),
            diagnostics,
        ),
        Err((at, problem)) => {
            let finding =
                Diagnostic::new(&G108, problem).at(loaded.index.key(&at), "cannot be made");
            diagnostics.push(finding);
            diagnostics.finish(&[]);
            (None, diagnostics)
        }
    }
}

/// Loads what was kept of a graph file, [`Outline::definition`], with no need of the file or of those beside it.
///
/// It gives the graph that the file gave, if the registry has what it names. Places in messages are those of the
/// definition as JSON text, which `name` stands for.
pub fn load_definition(
    name: &str,
    definition: &Value,
    kinds: &dyn NodeKinds,
    registry: &Registry,
) -> (Option<LoadedGraph>, Diagnostics) {
    let text = format!("{:#}\n", definition.to_json());
    load(name, &text, &NoSources, kinds, registry)
}

/// Checks a graph file without making its nodes.
///
/// What [`load`] would refuse, this refuses, but for what a host says when it makes a node.
pub fn check(
    name: &str,
    text: &str,
    sources: &dyn Sources,
    registry: &Registry,
) -> (Option<Outline>, Diagnostics) {
    let (loaded, diagnostics) = analyse(name, text, sources, registry);
    (loaded.map(|loaded| loaded.outline), diagnostics)
}

/// A file without errors, ready to be built.
pub(crate) struct Analysed {
    pub(crate) outline: Outline,
    pub(crate) types: Arc<Types>,
    pub(crate) channels: IndexMap<String, ChannelPlan>,
    pub(crate) view: Channels,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) start: ThenPlan,
    /// Whether something asks how often its node has run.
    pub(crate) counts_visits: bool,
    pub(crate) index: crate::syntax::Index,
}

fn analyse(
    name: &str,
    text: &str,
    sources: &dyn Sources,
    registry: &Registry,
) -> (Option<Analysed>, Diagnostics) {
    let secrets: Vec<Span> = find_secrets(text);
    let (document, diagnostics) = read(name, text);
    let mut report = Report {
        text,
        index: crate::syntax::Index::default(),
        diagnostics,
    };
    let mut words = Vec::new();
    for span in secrets {
        let word = text
            .get(span.start..span.end)
            .unwrap_or_default()
            .to_owned();
        let finding = Diagnostic::new(&G501, "this looks like a secret")
            .at(span, "masked here")
            .help("keep keys in the environment and name them in config.yaml");
        report.push(finding);
        words.push(word);
    }
    let analysed = document.and_then(|document| {
        report.index = document.index;
        analyse_document(&mut report, &document.root, sources, registry)
    });
    let failed = report.errors() > 0;
    let Report {
        index,
        mut diagnostics,
        ..
    } = report;
    diagnostics.finish(&words);
    let analysed = match failed {
        true => None,
        false => analysed.map(|analysed| Analysed { index, ..analysed }),
    };
    (analysed, diagnostics)
}

fn analyse_document(
    report: &mut Report<'_>,
    root: &Yaml,
    sources: &dyn Sources,
    registry: &Registry,
) -> Option<Analysed> {
    check_schema(report, root)?;
    let keys: FileKeys = decode(report, &At::root(), root, &[])?;
    check_head(report, &keys);
    let types = Arc::new(read_types(report, &keys.types));
    let channels = channels::read_channels(report, &keys.state, &types, registry);
    let state: IndexMap<String, Type> = channels
        .iter()
        .map(|(name, channel)| (name.clone(), channel.kind.clone()))
        .collect();
    for (section, names) in [("input", &keys.input), ("output", &keys.output)] {
        check_listed(report, section, names.as_deref(), &state);
    }
    let drafts: Vec<_> = keys
        .nodes
        .iter()
        .filter_map(|(id, node)| {
            let at = At::root().key("nodes").key(id);
            channels::check_name(report, &at, "node", id, &["start", "end"]);
            let merged = merge_defaults(report, &at, node, &keys.defaults);
            decode_node(report, id, at, &merged)
        })
        .collect();
    let start = decode_then(report, &At::root().key("start"), &keys.start, "start");

    let tools = ToolNames {
        registry,
        toolsets: &keys.toolsets,
    };
    tools.check_toolsets(report);
    let view = Channels::new(&state, &types);
    let names = Names {
        state,
        roots: vec![run_root()],
        assured: BTreeSet::new(),
        present: Vec::new(),
    };
    let compiler = Compiler {
        report,
        types: &types,
        sources,
        reads: BTreeSet::new(),
        files: Vec::new(),
    };
    let mut compile = Nodes {
        compiler,
        types: &types,
        channels: &channels,
        names,
        view: view.clone(),
        tools,
        registry,
        named: BTreeMap::new(),
    };
    let nodes: Vec<NodePlan> = drafts.iter().map(|draft| compile.compile(draft)).collect();
    let names = compile.names.clone();
    let start = match &start {
        Some(start) => compile.then_plan(start, &names, "start"),
        None => ThenPlan::None,
    };
    let Nodes {
        compiler, named, ..
    } = compile;
    let Compiler {
        report,
        reads,
        files,
        ..
    } = compiler;

    let targets_known = check_targets(report, &nodes, &start);
    check_visits(report, &nodes, &keys.limits.max_visits);
    check_offers(report, &nodes, &named);
    // With nodes that could not be read the graph is not the one that was meant.
    let whole =
        targets_known && drafts.len() == keys.nodes.len() && !matches!(start, ThenPlan::None);
    let mut width = None;
    if whole && nodes.iter().all(|node| node.kind.is_some()) {
        width = Flow::new(&nodes, &channels, &start).check(report, &keys.limits.max_visits);
        let (input, output) = (keys.input.as_deref(), keys.output.as_deref());
        if report.errors() == 0 {
            check_usage(report, &nodes, &channels, &reads, input, output);
        }
    }
    let outline = outline::outline(
        &keys, root, &files, &types, &channels, &nodes, &start, width,
    );
    Some(Analysed {
        outline,
        types: Arc::clone(&types),
        channels,
        view,
        // A request tells its model which visit of the node it is.
        counts_visits: reads.contains(VISITS)
            || nodes.iter().any(|node| node.kind == Some(Kind::Model)),
        nodes,
        start,
        index: crate::syntax::Index::default(),
    })
}

/// `None` if the file is of a format this program does not know.
fn check_schema(report: &mut Report<'_>, root: &Yaml) -> Option<()> {
    let at = At::root().key("schema");
    let finding = match root.get("schema").map(Yaml::as_str) {
        Some(Some(SCHEMA)) => return Some(()),
        None => Diagnostic::new(&G006, "the file has no `schema`")
            .at(
                report.first_line(),
                "the first key says which format this is",
            )
            .help(format!("begin with `schema: {SCHEMA}`")),
        Some(schema) => {
            let newer = schema
                .and_then(|schema| schema.strip_prefix("graph/v"))
                .and_then(|version| version.parse::<u32>().ok())
                .is_some_and(|version| version > 1);
            let (title, help) = match newer {
                true => (
                    "the file is of a newer format",
                    "use a newer program".to_owned(),
                ),
                false => ("unknown `schema`", format!("write `schema: {SCHEMA}`")),
            };
            Diagnostic::new(&G006, title)
                .at(report.brief(&at), format!("this program reads `{SCHEMA}`"))
                .help(help)
        }
    };
    report.push(finding);
    None
}

fn check_head(report: &mut Report<'_>, keys: &FileKeys) {
    let root = At::root();
    let name = root.key("name");
    if !keys.name.starts_with(|c: char| c.is_ascii_lowercase())
        || !keys
            .name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    {
        let finding = Diagnostic::new(
            &crate::diag::G106,
            format!("`{}` is not a good name for a graph", keys.name),
        )
        .at(
            report.value(&name),
            "a name is small letters, digits and `_`, a letter first",
        );
        report.push(finding);
    }
    if keys.revision == 0 {
        let finding = Diagnostic::new(&crate::diag::G004, "revisions count from 1")
            .at(report.value(&root.key("revision")), "this is 0");
        report.push(finding);
    }
    if keys.migrate.is_some() {
        let finding = Diagnostic::new(&G007, "`migrate` is not supported yet").at(
            report.key(&root.key("migrate")),
            "stored threads are not converted in this version",
        );
        report.push(finding);
    }
    for kind in keys.defaults.keys() {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        if !known.contains(&kind.as_str()) {
            let near = nearest(kind, known.iter().copied());
            let finding =
                Diagnostic::new(&crate::diag::G002, format!("no node type named `{kind}`"))
                    .at(
                        report.key(&root.key("defaults").key(kind)),
                        "defaults go by the type of nodes",
                    )
                    .help_if(near.map(|near| format!("did you mean `{near}`?")));
            report.push(finding);
        }
    }
}

fn check_listed(
    report: &mut Report<'_>,
    section: &str,
    names: Option<&[String]>,
    state: &IndexMap<String, Type>,
) {
    for (index, name) in names.unwrap_or_default().iter().enumerate() {
        if !state.contains_key(name) {
            let span = report.value(&At::root().key(section).item(index));
            let finding = unknown_channel(report, state, name, span);
            report.push(finding);
        }
    }
}

/// What `run` is in expressions and prompts.
fn run_root() -> Root {
    let fields = [
        ("thread", Type::text(), true),
        ("id", Type::text(), true),
        ("step", Type::integer(), true),
        ("visits", Type::integer(), true),
        ("now", Type::text(), true),
        ("depth", Type::integer(), true),
    ];
    Root {
        name: "run",
        kind: record(&fields, Others::Forbidden),
    }
}

/// Checks that the tools offered to a model may run in the tools nodes it leads to.
fn check_offers(
    report: &mut Report<'_>,
    nodes: &[NodePlan],
    named: &BTreeMap<String, Vec<NamedTool>>,
) {
    let find = |id: &str| nodes.iter().find(|node| node.id == id);
    for model in nodes.iter().filter(|node| node.kind == Some(Kind::Model)) {
        for (to, _) in model.targets() {
            let crate::graph::To::Node(id) = to else {
                continue;
            };
            let Some(runner) = find(id).filter(|node| node.kind == Some(Kind::Tools)) else {
                continue;
            };
            let (Some(offered), Some(allowed)) = (named.get(&model.id), named.get(&runner.id))
            else {
                continue;
            };
            for tool in offered {
                if allowed.iter().any(|other| other.name == tool.name) {
                    continue;
                }
                let title = format!(
                    "`{}` offers `{}`, which may not run in `{}`",
                    model.id, tool.name, runner.id
                );
                let finding = Diagnostic::new(&G310, title)
                    .at(report.value(&tool.at), "offered to the model")
                    .context(report.value(&runner.at.key("tools")), "not allowed here")
                    .help("give both nodes the same toolset");
                report.push(finding);
            }
        }
    }
}
