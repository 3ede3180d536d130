//! Errors of tools, told to the model.

use super::{Middleware, ToolNext, ToolReply, ToolRequest};
use async_trait::async_trait;
use tine_tools::ToolError;

/// Turns what a tool could not do into a result that the model can act on: the run goes on.
///
/// Interrupts and cancellation are no errors and pass.
#[derive(Clone, Copy, Debug)]
pub struct ErrorReplies;

#[async_trait]
impl Middleware for ErrorReplies {
    fn name(&self) -> &'static str {
        "error_replies"
    }

    async fn wrap_tool_call(
        &self,
        call: ToolRequest<'_>,
        next: ToolNext<'_>,
    ) -> Result<ToolReply, ToolError> {
        match next.run(call).await {
            Err(error) if error.is_for_model() => Ok(ToolReply::error(error.with_causes())),
            result => result,
        }
    }
}
