//! What stands around the calls of models and tools.
//!
//! A chain is a list; its first member is the outermost. `before_model` runs in order, `after_model` in reverse, and
//! the `wrap_...` hooks nest: each may change what goes in, call the rest with `next`, do so again, or not at all.

mod approval;
mod clarification;
mod errors;

pub use approval::Approval;
pub use clarification::Clarification;
pub use errors::ErrorReplies;

use crate::cut_off::Said;
use crate::history;
use crate::spans;
use crate::start::Start;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use tine_engine::message::{Message, ToolCall, ToolStatus};
use tine_engine::{NodeCx, NodeError, Spend};
use tine_models::{Model, ModelError, ModelReply, ModelRequest, Pricing, Usage};
use tine_tools::assemble::{BoundTool, Toolbox};
use tine_tools::{Effect, ToolCx, ToolError, ToolOutput};
use tracing::Instrument as _;

/// One member of a chain.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not middleware",
    note = "implement `tine_agent::middleware::Middleware`; every hook has a default that lets everything pass"
)]
pub trait Middleware: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> &'static str;

    /// Changes a request before the model gets it. What does not fit together any more, such as a result whose call was
    /// taken out, is [repaired](crate::history::repair) at the end of the chain.
    ///
    /// # Errors
    /// If the model must not be asked; the node then fails.
    async fn before_model(&self, cx: &NodeCx, request: &mut ModelRequest) -> Result<(), NodeError> {
        let _ = (cx, request);
        Ok(())
    }

    /// Stands around the call of a model.
    ///
    /// # Errors
    /// If there is no reply.
    async fn wrap_model_call(
        &self,
        call: ModelCall,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelError> {
        next.run(call).await
    }

    /// Changes the message that a reply becomes.
    ///
    /// # Errors
    /// If the reply can not be used; the node then fails.
    async fn after_model(&self, cx: &NodeCx, message: &mut Message) -> Result<(), NodeError> {
        let _ = (cx, message);
        Ok(())
    }

    /// Tells whether it may ask somebody before the tool is reached, as far as the request tells. Such a call counts
    /// as started only when it reaches its tool; until then, nothing of it needs to be asked about after a crash.
    fn asks(&self, call: &ToolRequest<'_>) -> bool {
        let _ = call;
        false
    }

    /// Stands around the call of a tool.
    ///
    /// # Errors
    /// What the tool could not do; interrupts and cancellation among them, which must be handed on.
    async fn wrap_tool_call(
        &self,
        call: ToolRequest<'_>,
        next: ToolNext<'_>,
    ) -> Result<ToolReply, ToolError> {
        next.run(call).await
    }
}

/// A call of a model on its way through the chain.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The task that it belongs to.
    pub cx: NodeCx,
    /// What the model is asked.
    pub request: ModelRequest,
}

/// What the requests to a model took: one, unless the chain asks more often.
#[derive(Debug)]
pub(crate) struct Meter {
    pricing: Option<Pricing>,
    spent: Mutex<Spend>,
}

impl Meter {
    pub(crate) fn new(pricing: Option<Pricing>) -> Self {
        Self {
            pricing,
            spent: Mutex::default(),
        }
    }

    fn add(&self, usage: Usage) {
        let prices = self.pricing.as_ref();
        let cost = prices.map_or(0, |prices| prices.cost_micros(&usage));
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.tokens = spent.tokens.saturating_add(usage.total_tokens());
        spent.cost_micros = spent.cost_micros.saturating_add(cost);
    }

