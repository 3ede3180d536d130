//! Nodes with everything in them compiled and resolved: what the flow analysis and the builder read.

use std::time::Duration;

use indexmap::IndexMap;

use crate::expr::Expression;
use crate::graph::{Pause, To};
use crate::host::{CallSpec, ModelSpec, Shape, ToolSpec, ToolsSpec};
use crate::spec::{Goto, Kind};
use crate::syntax::At;
use crate::value::ValueExpr;
use crate::writes::SetWrite;

/// A node of the file.
#[derive(Debug)]
pub(crate) struct NodePlan {
    pub(crate) id: String,
    pub(crate) at: At,
    /// Missing if its keys were wrong; the node still takes part in the flow.
    pub(crate) kind: Option<Kind>,
    pub(crate) then: ThenPlan,
    pub(crate) routes: IndexMap<String, Goto>,
    pub(crate) wait_for: Vec<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Option<tine_engine::RetryPolicy>,
    pub(crate) pause: Option<Pause>,
    pub(crate) spec: Option<SpecPlan>,
    /// Channels it may write, each with the place that says so.
    pub(crate) writes: Vec<(String, At)>,
}

/// The default edge with its conditions compiled.
#[derive(Debug)]
pub(crate) enum ThenPlan {
    /// None: every way out is in `routes`.
    None,
    Go(Goto),
    Branches {
        branches: Vec<(String, Option<Expression>, Goto)>,
        otherwise: Option<Goto>,
    },
}

impl ThenPlan {
    pub(crate) fn gotos(&self) -> Vec<&Goto> {
        match self {
            Self::None => Vec::new(),
            Self::Go(goto) => vec![goto],
            Self::Branches {
                branches,
                otherwise,
            } => branches
                .iter()
                .map(|(_, _, goto)| goto)
                .chain(otherwise)
                .collect(),
        }
    }
}

impl NodePlan {
    /// Iterates over all targets.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &(To, At)> {
        let routes = self.routes.values();
        self.then
            .gotos()
            .into_iter()
            .chain(routes)
            .flat_map(|goto| &goto.targets)
    }
}

/// What a node does.
#[derive(Debug)]
pub(crate) enum SpecPlan {
    Model(ModelSpec),
    Tools(ToolsSpec),
    Tool(ToolSpec),
    Call(CallSpec),
    Set(Vec<SetWrite>),
    Interrupt(InterruptPlan),
}

/// An `interrupt` node.
#[derive(Clone, Debug)]
pub(crate) struct InterruptPlan {
    pub(crate) payload: ValueExpr,
    pub(crate) answer: Shape,
    pub(crate) writes: Vec<SetWrite>,
}
