//! `type: tools`: makes the calls of the last message.

use crate::agent::Agent;
use crate::events;
use crate::middleware::{Clarification, Middleware, ToolReply};
use crate::model_node::last_message;
use crate::output::{self, cut};
use crate::tool_call::{CallError, Caller, Planned, left_of, numbered};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use std::sync::Arc;
use tine_engine::message::{InvalidToolCall, Message, Role, ToolCall};
use tine_engine::{Interrupt, Node, NodeCx, NodeError, Output, Update, Value};
use tine_graphfile::ToolsSpec;
use tine_models::FinishReason;
use tine_tools::assemble::{BoundTool, Toolbox};
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
        let Some(message) = self.calling(&cx) else {
            return Ok(Output::default());
        };
        // One handle for all calls of the message, so that they see each other's locks.
        let folders = self.caller.agent.folders.of(cx.thread())?;
        let mut asked = false;
        let mut planned = Vec::new();
        for (call, ordinal) in numbered(&message) {
            match self.caller.plan(&cx, &folders, call, ordinal).await {
                Ok(call) => planned.push(call),
                Err(error) if error.is_interrupt() => asked = true,
                Err(error) => return Err(error),
            }
        }
        self.caller.start(&cx, &mut planned).await?;
        let made = self.make_all(&cx, &planned).await;
        let mut done = Vec::new();
        for (planned, reply) in planned.iter().zip(made) {
            match reply {
                Ok(reply) => done.push(Made {
                    call: &planned.request.call,
                    tool: planned.request.tool,
                    reply,
                }),
                Err(CallError::Interrupted) => asked = true,
                Err(error) => return Err(error.into_node_error(&planned.request.call.name)),
            }
        }
        if asked {
            return Err(NodeError::interrupted());
        }
        ask_once(&mut done);
        // Nobody heard of them yet, for nothing was called.
        for call in &message.invalid_tool_calls {
            let (call, reply) = refuse(&message, call);
            events::tool_result(&cx, &call, reply.status, || reply.text());
        }
        self.output(&cx, &message, done)
    }

    fn check_answer(&self, question: &Interrupt, answer: &Value) -> Result<(), String> {
        Clarification::check_answer(question, answer)
    }

    /// Answers every call of the message: with its result if it was made, else as cancelled.
    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        let Some(message) = self.calling(&cx) else {
            return Ok(Update::new());
        };
        let calls = numbered(&message);
        let mut left = Vec::new();
        for (call, ordinal) in &calls {
            left.push(Made {
                tool: self.caller.tools.get(&call.name),
                reply: left_of(&cx, call, *ordinal)?,
                call,
            });
        }
        let output = self.output(&cx, &message, left)?;
        let commands = output.commands.into_iter();
        // Where its tools would have gone does not count any more.
        Ok(commands.fold(output.update, |update, command| update.and(command.update)))
    }
}

/// A call and what it came to.
struct Made<'a> {
    call: &'a ToolCall,
    tool: Option<&'a BoundTool>,
    reply: ToolReply,
}

impl ToolsNode {
    /// The message whose calls are to be made, if the last one calls.
    fn calling(&self, cx: &NodeCx) -> Option<Message> {
        let last = last_message(cx, &self.spec.from);
        last.filter(|message| message.role == Role::Ai)
    }

    /// The results as writes and targets, in the order of the calls.
    fn output(
        &self,
        cx: &NodeCx,
        message: &Message,
        made: Vec<Made<'_>>,
    ) -> Result<Output, NodeError> {
        let mut messages: Vec<Value> = Vec::new();
        let mut commands = Vec::new();
        for Made { call, tool, reply } in made {
            messages.extend(output::message(call, &reply, cx.new_id())?);
            if let Some(tool) = tool {
                let routes = &self.spec.info.routes;
                commands.extend(output::command(cx.node(), tool, routes, reply.output)?);
            }
        }
        for call in &message.invalid_tool_calls {
            let (call, reply) = refuse(message, call);
            messages.extend(output::message(&call, &reply, cx.new_id())?);
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
fn ask_once(made: &mut [Made<'_>]) {
    let is_left = |made: &&mut Made<'_>| {
        let asks = made
            .tool
            .is_some_and(|tool| Clarification::is_it(tool.id()));
        asks && made.reply.output.reply().is_none()
    };
    for made in made.iter_mut().filter(is_left).skip(1) {
        made.reply = ToolReply::error(
            "One question at a time: the user is asked another one first. Ask again after the answer.",
        );
    }
}

/// How many characters of arguments that can not be read are shown to the model that wrote them.
const SHOWN: usize = 200;

/// The answer to a call that can not be made.
fn refuse(message: &Message, call: &InvalidToolCall) -> (ToolCall, ToolReply) {
    let name = call.name.clone().unwrap_or_else(|| "unknown".into());
    let why = call.error.as_deref().unwrap_or(match call.name {
        None => "the call names no tool",
        Some(_) => "the arguments are not a JSON object",
    });
    let mut text = format!(
        "The call of `{}` was not made: {why}. \
         Send the call again with the arguments as one complete JSON object.",
        cut(&name, 100)
    );
    let finish = finish(message);
    if finish == Some(FinishReason::Length) {
        text.push_str(" If they are long, make several calls with a part of them each.");
    }
    let args = call.args.as_deref().unwrap_or_default();
    // What was cut off in the middle is no mistake to be shown, and a message of a parser often quotes the text.
    let start: String = args.trim().chars().take(20).collect();
    let is_cut_off = finish.is_some_and(|finish| finish.is_cut_off());
    if !args.is_empty() && !is_cut_off && !why.contains(&start) {
        text.push_str(&format!(" What came was: {}", cut(args, SHOWN)));
    }
    let call = ToolCall {
        name,
        args: Value::map(),
        id: call.id.clone().unwrap_or_default(),
    };
    (call, ToolReply::error(text))
}

/// Why the reply ended, as its message says it.
fn finish(message: &Message) -> Option<FinishReason> {
    let metadata = message.response_metadata.as_ref()?;
    let name = metadata.get("finish_reason")?.as_str()?;
    Some(FinishReason::from_name(name))
}
