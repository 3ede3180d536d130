//! A model that replies from a script.

mod pieces;

use crate::accumulate::Accumulator;
use crate::delta::{Delta, DeltaSink, ToolCallDelta};
use crate::error::ModelError;
use crate::model::{Model, ModelCx};
use crate::reply::{FinishReason, ModelReply, Usage};
use crate::request::ModelRequest;
use crate::script::{Script, ScriptReply};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// The model behind `tine.models.scripted:ScriptedModel`: replies by the rules of a [`Script`], without a network.
///
/// It sees the request only, so the same request gets the same reply. The reply is streamed, and goes through the
/// same [`Accumulator`] as that of any other model. Nobody counts its tokens: [`Usage`] is a quarter of the
/// characters, and says that it is an estimate.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    name: Arc<str>,
    script: Arc<Script>,
    delay: Duration,
}

impl ScriptedModel {
    /// A model of this name that replies from `script`.
    pub fn new(name: impl Into<Arc<str>>, script: impl Into<Arc<Script>>) -> Self {
        Self {
            name: name.into(),
            script: script.into(),
            delay: Duration::ZERO,
        }
    }

    /// Waits before each piece of the text but the first, so that a person can watch it come.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(
        &self,
        cx: &ModelCx,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let said = self
            .script
            .reply(request)
            .map_err(|error| ModelError::Script {
                model: self.name.clone(),
                error: Box::new(error),
            })?;
        let mut reply = Accumulator::new();
        for (at, piece) in pieces::words(&said.content).into_iter().enumerate() {
            if at > 0 && !self.delay.is_zero() {
                cx.world.sleep(self.delay).await;
            }
            let delta = Delta::Text(piece.to_owned());
            sink.push(&delta);
            reply.push(&delta);
        }
        for delta in rest(&said, request) {
            sink.push(&delta);
            reply.push(&delta);
        }
        Ok(reply.finish(&self.name, request))
    }
}

/// All pieces after those of the text.
fn rest(said: &ScriptReply, request: &ModelRequest) -> Vec<Delta> {
    let mut deltas = Vec::new();
    let mut output = said.content.chars().count();
    for (index, (name, args)) in (0..).zip(&said.calls) {
        let args = args.to_canonical();
        output += name.chars().count() + args.chars().count();
        deltas.push(Delta::ToolCall(ToolCallDelta {
            index,
            id: Some(request.call_id(index)),
            name: Some(name.clone()),
            ..ToolCallDelta::default()
        }));
        deltas.extend(pieces::arguments(&args).into_iter().map(|piece| {
            Delta::ToolCall(ToolCallDelta {
                index,
                arguments: piece.to_owned(),
                ..ToolCallDelta::default()
            })
        }));
    }
    deltas.push(Delta::Usage(Usage::estimate(request, output)));
    deltas.push(Delta::Finish(if said.calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    }));
    deltas
}

#[cfg(test)]
mod tests;
