//! Which nodes can run in the same step: a search over sets of active nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Flow, Way};
use crate::diag::{Diagnostic, G302, G306, Level, Span};
use crate::report::Report;
use crate::syntax::At;

/// How many sets are examined before the search gives up and says so.
const MOST_SETS: usize = 4096;
/// How many combinations of ways are followed from one set.
const MOST_COMBINATIONS: usize = 4096;

/// What is active in a step, and which joins have been fed how far.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    active: BTreeSet<usize>,
    fed: BTreeMap<usize, BTreeSet<usize>>,
}

/// A way that was taken, and by whom; `None` for the start.
type Step<'f> = (Option<usize>, &'f Way);

impl Flow<'_> {
    /// Searches all steps the graph can be in; returns the greatest width if it saw them all.
    pub(super) fn check_active(&self, report: &mut Report<'_>, reached: &[bool]) -> Option<usize> {
        let mut seen: BTreeSet<Moment> = BTreeSet::new();
        let mut queue = std::collections::VecDeque::new();
        let mut fired = vec![false; self.nodes.len()];
        let mut conflicts: BTreeMap<(usize, usize, String), (Option<usize>, Vec<At>)> =
            BTreeMap::new();
        let (mut width, mut complete) = (0, true);
        let visit = |moment: Moment,
                     steps: &[Step<'_>],
                     queue: &mut std::collections::VecDeque<Moment>,
                     seen: &mut BTreeSet<Moment>| {
            if seen.contains(&moment) {
                return None;
            }
            let found = self.conflicts(&moment, steps);
            seen.insert(moment.clone());
            queue.push_back(moment);
            Some(found)
        };
        let mut first = Vec::new();
        for way in &self.start {
            let mut moment = Moment::default();
            self.take(&mut moment, None, way, &mut fired);
            first.push((moment, vec![(None, way)]));
        }
        for (moment, steps) in first {
            if let Some(found) = visit(moment, &steps, &mut queue, &mut seen) {
                conflicts.extend(found);
            }
        }
        while let Some(moment) = queue.pop_front() {
            width = width.max(moment.active.len());
            if seen.len() > MOST_SETS {
                complete = false;
                break;
            }
            let (all, combined) = self.combinations(&moment);
            complete &= all;
            for steps in combined {
                let mut next = Moment {
                    active: BTreeSet::new(),
                    fed: moment.fed.clone(),
                };
                for (from, way) in &steps {
                    self.take(&mut next, *from, way, &mut fired);
                }
                if next.active.is_empty() {
                    continue;
                }
                if let Some(found) = visit(next, &steps, &mut queue, &mut seen) {
                    for (key, origin) in found {
                        conflicts.entry(key).or_insert(origin);
                    }
                }
            }
        }
        for ((a, b, channel), (from, at)) in conflicts {
            self.report_conflict(report, a, b, &channel, from, &at);
        }
        if complete {
            self.report_joins(report, &fired, reached);
        } else {
            let finding = Diagnostic::new(&G302, "not all steps of this graph were examined")
                .level(Level::Note)
                .at(
                    report.key(&At::root().key("nodes")),
                    format!("more than {MOST_SETS} sets of active nodes"),
                )
                .help(
                    "G302 and G306 are checked as far as the search went; the run checks the rest",
                );
            report.push(finding);
        }
        complete.then_some(width)
    }

    /// Activates the targets of a way, or feeds the joins that wait for its source.
    fn take(&self, moment: &mut Moment, from: Option<usize>, way: &Way, fired: &mut [bool]) {
        for target in &way.targets {
            let waited = from.filter(|from| self.waits[*target].contains(from));
            let Some(from) = waited else {
                moment.active.insert(*target);
                continue;
            };
            let fed = moment.fed.entry(*target).or_default();
            fed.insert(from);
            if self.waits[*target]
                .iter()
                .all(|source| fed.contains(source))
            {
                moment.fed.remove(target);
                moment.active.insert(*target);
                fired[*target] = true;
            }
        }
    }

    /// Returns the combinations of ways the active nodes can take, and whether these are all.
    fn combinations<'f>(&'f self, moment: &Moment) -> (bool, Vec<Vec<Step<'f>>>) {
        let mut combined: Vec<Vec<Step<'f>>> = vec![Vec::new()];
        for number in &moment.active {
            let ways = &self.ways[*number];
            if ways.is_empty() {
                continue;
            }
            if combined.len() * ways.len() > MOST_COMBINATIONS {
                return (false, combined);
            }
            combined = combined
                .iter()
                .flat_map(|steps| {
                    ways.iter().map(|way| {
                        let mut steps = steps.clone();
                        steps.push((Some(*number), way));
                        steps
                    })
                })
                .collect();
        }
        (true, combined)
    }

    /// Finds pairs of active nodes that write a channel which keeps one value a step.
    fn conflicts(
        &self,
        moment: &Moment,
        steps: &[Step<'_>],
    ) -> Vec<((usize, usize, String), (Option<usize>, Vec<At>))> {
        let mut found = Vec::new();
        let active: Vec<usize> = moment.active.iter().copied().collect();
        for (index, a) in active.iter().enumerate() {
            for b in &active[index + 1..] {
                for (channel, _) in &self.nodes[*a].writes {
                    let single = self
                        .channels
                        .get(channel)
                        .is_some_and(|plan| plan.reduce.single_write());
                    let both = self.nodes[*b]
                        .writes
                        .iter()
                        .any(|(other, _)| other == channel);
                    if !single || !both {
                        continue;
                    }
                    let origin = steps
                        .iter()
                        .find(|(_, way)| way.targets.contains(a) && way.targets.contains(b))
                        .map_or((None, Vec::new()), |(from, way)| (*from, way.at.clone()));
                    found.push(((*a, *b, channel.clone()), origin));
                }
            }
        }
        found
    }

    fn report_conflict(
        &self,
        report: &mut Report<'_>,
        a: usize,
        b: usize,
        channel: &str,
        from: Option<usize>,
        origin: &[At],
    ) {
        let (first, second) = (&self.nodes[a], &self.nodes[b]);
        let title = format!(
            "`{}` and `{}` can write `{channel}` in the same step",
            first.id, second.id
        );
        let declared = report.key(&At::root().key("state").key(channel));
        let mut finding = Diagnostic::new(&G302, title)
            .at(place(report, first, channel), "first write")
            .at(place(report, second, channel), "second write")
            .context(declared, "reduce: last keeps one value a step");
        if let [at] = origin {
            let label = match from {
                Some(from) => format!("both run after `{}`", self.nodes[from].id),
                None => "both run first".to_owned(),
            };
            finding = finding.context(report.value(at), label);
        }
        report.push(finding.help(format!(
            "give `{channel}` a reducer that merges (`append`, `merge`, ...), or write two channels"
        )));
    }

    fn report_joins(&self, report: &mut Report<'_>, fired: &[bool], reached: &[bool]) {
        for (number, node) in self.nodes.iter().enumerate() {
            let waits = &self.waits[number];
            // A source without a way here was reported as such.
            let connected = waits.iter().all(|source| {
                self.ways[*source]
                    .iter()
                    .any(|way| way.targets.contains(&number))
            });
            if waits.is_empty() || fired[number] || !reached[number] || !connected {
                continue;
            }
            let finding = Diagnostic::new(&G306, format!("`{}` waits in vain", node.id))
                .at(
                    report.value(&node.at.key("wait_for")),
                    "no run of the graph brings all of them here",
                )
                .help("nodes that exclude each other cannot both be waited for");
            report.push(finding);
        }
    }
}

/// Returns the place that says a node writes a channel.
fn place(report: &Report<'_>, node: &crate::load::NodePlan, channel: &str) -> Span {
    match node.writes.iter().find(|(written, _)| written == channel) {
        // A key of `set` names the channel itself; elsewhere the channel or the tool is a value.
        Some((_, at)) if at.name() == Some(channel) || *at == node.at => report.key(at),
        Some((_, at)) => report.value(at),
        None => report.key(&node.at),
    }
}
