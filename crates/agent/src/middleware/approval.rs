//! Calls that a person is asked about first.

use super::clarification::Interrupts;
use super::{Middleware, ToolNext, ToolReply, ToolRequest};
use async_trait::async_trait;
use serde_json::json;
use std::collections::BTreeSet;
use tine_engine::Value;
use tine_tools::{Ask, ToolError};

/// Asks before these tools are called. The answer is `allow`, `deny`, or `{edit: {...}}` with other arguments.
#[derive(Clone, Debug)]
pub struct Approval {
    tools: BTreeSet<String>,
}

impl Approval {
    /// Asks before tools of these names.
    #[must_use]
    pub fn before(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
        }
    }
}

#[async_trait]
impl Middleware for Approval {
    fn name(&self) -> &'static str {
        "approval"
    }

    fn asks(&self, call: &ToolRequest<'_>) -> bool {
        call.tool.is_some() && self.tools.contains(&*call.call.name)
    }

    async fn wrap_tool_call(
        &self,
        mut call: ToolRequest<'_>,
        next: ToolNext<'_>,
    ) -> Result<ToolReply, ToolError> {
        if !self.asks(&call) {
            return next.run(call).await;
        }
        let name = call.call.name.clone();
        let args = call.call.args.to_json();
        let payload = json!({
            "kind": "approval",
            "tool": &*name,
            "tool_call_id": &*call.call.id,
            "args": args,
            "text": format!("May `{name}` be called with {args}?"),
            "options": ["allow", "deny"],
        });
        let answer = Interrupts(call.cx.clone()).ask(payload).await?;
        let word = answer
            .as_str()
            .or_else(|| answer.get("verdict").and_then(serde_json::Value::as_str));
        match (word, answer.get("edit")) {
            (_, Some(args)) if args.is_object() => {
                call.call.args = Value::from_json(args.clone());
                next.run(call).await
            }
            (Some("allow"), _) => next.run(call).await,
            // Whatever is not a clear yes is a no.
            _ => Err(ToolError::failed(format!(
                "The user does not allow this call of `{name}`."
            ))),
        }
    }
}
