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
            Err(error) if error.is_for_model() => Ok(ToolReply::error(with_causes(&error))),
            result => result,
        }
    }
}

/// The error and what it came from, in one line.
fn with_causes(error: &ToolError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        // A transparent error repeats its cause.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
