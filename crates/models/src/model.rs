//! The one trait that every model is behind.

use crate::delta::DeltaSink;
use crate::error::ModelError;
use crate::reply::ModelReply;
use crate::request::ModelRequest;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tine_engine::World;

/// A chat model: one request, one reply.
///
/// A model keeps no state between requests and executes nothing: the calls of its reply are for its caller. Dropping
/// the future of a request cancels it.
///
/// ```
/// use tine_models::{DeltaSink, Delta, Accumulator, FinishReason, Model, ModelCx, ModelError, ModelReply, ModelRequest};
///
/// /// Says back what it hears.
/// #[derive(Debug)]
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl Model for Echo {
///     fn name(&self) -> &str {
///         "echo"
///     }
///
///     async fn stream(&self, _: &ModelCx, request: &ModelRequest, sink: &mut dyn DeltaSink) -> Result<ModelReply, ModelError> {
///         let heard = request.messages.last().map(|message| message.content.text()).unwrap_or_default();
///         let mut reply = Accumulator::new();
///         for delta in [Delta::Text(heard), Delta::Finish(FinishReason::Stop)] {
///             sink.push(&delta);
///             reply.push(&delta);
///         }
///         Ok(reply.finish(self.name(), request))
///     }
/// }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "implement `Model` for it, or use `ScriptedModel`, which replies from a script and needs no network"
)]
pub trait Model: Send + Sync + fmt::Debug {
    /// The name, for messages and metadata.
    fn name(&self) -> &str;

    /// Asks the model: the reply goes to `sink` piece by piece as it comes, and is returned whole.
    ///
    /// # Errors
    /// If there is no reply. A reply that was cut off is no error: see [`ModelReply::finish`].
    async fn stream(
        &self,
        cx: &ModelCx,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError>;
}

/// What a model can use while it answers.
#[derive(Clone)]
#[non_exhaustive]
pub struct ModelCx {
    /// Clock and timer of the run.
    pub world: Arc<dyn World>,
}

impl ModelCx {
    /// A context with the world of the run.
    #[must_use]
    pub fn new(world: Arc<dyn World>) -> Self {
        Self { world }
    }
}

impl fmt::Debug for ModelCx {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ModelCx").finish_non_exhaustive()
    }
}
