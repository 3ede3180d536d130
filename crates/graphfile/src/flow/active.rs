//! Which nodes can run in the same step: a search over sets of active nodes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Flow, Way};
use crate::diag::{Diagnostic, G302, G306, Level, Span};
use crate::report::Report;
use crate::syntax::At;

/// How many sets are examined before the search gives up and says so.
const MOST_SETS: usize = 4096;
/// How many combinations of ways are followed in all.
const MOST_COMBINATIONS: usize = 1 << 16;

/// What is active in a step, and which joins have been fed how far.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    active: BTreeSet<usize>,
    fed: BTreeMap<usize, BTreeSet<usize>>,
}

/// A way that was taken, and by whom; `None` for the start.
type Step<'f> = (Option<usize>, &'f Way);

/// Two nodes of one step that write a channel which keeps one value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Conflict {
    first: usize,
    second: usize,
    channel: String,
}

/// The way that activated both nodes of a conflict, if it was one.
#[derive(Clone, Debug, Default)]
struct Origin {
    from: Option<usize>,
    at: Vec<At>,
}

struct Search<'f, 'p> {
    flow: &'f Flow<'p>,
    seen: BTreeSet<Moment>,
    queue: VecDeque<Moment>,
    fired: Vec<bool>,
    conflicts: BTreeMap<Conflict, Origin>,
    width: usize,
    /// How many more combinations may be followed.
    left: usize,
}

impl Flow<'_> {
    /// Searches all steps the graph can be in; returns the greatest width if it saw them all.
    pub(super) fn check_active(&self, report: &mut Report<'_>, reached: &[bool]) -> Option<usize> {
        let mut search = Search {
            flow: self,
            seen: BTreeSet::new(),
            queue: VecDeque::new(),
            fired: vec![false; self.nodes.len()],
            conflicts: BTreeMap::new(),
            width: 0,
            left: MOST_COMBINATIONS,
        };
        let complete = search.run();
        let Search {
            fired,
            conflicts,
            width,
            ..
        } = search;
        for (conflict, origin) in conflicts {
            self.report_conflict(report, &conflict, &origin);
        }
        if complete {
            self.report_joins(report, &fired, reached);
            return Some(width);
        }
        let finding = Diagnostic::new(&G302, "not all steps of this graph were examined")
            .level(Level::Note)
            .at(
                report.key(&At::root().key("nodes")),
                "too many sets of active nodes",
            )
            .help("G302 and G306 are checked as far as the search went; the run checks the rest");
        report.push(finding);
        None
    }
}

impl<'f> Search<'f, '_> {
    /// Visits every moment that can be reached; `false` if there are too many.
    fn run(&mut self) -> bool {
        for way in &self.flow.start {
            self.advance(&Moment::default(), &[(None, way)]);
        }
        while let Some(moment) = self.queue.pop_front() {
            if self.seen.len() > MOST_SETS {
                return false;
            }
            self.width = self.width.max(moment.active.len());
            let Some(combinations) = self.combinations(&moment) else {
                return false;
            };
            for steps in combinations {
                self.advance(&moment, &steps);
            }
        }
        true
    }

    fn advance(&mut self, before: &Moment, steps: &[Step<'f>]) {
        let mut next = Moment {
            active: BTreeSet::new(),
            fed: before.fed.clone(),
        };
        for (from, way) in steps {
            self.take(&mut next, *from, way);
        }
        if next.active.is_empty() || self.seen.contains(&next) {
            return;
        }
        self.find_conflicts(&next, steps);
        self.seen.insert(next.clone());
        self.queue.push_back(next);
    }

    /// Activates the targets of a way, or feeds the joins that wait for its source.
    fn take(&mut self, moment: &mut Moment, from: Option<usize>, way: &Way) {
        for target in &way.targets {
            let waits = &self.flow.waits[*target];
            let Some(from) = from.filter(|from| waits.contains(from)) else {
                moment.active.insert(*target);
                continue;
            };
            let fed = moment.fed.entry(*target).or_default();
            fed.insert(from);
            if waits.iter().all(|source| fed.contains(source)) {
                moment.fed.remove(target);
                moment.active.insert(*target);
                self.fired[*target] = true;
            }
        }
    }

    /// Returns the combinations of ways the active nodes can take; `None` if there are too many.
    fn combinations(&mut self, moment: &Moment) -> Option<Vec<Vec<Step<'f>>>> {
        let flow = self.flow;
        let mut combined: Vec<Vec<Step<'f>>> = vec![Vec::new()];
        for number in &moment.active {
            let ways = &flow.ways[*number];
            if ways.is_empty() {
                continue;
            }
            if combined.len() * ways.len() > self.left {
                return None;
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
        self.left = self.left.checked_sub(combined.len())?;
        Some(combined)
    }

    fn find_conflicts(&mut self, moment: &Moment, steps: &[Step<'_>]) {
        let flow = self.flow;
        let active: Vec<usize> = moment.active.iter().copied().collect();
        for (index, first) in active.iter().enumerate() {
            for second in &active[index + 1..] {
                for (channel, _) in &flow.nodes[*first].writes {
                    let single = flow
                        .channels
                        .get(channel)
                        .is_some_and(|plan| plan.reduce.single_write());
                    let both = flow.nodes[*second]
                        .writes
                        .iter()
                        .any(|(other, _)| other == channel);
                    if !single || !both {
                        continue;
                    }
                    let together = steps.iter().find(|(_, way)| {
                        way.targets.contains(first) && way.targets.contains(second)
                    });
                    let origin = together.map_or_else(Origin::default, |(from, way)| Origin {
                        from: *from,
                        at: way.at.clone(),
                    });
                    let conflict = Conflict {
                        first: *first,
                        second: *second,
                        channel: channel.clone(),
                    };
                    self.conflicts.entry(conflict).or_insert(origin);
                }
            }
        }
    }
}

impl Flow<'_> {
    fn report_conflict(&self, report: &mut Report<'_>, conflict: &Conflict, origin: &Origin) {
        let (first, second) = (&self.nodes[conflict.first], &self.nodes[conflict.second]);
        let channel = conflict.channel.as_str();
        let title = format!(
            "`{}` and `{}` can write `{channel}` in the same step",
            first.id, second.id
        );
        let reducer = self
            .channels
            .get(channel)
            .map_or("last", |plan| plan.reduce.name());
        let declared = report.key(&At::root().key("state").key(channel));
        let mut finding = Diagnostic::new(&G302, title)
            .at(place(report, first, channel), "first write")
            .at(place(report, second, channel), "second write")
            .context(
                declared,
                format!("reduce: {reducer} keeps one value a step"),
            );
        if let [at] = origin.at.as_slice() {
            let label = match origin.from {
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
