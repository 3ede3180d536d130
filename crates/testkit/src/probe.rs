//! What is noted while a case runs.

use crate::case::Case;
use crate::graph;
use crate::lang::{CaseError, Place};
use crate::neutral::{neutral, neutral_path};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tine_engine::event::Listener;
use tine_engine::value::{List, Map};
use tine_engine::{Event, Graph, NodeCx, Value};

/// One run of a case: the case, and what is noted of it.
#[derive(Debug)]
pub(crate) struct CaseRun {
    pub(crate) case: Case,
    pub(crate) probe: Probe,
}

impl CaseRun {
    pub(crate) fn new(case: Case) -> Self {
        Self {
            case,
            probe: Probe::default(),
        }
    }

    /// A child graph of the case.
    pub(crate) fn child_graph(self: &Arc<Self>, name: &str) -> Result<Graph, CaseError> {
        let spec = self
            .case
            .graphs
            .get(name)
            .ok_or_else(|| CaseError(format!("there is no graph `{name}`")))?;
        graph::build(self, name, spec)
    }
}

/// Hears events and starts of bodies.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    notes: Mutex<Notes>,
}

/// Something heard, in order.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// An event of the engine.
    Event(Event),
    /// A task started with this input; the engine's own event does not show it.
    Started {
        namespace: String,
        node: String,
        input: Value,
    },
}

#[derive(Debug, Default)]
struct Notes {
    /// Starts of each body so far in the case.
    visits: BTreeMap<String, u64>,
    /// Starts during the action: by place, then by path.
    starts: BTreeMap<String, BTreeMap<String, u64>>,
    heard: Vec<Heard>,
    /// The output channels of each namespace that was entered.
    outputs: BTreeMap<String, Vec<Arc<str>>>,
    updating: bool,
    faults: Vec<String>,
}

impl Probe {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was noted of the action before.
    pub(crate) fn begin_action(&self, updating: bool) {
        let mut notes = self.notes();
        notes.starts.clear();
        notes.heard.clear();
        notes.updating = updating;
    }

    /// Notes the start of a body. Gives how often it has started so far in the case, this time included.
    pub(crate) fn start(&self, cx: &NodeCx, place: Place<'_>) -> u64 {
        let mut path = neutral_path(&cx.path());
        if let Place::Router(mark) = place {
            path.push_str(mark);
        }
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let mut notes = self.notes();
        let place = if notes.updating {
            "update".to_owned()
        } else if parent.is_empty() {
            cx.step().to_string()
        } else {
            format!("{parent}:{}", cx.step())
        };
        *notes
            .starts
            .entry(place)
            .or_default()
            .entry(path.clone())
            .or_default() += 1;
        let visits = notes.visits.entry(path).or_default();
        *visits += 1;
        *visits
    }

    /// Notes what a task gets.
    pub(crate) fn task_input(&self, cx: &NodeCx) {
        if cx.attempt() == 1 {
            let started = Heard::Started {
                namespace: neutral_path(cx.graph_path()),
                node: cx.node().to_string(),
                input: neutral(&cx.input()),
            };
            self.notes().heard.push(started);
        }
    }

    /// Notes that a child graph runs below this path.
    pub(crate) fn enter(&self, path: &str, graph: &Graph) {
        let output = graph.output().cloned().collect();
        self.notes().outputs.insert(neutral_path(path), output);
    }

    /// Notes a mistake of the case itself.
    pub(crate) fn fault(&self, message: String) {
        self.notes().faults.push(message);
    }

    /// The mistakes of the case that showed while it ran.
    pub(crate) fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.notes().faults)
    }

    /// What was heard during the action.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.notes().heard.clone()
    }

    /// Whether a channel is an output channel of the graph at this namespace.
    pub(crate) fn outputs(&self) -> BTreeMap<String, Vec<Arc<str>>> {
        self.notes().outputs.clone()
    }

    /// The bodies started during the action: place to sorted paths, `*n` for more starts than one.
    pub(crate) fn calls(&self) -> Map {
        let show = |(path, count): (&String, &u64)| -> Value {
            if *count == 1 {
                path.as_str().into()
            } else {
                format!("{path}*{count}").into()
            }
        };
        self.notes()
            .starts
            .iter()
            .map(|(place, paths)| {
                let paths: List = paths.iter().map(show).collect();
                (place.as_str().into(), paths.into())
            })
            .collect()
    }
}

/// The probe of a run as a listener.
#[derive(Debug)]
pub(crate) struct Ear(pub(crate) Arc<CaseRun>);

impl Listener for Ear {
    fn on_event(&self, event: &Event) {
        self.0.probe.notes().heard.push(Heard::Event(event.clone()));
    }
}