    /// All together.
    pub(crate) fn spent(&self) -> Spend {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rest of a chain around a model.
pub struct ModelNext<'a> {
    pub(crate) chain: &'a [Arc<dyn Middleware>],
    pub(crate) model: &'a dyn Model,
    pub(crate) stream: bool,
    /// What was said so far, as far as it is shown.
    pub(crate) said: &'a Said,
    /// What the requests took.
    pub(crate) meter: &'a Meter,
}

impl ModelNext<'_> {
    /// Asks the rest of the chain.
    ///
    /// # Errors
    /// If there is no reply.
    pub async fn run(&self, call: ModelCall) -> Result<ModelReply, ModelError> {
        if let [first, rest @ ..] = self.chain {
            let next = ModelNext {
                chain: rest,
                ..*self
            };
            return first.wrap_model_call(call, next).await;
        }
        let ModelCall { cx, mut request } = call;
        // Whatever the chain made of it, the provider gets what it takes.
        history::repair(&mut request);
        if request.system.is_none() && request.messages.is_empty() {
            return Err(ModelError::InvalidRequest {
                model: self.model.name().into(),
                message: "middleware has left no message in it that can stand without the others"
                    .to_owned(),
            });
        }
        let model_cx = tine_models::ModelCx::new(cx.world().clone());
        self.said.forget();
        let mut heard = 0;
        let mut sink = |delta: &tine_models::Delta| {
            heard += delta.chars();
            if self.stream {
                self.said.hear(delta);
                crate::events::delta(&cx, delta);
            }
        };
        let span = spans::model(self.model, &request);
        let reply = self.model.stream(&model_cx, &request, &mut sink);
        let reply = reply.instrument(span.clone()).await;
        spans::replied(&span, &reply);
        match reply {
            Ok(reply) => {
                let usage = Usage::of(&request, &reply);
                self.meter.add(usage);
                Ok(ModelReply {
                    usage: Some(usage),
                    ..reply
                })
            }
            Err(error) => {
                // Who was heard before it failed is paid.
                if heard > 0 {
                    self.meter.add(Usage::estimate(&request, heard));
                }
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for ModelNext<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ModelNext")
            .field("left", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// A call of a tool on its way through the chain.
#[derive(Clone, Debug)]
pub struct ToolRequest<'a> {
    /// The task that it belongs to. What it asks and what ids it makes are the call's own.
    pub cx: NodeCx,
    /// The call, as the model wrote it.
    pub call: ToolCall,
    /// The tool of that name, if the node has one.
    pub tool: Option<&'a BoundTool>,
    /// The tools that the node has.
    pub toolbox: &'a Toolbox,
    /// What the tool will be given.
    pub tool_cx: ToolCx,
}

/// What a call of a tool came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolReply {
    /// What it gave.
    pub output: ToolOutput,
    /// Whether it went well.
    pub status: ToolStatus,
}

impl ToolReply {
    /// An output of a call that went well.
    #[must_use]
    pub fn success(output: ToolOutput) -> Self {
        Self {
            output,
            status: ToolStatus::Success,
        }
    }

    /// What the model is told, as text.
    pub(crate) fn text(&self) -> String {
        let content = self.output.reply();
        content.map(|content| content.text()).unwrap_or_default()
    }

    /// A text about what went wrong.
    pub fn error(text: impl Into<Arc<str>>) -> Self {
        Self {
            output: ToolOutput::text(text),
            status: ToolStatus::Error,
        }
    }
}

/// The rest of a chain around a tool.
pub struct ToolNext<'a> {
    pub(crate) chain: &'a [Arc<dyn Middleware>],
    pub(crate) start: &'a Start<'a>,
}

impl ToolNext<'_> {
    /// Calls the rest of the chain, and in the end the tool.
    ///
    /// # Errors
    /// What the tool could not do.
    pub async fn run(&self, call: ToolRequest<'_>) -> Result<ToolReply, ToolError> {
        if let [first, rest @ ..] = self.chain {
            let next = ToolNext {
                chain: rest,
                start: self.start,
            };
            return first.wrap_tool_call(call, next).await;
        }
        let Some(tool) = call.tool else {
            return Err(ToolError::failed(unknown_tool(
                &call.call.name,
                call.toolbox,
            )));
        };
        let prepared = tool.prepare(call.call.args.to_json())?;
        if prepared.effect() == Effect::Effectful {
            self.start.record().await?;
        }
        let span = spans::tool(&call.call);
        let work = self.start.watch(prepared.run(&call.tool_cx));
        let result = work.instrument(span.clone()).await;
        spans::returned(&span, &result);
        result.map(ToolReply::success)
    }
}

impl std::fmt::Debug for ToolNext<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ToolNext")
            .field("left", &self.chain.len())
            .finish()
    }
}

/// What the model is told about a tool that it can not call.
fn unknown_tool(name: &str, toolbox: &Toolbox) -> String {
    // A name may be anything a model can write; the tools have short ones.
    let name: &str = &name.chars().take(100).collect::<String>();
    let near = toolbox
        .nearest(name)
        .map(|near| format!(" Did you mean `{near}`?"))
        .unwrap_or_default();
    let names: Vec<&str> = toolbox.names().collect();
    match names.as_slice() {
        [] => format!("There is no tool `{name}`, nor any other."),
        names => format!(
            "There is no tool `{name}`.{near} The tools are: {}.",
            names.join(", ")
        ),
    }
}
