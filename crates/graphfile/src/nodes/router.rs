//! The router of a list of branches.

use tine_engine::{NodeCx, NodeError, Router, Target, Targets};

use super::CxFacts;
use crate::expr::{Expression, Scene};
use crate::graph::Channels;
use crate::host::expression_error;

/// Takes the first branch whose condition holds.
#[derive(Debug)]
pub(crate) struct BranchRouter {
    pub(crate) branches: Vec<(Expression, Vec<Target>)>,
    pub(crate) otherwise: Vec<Target>,
    pub(crate) channels: Channels,
}

#[async_trait::async_trait]
impl Router for BranchRouter {
    async fn route(&self, cx: NodeCx) -> Result<Targets, NodeError> {
        let facts = CxFacts::new(&cx);
        let scene = Scene::new(&facts, &self.channels);
        for (when, targets) in &self.branches {
            if when
                .holds(&scene)
                .map_err(|error| expression_error(&error))?
            {
                return Ok(Targets(targets.clone()));
            }
        }
        Ok(Targets(self.otherwise.clone()))
    }
}
