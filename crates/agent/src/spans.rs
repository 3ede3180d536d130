//! The calls of models and tools, as spans of `tracing`. They hold names, numbers and ends, never what was said.

use tine_engine::message::ToolCall;
use tine_models::{Model, ModelError, ModelReply, ModelRequest};
use tine_tools::{ToolError, ToolOutput};
use tracing::field::{Empty, display};
use tracing::{Span, debug, info_span, warn};

/// The span of a request to a model and its reply.
pub(crate) fn model(model: &dyn Model, request: &ModelRequest) -> Span {
    info_span!(
        target: "tine::model",
        "model",
        model = %model.name(),
        node = %request.site.node,
        visit = request.site.visit,
        messages = request.messages.len(),
        tools = request.tools.len(),
        finish = Empty,
        calls = Empty,
        input_tokens = Empty,
        output_tokens = Empty,
    )
}

/// Tells what came of a request.
pub(crate) fn replied(span: &Span, reply: &Result<ModelReply, ModelError>) {
    if span.is_disabled() {
        return;
    }
    match reply {
        Ok(reply) => {
            span.record("finish", display(reply.finish.name()))
                .record("calls", reply.calls.len());
            if let Some(usage) = reply.usage {
                span.record("input_tokens", usage.input_tokens)
                    .record("output_tokens", usage.output_tokens);
            }
        }
        Err(error) => {
            span.record("finish", display("error"));
            let class = error.class();
            span.in_scope(|| {
                warn!(target: "tine::model", ?class, "no reply");
                // Its words may hold what was said.
                debug!(target: "tine::model", %error, "in its words");
            });
        }
    }
}

/// The span of a call of a tool.
pub(crate) fn tool(call: &ToolCall) -> Span {
    info_span!(target: "tine::tool", "tool", tool = %call.name, id = %call.id, end = Empty)
}

/// Tells what came of a call. To ask, and to be cancelled, is no error.
pub(crate) fn returned(span: &Span, result: &Result<ToolOutput, ToolError>) {
    if span.is_disabled() {
        return;
    }
    let end = match result {
        Ok(_) => "success",
        Err(ToolError::Interrupted) => "interrupted",
        Err(ToolError::Cancelled) => "cancelled",
        Err(error) => {
            // Its words may hold what the tool was given.
            span.in_scope(|| debug!(target: "tine::tool", %error, "failed"));
            "error"
        }
    };
    span.record("end", display(end));
}
