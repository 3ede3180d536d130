//! Questions of the model, brought to the user.

use super::{Middleware, ToolNext, ToolReply, ToolRequest};
use async_trait::async_trait;
use serde_json::Value as Json;
use std::sync::Arc;
use tine_engine::{Interrupt, NodeCx, Value};
use tine_tools::assemble::ToolId;
use tine_tools::{Ask, Form, Source, ToolError};

/// Lets `ask_clarification` stop the run and wait.
///
/// The tool says what is asked; here it is given someone to ask. It is known by its identity, not its name: a tool of
/// another source under the same name asks nobody. The other calls of the message finish before the run stops, and the
/// answer becomes this call's result, in the same run.
#[derive(Clone, Copy, Debug)]
pub struct Clarification;

impl Clarification {
    pub(crate) fn is_it(id: &ToolId) -> bool {
        id.source == Source::Builtin && id.name == "ask_clarification"
    }

    /// Refuses an answer that does not fill in the form that the question asks with.
    pub(crate) fn check_answer(question: &Interrupt, answer: &Value) -> Result<(), String> {
        match Form::of_question(&question.payload.to_json()) {
            Some(form) => form.accept(&answer.to_json()).map(|_| ()),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Middleware for Clarification {
    fn name(&self) -> &'static str {
        "clarification"
    }

    fn asks(&self, call: &ToolRequest<'_>) -> bool {
        call.tool.is_some_and(|tool| Self::is_it(tool.id()))
    }

    async fn wrap_tool_call(
        &self,
        mut call: ToolRequest<'_>,
        next: ToolNext<'_>,
    ) -> Result<ToolReply, ToolError> {
        if self.asks(&call) {
            let ask = Arc::new(Interrupts(call.cx.clone()));
            call.tool_cx = call.tool_cx.with_ask(ask);
        }
        next.run(call).await
    }
}

/// Asks by interrupting the task.
pub(super) struct Interrupts(pub(super) NodeCx);

#[async_trait]
impl Ask for Interrupts {
    async fn ask(&self, payload: Json) -> Result<Json, ToolError> {
        match self.0.interrupt(Value::from_json(payload)) {
            Ok(answer) => Ok(answer.to_json()),
            Err(_) => Err(ToolError::Interrupted),
        }
    }
}
