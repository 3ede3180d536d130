//! The `interrupt` node.

use std::sync::Arc;

use tine_engine::{Interrupt, Node, NodeCx, NodeError, Output, Value};

use super::CxFacts;
use crate::expr::Scene;
use crate::graph::Channels;
use crate::host::expression_error;
use crate::load::InterruptPlan;
use crate::writes::evaluate;

/// Asks, and writes what follows from the answer.
#[derive(Debug)]
pub(crate) struct InterruptNode {
    pub(crate) plan: InterruptPlan,
    pub(crate) channels: Channels,
}

#[async_trait::async_trait]
impl Node for InterruptNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let facts = CxFacts::new(&cx);
        let scene = Scene::new(&facts, &self.channels);
        let fail = |error| expression_error(&error);
        let payload = self.plan.payload.eval(&scene).map_err(fail)?;
        let mut question = payload.clone();
        // Wrong answers are refused before they come here. Where a host runs the graph so that the engine can not find
        // this node, a wrong one is asked for again: the thread stays where it is.
        let answer = loop {
            let answer = cx.interrupt(question)?;
            match self.plan.answer.accept(self.plan.answer.from_text(answer)) {
                Ok(answer) => break answer,
                Err(problem) => question = asked_again(&payload, &problem.to_string()),
            }
        };
        let locals = [("resume", answer)];
        let update = evaluate(&self.plan.writes, &scene.with(&locals)).map_err(fail)?;
        Ok(update.into())
    }

    fn check_answer(&self, _: &Interrupt, answer: &Value) -> Result<(), String> {
        let answer = self.plan.answer.from_text(answer.clone());
        let accepted = self.plan.answer.accept(answer);
        accepted.map(|_| ()).map_err(|problem| problem.to_string())
    }
}

/// Returns the question with a word on why the last answer would not do.
fn asked_again(payload: &Value, problem: &str) -> Value {
    match payload {
        Value::Map(entries) => {
            let mut entries = (**entries).clone();
            entries.insert("problem".into(), problem.into());
            Value::Map(Arc::new(entries))
        }
        other => Value::from_pairs([("payload", other.clone()), ("problem", problem.into())]),
    }
}
