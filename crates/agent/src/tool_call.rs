//! One call of a tool, on behalf of a node.

use crate::agent::Agent;
use crate::events;
use crate::middleware::{Middleware, ToolNext, ToolReply, ToolRequest};
use crate::output;
use std::sync::Arc;
use tine_engine::message::ToolCall;
use tine_engine::run::{Call, Effects};
use tine_engine::{NodeCx, NodeError, Value, from_value, to_value};
use tine_graphfile::{NodeInfo, Routes};
use tine_tools::assemble::{BoundTool, Toolbox};
use tine_tools::paths::ThreadFolders;
use tine_tools::{Effect, Listen, ToolCx, ToolError};

/// What the calls of one node have in common.
pub(crate) struct Caller {
    pub(crate) agent: Agent,
    pub(crate) tools: Toolbox,
    routes: Routes,
    /// The labels that the node maps.
    labels: Arc<[String]>,
    /// The channels that the graph declares.
    channels: Arc<[String]>,
    pub(crate) chain: Arc<[Arc<dyn Middleware>]>,
}

/// A call that is going to be made, or was already.
pub(crate) struct Planned<'a> {
    pub(crate) call: ToolCall,
    pub(crate) tool: Option<&'a BoundTool>,
    journal: Call,
    effects: Effects,
    known: Option<ToolReply>,
}

impl Planned<'_> {
    /// The entry of the journal, if the call must be recorded before it begins.
    pub(crate) fn starts(&self) -> Option<Call> {
        (self.known.is_none() && self.effects == Effects::Effectful).then(|| self.journal.clone())
    }

    /// Whether nothing else may run beside it.
    pub(crate) fn alone(&self) -> bool {
        self.known.is_none() && self.tool.is_some_and(|tool| !tool.spec().parallel)
    }
}

impl Caller {
    pub(crate) fn new(
        agent: Agent,
        tools: Toolbox,
        info: &NodeInfo,
        chain: Arc<[Arc<dyn Middleware>]>,
    ) -> Self {
        Self {
            routes: info.routes.clone(),
            labels: info.routes.labels().map(str::to_owned).collect(),
            channels: info.channels.names().map(str::to_owned).collect(),
            agent,
            tools,
            chain,
        }
    }

    /// Looks a call up in the journal. Its identity is its id with its name and arguments.
    ///
    /// # Errors
    /// If nobody knows whether the call took place, until that question is answered.
    pub(crate) fn plan(
        &self,
        cx: &NodeCx,
        call: ToolCall,
        ordinal: usize,
    ) -> Result<Planned<'_>, NodeError> {
        let input = Value::from_pairs([
            ("name", Value::Text(call.name.clone())),
            ("args", call.args.clone()),
        ]);
        // Some models give several calls of one message the same id.
        let key = if ordinal == 0 {
            call.id.to_string()
        } else {
            format!("{}#{ordinal}", call.id)
        };
        let journal = Call::new(key, &input).keyed_by_input();
        let tool = self.tools.get(&call.name);
        let effects = tool.map_or(Effects::ReadOnly, |tool| effects(tool, &call));
        let known = match cx.known_result(&journal, effects) {
            Ok(None) => None,
            Ok(Some(stored)) if stored.is_null() => Some(skipped()),
            Ok(Some(stored)) => Some(from_value(&stored)?),
            Err(error) => return Err(error),
        };
        Ok(Planned {
            call,
            tool,
            journal,
            effects,
            known,
        })
    }

    /// Makes the call, or gives what was recorded of it, of which nobody is told again.
    ///
    /// # Errors
    /// What the chain lets through.
    pub(crate) async fn make(
        &self,
        cx: &NodeCx,
        folders: &ThreadFolders,
        planned: &Planned<'_>,
    ) -> Result<ToolReply, CallError> {
        if let Some(known) = &planned.known {
            return Ok(known.clone());
        }
        let call_cx = cx.for_call(&planned.journal);
        events::tool_call(cx, &planned.call);
        let request = ToolRequest {
            tool_cx: self.tool_cx(&call_cx, folders, &planned.call),
            cx: call_cx,
            call: planned.call.clone(),
            tool: planned.tool,
            toolbox: &self.tools,
        };
        let reply = ToolNext { chain: &self.chain }.run(request).await?;
        if let Some(tool) = planned.tool {
            // A result that can not be used is not recorded: every later attempt would stumble over it.
            output::check(cx.node(), tool, &self.routes, &reply.output)?;
        }
        cx.finish_call(
            &planned.journal,
            &to_value(&reply).map_err(NodeError::from)?,
        )
        .await?;
        events::tool_result(cx, &planned.call, &reply);
        Ok(reply)
    }

    fn tool_cx(&self, cx: &NodeCx, folders: &ThreadFolders, call: &ToolCall) -> ToolCx {
        ToolCx::new(call.id.clone(), folders.clone(), cx.world().clone())
            .with_now(cx.now())
            .with_cancellation(cx.cancellation().clone())
            .with_idempotency_key(cx.idempotency_key())
            .with_options(self.agent.options.clone())
            .with_routes(self.labels.clone())
            .with_channels(self.channels.clone())
            .with_listen(Arc::new(Notes {
                cx: cx.clone(),
                call: call.clone(),
            }))
            .with_blocking(self.agent.blocking)
    }
}

impl CallError {
    /// Whether the call is known not to have taken place, so that its start is to be taken back.
    pub(crate) fn took_no_place(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Tool(_))
    }
}

/// Why a call gave no reply.
pub(crate) enum CallError {
    /// It asked, and waits.
    Interrupted,
    /// The run was cancelled.
    Cancelled,
    /// The tool failed, and its node is to fail with it.
    Tool(ToolError),
    /// Something around it failed: the journal, the folders.
    Node(NodeError),
}

impl From<ToolError> for CallError {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::Interrupted => Self::Interrupted,
            ToolError::Cancelled => Self::Cancelled,
            error => Self::Tool(error),
        }
    }
}

impl From<NodeError> for CallError {
    fn from(error: NodeError) -> Self {
        if error.is_interrupt() {
            Self::Interrupted
        } else {
            Self::Node(error)
        }
    }
}

fn effects(tool: &BoundTool, call: &ToolCall) -> Effects {
    // Arguments that do not fit run nothing.
    let effect = tool
        .prepare(call.args.to_json())
        .map_or(Effect::ReadOnly, |prepared| prepared.effect());
    match effect {
        Effect::ReadOnly => Effects::ReadOnly,
        Effect::Idempotent => Effects::Idempotent,
        Effect::Effectful => Effects::Effectful,
    }
}

fn skipped() -> ToolReply {
    ToolReply::error(
        "It is not known whether this call took place. The user chose not to make it again.",
    )
}

/// Brings what a tool says to people to the listeners of the run.
struct Notes {
    cx: NodeCx,
    call: ToolCall,
}

impl Listen for Notes {
    fn note(&self, text: &str) {
        events::note(&self.cx, &self.call, text);
    }
}
