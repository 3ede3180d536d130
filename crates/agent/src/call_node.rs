//! `type: call`: a function of the host.

use crate::function::Function;
use async_trait::async_trait;
use std::sync::Arc;
use tine_engine::{ErrorClass, Node, NodeCx, NodeError, Output};
use tine_graphfile::{CallSpec, CxFacts, Scene};

pub(crate) struct CallNode {
    spec: CallSpec,
    function: Arc<dyn Function>,
}

impl CallNode {
    pub(crate) fn new(spec: CallSpec, function: Arc<dyn Function>) -> Self {
        Self { spec, function }
    }
}

#[async_trait]
impl Node for CallNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let input = {
            let facts = CxFacts::new(&cx);
            let scene = Scene::new(&facts, &self.spec.info.channels);
            self.spec
                .input
                .eval(&scene)
                .map_err(|error| NodeError::new(ErrorClass::Expression, error.to_string()))?
        };
        self.function.call(cx, input).await
    }
}
