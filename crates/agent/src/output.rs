//! What tools give, as writes and targets of their node.

use std::borrow::Cow;
use std::sync::Arc;
use tine_engine::message::{Message, ToolCall};
use tine_engine::{Command, ErrorClass, NodeError, Target, Update, Value, to_value};
use tine_graphfile::Routes;
use tine_tools::assemble::BoundTool;
use tine_tools::{ToolCommand, ToolOutput};

use crate::middleware::ToolReply;

/// The result of a call as a message for the model; `None` if the graph is to answer.
pub(crate) fn message(
    call: &ToolCall,
    reply: &ToolReply,
    id: String,
) -> Result<Option<Value>, NodeError> {
    let Some(content) = reply.output.reply() else {
        return Ok(None);
    };
    let message = Message::tool(call, "", reply.status).with_id(id);
    Ok(Some(to_value(&Message { content, ..message })?))
}

/// Checks what a tool gave against what the tool says about itself and what its node maps.
///
/// # Errors
/// If it writes or goes where its manifest does not say, or to a label that the node does not map.
pub(crate) fn check(
    node: &str,
    tool: &BoundTool,
    routes: &Routes,
    output: &ToolOutput,
) -> Result<(), NodeError> {
    let ToolOutput::Command(ToolCommand { update, route, .. }) = output else {
        return Ok(());
    };
    let name = tool.name();
    let fail = |message: String| Err(NodeError::new(ErrorClass::ToolFailed, message));
    let manifest = &tool.spec().manifest;
    if let Some((channel, _)) = update.iter().find(|(channel, _)| {
        let mut known = manifest.writes.iter().chain(&manifest.may_write);
        !known.any(|known| **known == ***channel)
    }) {
        return fail(format!(
            "tool `{name}` in node `{node}` writes `{channel}`, which its manifest does not name"
        ));
    }
    let Some(label) = route else {
        return Ok(());
    };
    if !manifest.routes.iter().any(|known| known.label == *label) {
        return fail(format!(
            "tool `{name}` in node `{node}` takes the route `{label}`, which its manifest does not name"
        ));
    }
    if !routes.has(label) {
        return fail(format!(
            "tool `{name}` takes the route `{label}`, and node `{node}` does not map it; \
             add `routes: {{ {label}: <node> }}` to the node"
        ));
    }
    Ok(())
}

/// The command of a tool, checked: what was recorded may be of a graph that has changed since.
///
/// # Errors
/// Those of [`check`].
pub(crate) fn command(
    node: &str,
    tool: &BoundTool,
    routes: &Routes,
    output: ToolOutput,
) -> Result<Option<Command>, NodeError> {
    check(node, tool, routes, &output)?;
    let ToolOutput::Command(ToolCommand { update, route, .. }) = output else {
        return Ok(None);
    };
    // The loader's wrapper turns the label into what the file maps it to.
    let goto = route.map(|label| Target::Node(Arc::from(label)));
    Ok(Some(Command {
        update: Update::new().and(update),
        goto: goto.into_iter().collect(),
        ..Command::default()
    }))
}

/// The beginning of a text, with how much is not shown.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!("{}... ({left} more characters)", &text[..end]).into()
        }
    }
}
