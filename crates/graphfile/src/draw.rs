//! Drawings of graphs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::graph::{Edge, Outline, To, Why};
use crate::spec::Kind;

/// Draws a graph as a Mermaid flowchart.
///
/// Solid arrows are always taken, dashed ones under the condition they carry, dotted ones by a
/// Command that raises their label.
pub fn mermaid(outline: &Outline) -> String {
    let mut out = String::from("flowchart TD\n");
    let ids: BTreeMap<&str, String> = outline
        .nodes
        .keys()
        .enumerate()
        .map(|(number, name)| (name.as_str(), format!("n{number}")))
        .collect();
    out.push_str("  start([start])\n");
    for (name, kind) in &outline.nodes {
        let id = ids.get(name.as_str()).map_or("", String::as_str);
        let (open, close) = shape(*kind);
        line(
            &mut out,
            &format!(
                "{id}{open}\"{name}<br/><small>{}</small>\"{close}",
                kind.as_str()
            ),
        );
    }
    if outline.edges.iter().any(|edge| edge.to == To::End) {
        out.push_str("  finish([end])\n");
    }
    for edge in &outline.edges {
        line(&mut out, &arrow(edge, &ids, outline));
    }
    // Mermaid has one kind of broken line of its own, which the routes have.
    let dashed: Vec<String> = outline
        .edges
        .iter()
        .enumerate()
        .filter(|(_, edge)| matches!(edge.why, Why::When(_) | Why::Else))
        .map(|(number, _)| number.to_string())
        .collect();
    if !dashed.is_empty() {
        line(
            &mut out,
            &format!("linkStyle {} stroke-dasharray:8 4", dashed.join(",")),
        );
    }
    out
}

/// `start` and `end` are words of Mermaid or of the format, so nodes go by number.
fn arrow(edge: &Edge, ids: &BTreeMap<&str, String>, outline: &Outline) -> String {
    let from = match &edge.from {
        Some(name) => ids.get(name.as_str()).map_or("start", String::as_str),
        None => "start",
    };
    let to = match &edge.to {
        To::Node(name) => ids.get(name.as_str()).map_or("finish", String::as_str),
        To::End => "finish",
    };
    let waits = match (&edge.from, &edge.to) {
        (Some(from), To::Node(to)) => outline.joins.get(to).is_some_and(|all| all.contains(from)),
        _ => false,
    };
    match &edge.why {
        Why::Static if waits => format!("{from} -- \"waits for all\" --> {to}"),
        Why::Static => format!("{from} --> {to}"),
        Why::When(when) => format!("{from} -- \"{}\" --> {to}", text(when)),
        Why::Else => format!("{from} -- \"else\" --> {to}"),
        Why::Route(label) => format!("{from} -. \"{}\" .-> {to}", text(label)),
    }
}

fn shape(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Model => ("(", ")"),
        Kind::Tools | Kind::Tool => ("[[", "]]"),
        Kind::Interrupt => ("{{", "}}"),
        Kind::Set | Kind::Call => ("[", "]"),
    }
}

/// Writes text so that it neither ends the label nor is read as markup.
fn text(text: &str) -> String {
    let mut out = String::new();
    for c in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
    {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | ';' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str("  ");
    out.push_str(text);
    out.push('\n');
}
