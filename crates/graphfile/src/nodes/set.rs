//! The `set` node.

use tine_engine::{Node, NodeCx, NodeError, Output};

use super::CxFacts;
use crate::expr::Scene;
use crate::graph::Channels;
use crate::host::expression_error;
use crate::writes::{SetWrite, evaluate};

/// Writes what its expressions give; nothing else happens.
#[derive(Debug)]
pub(crate) struct SetNode {
    pub(crate) writes: Vec<SetWrite>,
    pub(crate) channels: Channels,
}

#[async_trait::async_trait]
impl Node for SetNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let facts = CxFacts::new(&cx);
        let scene = Scene::new(&facts, &self.channels);
        let update = evaluate(&self.writes, &scene).map_err(|error| expression_error(&error))?;
        Ok(update.into())
    }
}
