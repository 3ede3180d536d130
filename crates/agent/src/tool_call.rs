//! One call of a tool, on behalf of a node.

use crate::agent::Agent;
use crate::events;
use crate::middleware::{Middleware, ToolNext, ToolReply, ToolRequest};
use crate::output;
use crate::start::Start;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tine_engine::checkpoint::CallState;
use tine_engine::message::{Message, ToolCall};
use tine_engine::run::{Call, Effects};
use tine_engine::{ErrorClass, NodeCx, NodeError, Value, from_value, to_value};
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
    pub(crate) request: ToolRequest<'a>,
    journal: Call,
    /// What was recorded of it.
    known: Option<ToolReply>,
    /// Whether its start is recorded.
    started: bool,
}

impl Planned<'_> {
    /// Whether nothing else may run beside it.
    pub(crate) fn alone(&self) -> bool {
        let tool = self.request.tool;
        self.known.is_none() && tool.is_some_and(|tool| !tool.spec().parallel)
    }

    /// Whether doing it twice would do something twice, as far as its arguments tell.
    fn effectful(&self) -> bool {
        // Arguments that do not fit run nothing.
        let prepare = |tool: &BoundTool| {
            let prepared = tool.prepare(self.request.call.args.to_json());
            prepared.is_ok_and(|prepared| prepared.effect() == Effect::Effectful)
        };
        self.request.tool.is_some_and(prepare)
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

    /// Looks a call up in the journal.
    ///
    /// # Errors
    /// If nobody knows whether the call took place, until that question is answered.
    pub(crate) async fn plan(
        &self,
        cx: &NodeCx,
        folders: &ThreadFolders,
        call: ToolCall,
        ordinal: usize,
    ) -> Result<Planned<'_>, NodeError> {
        let journal = journal(&call, ordinal);
        // Only effectful calls are started, so a start is a question, whatever these arguments would do: the chain may
        // have changed them on the way to the tool.
        let known = match cx.known_result(&journal, Effects::Effectful).await? {
            None => None,
            Some(stored) if stored.is_null() => Some(skipped()),
            Some(stored) => Some(from_value(&stored)?),
        };
        let cx = cx.for_call(&journal);
        let request = ToolRequest {
            tool_cx: self.tool_cx(&cx, folders, &call),
            cx,
            tool: self.tools.get(&call.name),
            toolbox: &self.tools,
            call,
        };
        Ok(Planned {
            request,
            journal,
            known,
            started: false,
        })
    }

    /// Records, in one commit, the starts of the calls that reach their tools without a question. The others are
    /// started when they get there: a call that nobody has allowed must not look like one that may have taken place.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub(crate) async fn start(
        &self,
        cx: &NodeCx,
        planned: &mut [Planned<'_>],
    ) -> Result<(), NodeError> {
        let asks = |request: &ToolRequest<'_>| self.chain.iter().any(|link| link.asks(request));
        let mut starting: Vec<&mut Planned<'_>> = planned
            .iter_mut()
            .filter(|call| call.known.is_none() && call.effectful() && !asks(&call.request))
            .collect();
        if starting.is_empty() {
            return Ok(());
        }
        let calls: Vec<Call> = starting.iter().map(|call| call.journal.clone()).collect();
        cx.start_calls(&calls).await?;
        for call in &mut starting {
            call.started = true;
        }
        Ok(())
    }

    /// Makes the call, or gives what was recorded of it, of which nobody is told again.
    ///
    /// # Errors
    /// What the chain lets through.
    pub(crate) async fn make(
        &self,
        cx: &NodeCx,
        planned: &Planned<'_>,
    ) -> Result<ToolReply, CallError> {
        if let Some(known) = &planned.known {
            return Ok(known.clone());
        }
        let call = &planned.request.call;
        events::tool_call(cx, call);
        let start = Start::new(cx, &planned.journal, planned.started);
        let reply = self.reply(cx, planned, &start).await;
        match &reply {
            Ok(reply) => events::tool_result(cx, call, reply.status, || reply.text()),
            Err(_) => start.take_back().await?,
        }
        reply
    }

    /// What the chain replies, checked and recorded.
    async fn reply(
        &self,
        cx: &NodeCx,
        planned: &Planned<'_>,
        start: &Start<'_>,
    ) -> Result<ToolReply, CallError> {
        let next = ToolNext {
            chain: &self.chain,
            start,
        };
        let reply = next.run(planned.request.clone()).await;
        start.end()?;
        let reply = reply?;
        if let Some(tool) = planned.request.tool {
            // A result that can not be used is not recorded: every later attempt would stumble over it.
            output::check(cx.node(), tool, &self.routes, &reply.output)?;
        }
        let stored = to_value(&reply).map_err(NodeError::from)?;
        cx.finish_call(&planned.journal, &stored).await?;
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

/// The calls of a message, each with a number that tells it from those before it of the same id: some models give
/// several one id.
pub(crate) fn numbered(message: &Message) -> Vec<(ToolCall, usize)> {
    let ids: BTreeSet<&str> = message.tool_calls.iter().map(|call| &*call.id).collect();
    let mut next: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    let number = |call: &ToolCall| {
        let next = next.entry(call.id.clone()).or_default();
        // An id may look like one with a number.
        while *next > 0 && ids.contains(&*journal_key(&call.id, *next)) {
            *next += 1;
        }
        *next += 1;
        (call.clone(), *next - 1)
    };
    message.tool_calls.iter().map(number).collect()
}

/// What names a call in the journal, beside its name and arguments.
fn journal_key(id: &str, ordinal: usize) -> String {
    match ordinal {
        0 => id.to_owned(),
        ordinal => format!("{id}#{ordinal}"),
    }
}

/// The entry of a call in the journal. Its identity is its id with its name and arguments.
fn journal(call: &ToolCall, ordinal: usize) -> Call {
    let input = Value::from_pairs([
        ("name", Value::Text(call.name.clone())),
        ("args", call.args.clone()),
    ]);
    Call::new(journal_key(&call.id, ordinal), &input)
        .keyed_by_input()
        .shown_as(call.name.clone(), call.args.clone())
}

/// What is left of a call that a new message of the user takes the place of.
pub(crate) fn left_of(
    cx: &NodeCx,
    call: &ToolCall,
    ordinal: usize,
) -> Result<ToolReply, NodeError> {
    Ok(match cx.recorded(&journal(call, ordinal)) {
        Some(CallState::Done(stored)) if stored.is_null() => skipped(),
        Some(CallState::Done(stored)) => {
            let reply: ToolReply = from_value(&stored)?;
            match reply.output.reply() {
                Some(_) => reply,
                // It was left to the graph to answer, which will not come to it any more.
                None => ToolReply::error("Cancelled: the user went on with another message."),
            }
        }
        Some(CallState::Started) => ToolReply::error(
            "Cancelled: the user went on with another message. This call had begun, and it is not known whether it took place.",
        ),
        Some(CallState::Idle) | None => ToolReply::error(
            "Cancelled: the user went on with another message before this call was made.",
        ),
    })
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

impl CallError {
    /// The error as its node's.
    pub(crate) fn into_node_error(self, tool: &str) -> NodeError {
        match self {
            Self::Interrupted => NodeError::interrupted(),
            Self::Cancelled => NodeError::new(ErrorClass::Canceled, "the run was cancelled"),
            Self::Tool(error) => {
                NodeError::new(ErrorClass::ToolFailed, format!("tool `{tool}`: {error}"))
            }
            Self::Node(error) => error,
        }
    }
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
