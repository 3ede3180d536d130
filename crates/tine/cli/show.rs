//! `tine show`

use super::Cx;
use super::failure::Failure;
use super::host::{Host, read};
use super::place;
use super::status::Status;
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;
use tine::graphfile::{Outline, Registry, mermaid};

/// Draws a graph file as a Mermaid flowchart
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The graph: a file, or the name of one that ships with tine
    graph: PathBuf,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine show graphs/news_report.yaml
  tine show graphs/news_report.yaml > news_report.mmd

The lines that begin with %% are comments to Mermaid. Names of tools and models are not looked up.";

pub(crate) fn show(cx: &mut Cx, args: &ShowArgs) -> Result<Status, Failure> {
    let path = place::graph(&cx.env, &args.graph);
    let (text, shown) = read(cx, &path)?;
    let registry = Registry {
        checkpointer: true,
        offline: true,
        ..Registry::default()
    };
    let (outline, diagnostics) = Host::check(&shown, &text, &path, &registry);
    let Some(outline) = outline else {
        cx.stderr.write(&diagnostics.render());
        return Err(
            Failure::usage(format!("{shown} can not be drawn")).hint(format!(
                "`tine validate {shown}` checks it with its tools and models"
            )),
        );
    };
    cx.stdout.write(&head(&outline));
    cx.stdout.write(&mermaid(&outline));
    Ok(Status::Done)
}

/// What the graph is, as comments of the drawing.
fn head(outline: &Outline) -> String {
    let mut head = format!("%% {}, revision {}", outline.name, outline.revision);
    if let Some(description) = &outline.description {
        let words: Vec<_> = description.split_whitespace().collect();
        let _ = write!(head, ": {}", words.join(" "));
    }
    let nodes = match outline.nodes.len() {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    let width = match outline.width {
        Some(1) => "one at a time".to_owned(),
        Some(width) => format!("at most {width} in one step"),
        None => "too many ways to tell how many run in one step".to_owned(),
    };
    let channels = |names: &[String]| match names {
        [] => "nothing".to_owned(),
        names => names.join(", "),
    };
    let (input, output) = (channels(&outline.input), channels(&outline.output));
    let _ = writeln!(head, "\n%% {nodes}, {width}; takes {input}; gives {output}");
    head
}
