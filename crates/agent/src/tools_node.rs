//! `type: tools`: makes the calls of the last message.

use crate::agent::Agent;
use crate::middleware::{Clarification, Middleware, ToolReply};
use crate::model_node::last_message;
use crate::output;
use crate::tool_call::{CallError, Caller, Planned};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use std::collections::BTreeMap;
use std::sync::Arc;
use tine_engine::message::{InvalidToolCall, Message, Role, ToolCall};
use tine_engine::{ErrorClass, Node, NodeCx, NodeError, Output, Update, Value};
use tine_graphfile::ToolsSpec;
use tine_tools::ToolOutput;
use tine_tools::assemble::Toolbox;
use tokio::sync::RwLock;

pub(crate) struct ToolsNode {
    spec: ToolsSpec,
    caller: Caller,
}

impl ToolsNode {
    pub(crate) fn new(
        spec: ToolsSpec,
        agent: Agent,
        tools: Toolbox,
        chain: Arc<[Arc<dyn Middleware>]>,
    ) -> Self {
        let caller = Caller::new(agent, tools, &spec.info, chain);
        Self { spec, caller }
    }

    /// Makes calls side by side, each in its place; those that must be alone wait for the others. Every call is brought
    /// to its end, so that a question of one does not lose the work of another.
    async fn make_all(
        &self,
        cx: &NodeCx,
        planned: &[Planned<'_>],
    ) -> Vec<Result<ToolReply, CallError>> {
        let floor = RwLock::new(());
        let mut calls = Vec::with_capacity(planned.len());
        for planned in planned {
            calls.push(self.make(cx, planned, &floor).boxed());
        }
        stream::iter(calls)
            .buffered(self.spec.max_parallel.max(1))
            .collect()
            .await
    }

    async fn make(
        &self,
        cx: &NodeCx,
        planned: &Planned<'_>,
        floor: &RwLock<()>,
    ) -> Result<ToolReply, CallError> {
        if planned.alone() {
            let _alone = floor.write().await;
            self.caller.make(cx, planned).await
        } else {
            let _beside = floor.read().await;
            self.caller.make(cx, planned).await
        }
    }
}

#[async_trait]
impl Node for ToolsNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let Some(message) =
            last_message(&cx, &self.spec.from)?.filter(|message| message.role == Role::Ai)
        else {
            return Ok(Output::default());
        };
        // One handle for all calls of the message, so that they see each other's locks.
        let folders = self.caller.agent.folders.of(cx.thread())?;
        let mut asked = false;
        let mut planned = Vec::new();
        let mut seen: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for call in &message.tool_calls {
            let ordinal = seen.entry(call.id.clone()).or_default();
            match self
                .caller
                .plan(&cx, &folders, call.clone(), *ordinal)
                .await
            {
                Ok(call) => planned.push(call),
                Err(error) if error.is_interrupt() => asked = true,
                Err(error) => return Err(error),
            }
            *ordinal += 1;
        }
        self.caller.start(&cx, &mut planned).await?;
        let made = self.make_all(&cx, &planned).await;
        let mut done = Vec::new();
        for (planned, reply) in planned.iter().zip(made) {
            match reply {
                Ok(reply) => done.push((planned, reply)),
                Err(CallError::Interrupted) => asked = true,
                Err(CallError::Cancelled) => {
                    return Err(NodeError::new(
                        ErrorClass::Canceled,
                        "the run was cancelled",
                    ));
                }
                Err(CallError::Node(error)) => return Err(error),
                Err(CallError::Tool(error)) => {
                    let message = format!("tool `{}`: {error}", planned.request.call.name);
                    return Err(NodeError::new(ErrorClass::ToolFailed, message));
                }
            }
        }
        if asked {
            return Err(NodeError::interrupted());
        }
        ask_once(&mut done);
        self.write(&cx, &message, done)
    }
}

impl ToolsNode {
    /// The results as writes and targets, in the order of the calls.
    fn write(
        &self,
        cx: &NodeCx,
        message: &Message,
        done: Vec<(&Planned<'_>, ToolReply)>,
    ) -> Result<Output, NodeError> {
        let mut messages: Vec<Value> = Vec::new();
        let mut commands = Vec::new();
        for (planned, reply) in done {
            messages.extend(output::message(&planned.request.call, &reply, cx.new_id())?);
            if let Some(tool) = planned.request.tool {
                commands.extend(output::command(
                    cx.node(),
                    tool,
                    &self.spec.info.routes,
                    reply.output,
                )?);
            }
        }
        for call in &message.invalid_tool_calls {
            if let Some((call, reply)) = refuse(call) {
                messages.extend(output::message(&call, &reply, cx.new_id())?);
            }
        }
        let update = if messages.is_empty() {
            Update::new()
        } else {
            Update::new().set(self.spec.from.as_str(), messages)
        };
        Ok(Output { update, commands })
    }
}

/// Leaves one question of a message to the graph, which asks one at a time and has one place for it. Asking does
/// nothing but that, so the model can ask the others again.
fn ask_once(done: &mut [(&Planned<'_>, ToolReply)]) {
    let is_left = |(planned, reply): &&mut (&Planned<'_>, ToolReply)| {
        let unanswered =
            matches!(&reply.output, ToolOutput::Command(command) if command.reply.is_none());
        let tool = planned.request.tool;
        unanswered && tool.is_some_and(|tool| Clarification::is_it(tool.id()))
    };
    for (_, reply) in done.iter_mut().filter(is_left).skip(1) {
        *reply = ToolReply::error(
            "One question at a time: the user is asked another one first. Ask again after the answer.",
        );
    }
}

/// The answer to a call that can not be made.
fn refuse(call: &InvalidToolCall) -> Option<(ToolCall, ToolReply)> {
    let name = call.name.clone().unwrap_or_else(|| "unknown".into());
    let why = call
        .error
        .as_deref()
        .unwrap_or("they are not a JSON object");
    let text = format!(
        "The call of `{name}` was not made, because its arguments can not be read: {why}. \
         Send the call again with the arguments as one complete JSON object."
    );
    let call = ToolCall {
        name,
        args: Value::map(),
        id: call.id.clone()?,
    };
    Some((call, ToolReply::error(text)))
}
