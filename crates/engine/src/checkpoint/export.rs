//! The canonical text of a stored thread.

use super::{Checkpoint, Record, RecordKind};
use crate::value::to_value;

/// The canonical text of checkpoints: equal ones give equal bytes, wherever they are stored and however they came
/// about. For comparing threads, for hashes, for files under version control.
///
/// It takes the graphs of a thread as [`Checkpointer::history`](super::Checkpointer::history) gives them, newest first:
/// the root under the empty name, each child under its namespace.
///
/// # Format
///
/// JSON lines, each ended by a line feed. The first says what follows: `{"tine":"thread","version":1}`. Then one line
/// for each checkpoint, graph by graph in code point order of their names, the oldest checkpoint first: `created`,
/// `deferred`, `graph` (the namespace), `id`, `invocation`, `joins`, `next`, `parent`, `ran`, `records`, `run`, `source`,
/// `step` and `values`, all of them always there.
///
/// Every line is one value in canonical JSON: no spaces, keys in code point order, integers without a fraction, floats
/// with one and in their shortest form. No library's order of keys has a part in it. Records stand by task and key, for
/// the order in which tasks finish is no part of a state; those of one key, which only client commands have, stand in
/// the order in which they came.
#[must_use]
pub fn export<'a>(graphs: impl IntoIterator<Item = (&'a str, &'a [Checkpoint])>) -> String {
    let mut graphs: Vec<(&str, &[Checkpoint])> = graphs.into_iter().collect();
    graphs.sort_by_key(|(name, _)| *name);
    let mut text = String::from("{\"tine\":\"thread\",\"version\":1}\n");
    for (name, checkpoints) in graphs {
        for checkpoint in checkpoints.iter().rev() {
            text.push_str(&line(name, checkpoint));
            text.push('\n');
        }
    }
    text
}

fn line(graph: &str, checkpoint: &Checkpoint) -> String {
    let mut checkpoint = checkpoint.clone();
    checkpoint.records.sort_by_key(place);
    let mut fields = to_value(&checkpoint)
        .ok()
        .and_then(|fields| fields.as_map().cloned())
        .expect("a checkpoint is data: text keys and finite numbers only");
    fields.insert("graph".into(), graph.into());
    crate::value::Value::from(fields).to_canonical()
}

/// Where a record stands. Commands fold in the order in which they came, so that is part of the state.
fn place(record: &Record) -> (std::sync::Arc<str>, String) {
    let key = record.key();
    match record.kind {
        RecordKind::Command { .. } => (key.task, "command".to_owned()),
        _ => (key.task, key.name),
    }
}
