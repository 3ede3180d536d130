//! Channels nobody uses, and tools that models and their tools nodes disagree about.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::diag::{Diagnostic, G309};
use crate::load::{ChannelPlan, NodePlan};
use crate::report::Report;
use crate::syntax::At;

/// Warns of channels that are never written or never read.
///
/// Without `input` a caller may set every channel, without `output` it gets every channel: then
/// only a channel that no node touches is odd.
pub(crate) fn check_usage(
    report: &mut Report<'_>,
    nodes: &[NodePlan],
    channels: &IndexMap<String, ChannelPlan>,
    reads: &BTreeSet<String>,
    input: Option<&[String]>,
    output: Option<&[String]>,
) {
    let names = |list: Option<&[String]>, name: &str| {
        list.is_some_and(|list| list.iter().any(|listed| listed == name))
    };
    for (name, channel) in channels {
        let written = nodes
            .iter()
            .any(|node| node.writes.iter().any(|(written, _)| written == name));
        let read = reads.contains(name);
        // What is promoted is between the host's tool search and its models.
        let hosted = channel.reduce.name() == "promoted";
        let set = written || hosted || names(input, name) || channel.default.is_some();
        let got = read || hosted || names(output, name);
        let problem = match (set, got) {
            (true, true) => continue,
            (false, false) => "nothing writes or reads",
            (false, true) if input.is_some() && !channel.reduce.has_empty() => "nothing writes",
            (true, false) if output.is_some() => "nothing reads",
            _ => continue,
        };
        let at = At::root().key("state").key(name);
        let finding = Diagnostic::new(&G309, format!("{problem} channel `{name}`"))
            .at(report.key(&at), "of no use so far")
            .help(format!(
                "use `{name}`, name it in `input` or `output`, or remove it"
            ));
        report.push(finding);
    }
}
