//! What stands around a node of the host: labels become targets, writes stay within bounds.

use std::sync::Arc;

use tine_engine::command::GraphScope;
use tine_engine::run::Subgraph;
use tine_engine::{ErrorClass, Interrupt, Node, NodeCx, NodeError, Output, Target, Update, Value};

use crate::host::Routes;

/// A node of the host with the routes the file gives it.
pub(crate) struct Routed {
    pub(crate) node: Arc<dyn Node>,
    pub(crate) routes: Routes,
    /// The only channels it may write; `None` if its tools answer for that.
    pub(crate) writes: Option<Vec<String>>,
}

#[async_trait::async_trait]
impl Node for Routed {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let id = Arc::clone(cx.node());
        let mut output = self.node.run(cx).await?;
        self.check_writes(&id, &output)?;
        for command in &mut output.commands {
            if command.scope == GraphScope::Here {
                command.goto = self.resolve(&command.goto)?;
            }
        }
        Ok(output)
    }

    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        let id = Arc::clone(cx.node());
        let update = self.node.abandon(cx).await?;
        let output = Output::from(update);
        self.check_writes(&id, &output)?;
        Ok(output.update)
    }

    fn check_answer(&self, question: &Interrupt, answer: &Value) -> Result<(), String> {
        self.node.check_answer(question, answer)
    }

    fn subgraph(&self) -> Option<&Subgraph> {
        self.node.subgraph()
    }
}

impl Routed {
    fn resolve(&self, labels: &[Target]) -> Result<Vec<Target>, NodeError> {
        let mut targets = Vec::new();
        for label in labels {
            let label = match label {
                Target::Node(label) => label,
                Target::Dispatch(dispatch) => &dispatch.node,
                Target::End => "end",
            };
            match self.routes.targets(label) {
                Some(mapped) => targets.extend_from_slice(mapped),
                None => return Err(NodeError::unmapped_route(label)),
            }
        }
        Ok(targets)
    }

    fn check_writes(&self, id: &str, output: &Output) -> Result<(), NodeError> {
        let Some(allowed) = &self.writes else {
            return Ok(());
        };
        let updates = std::iter::once(&output.update)
            .chain(output.commands.iter().map(|command| &command.update));
        for (channel, _) in updates.flat_map(|update| update.iter()) {
            if !allowed.iter().any(|name| **name == **channel) {
                let message = format!("`{id}` writes `{channel}`, which its `writes` do not list");
                return Err(NodeError::new(ErrorClass::Internal, message));
            }
        }
        Ok(())
    }
}
