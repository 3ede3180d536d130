use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tine_engine::{Timestamp, World};
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::paths::ThreadFolders;

/// Asks whoever is at the other end of a run.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot ask questions for a tool",
    note = "implement `Ask` over the interrupts of the engine, or leave it out: tools are then told that nobody answers"
)]
pub trait Ask: Send + Sync {
    /// Asks and gives the answer, if it is there.
    ///
    /// # Errors
    /// [`ToolError::Interrupted`] while there is no answer: the task stops
    /// and the tool is called again with it.
    async fn ask(&self, payload: Value) -> Result<Value, ToolError>;
}

/// Hears what a tool says to people while it works.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot listen to tools",
    note = "implement `Listen` for what shows a run to people"
)]
pub trait Listen: Send + Sync {
    /// Takes a note: something was left out, or is worth knowing.
    fn note(&self, text: &str);
}

/// Where files work may block the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blocking {
    /// In place. Nothing runs beside it, so that simulated runs repeat.
    #[default]
    Inline,
    /// On tokio's threads for blocking work.
    Threads,
}

/// What a tool may use while it works.
#[derive(Clone)]
pub struct ToolCx {
    call_id: Arc<str>,
    folders: ThreadFolders,
    world: Arc<dyn World>,
    now: Option<Timestamp>,
    cancellation: CancellationToken,
    idempotency_key: Arc<str>,
    options: Arc<Map<String, Value>>,
    routes: Arc<[String]>,
    channels: Arc<[String]>,
    ask: Arc<dyn Ask>,
    listen: Arc<dyn Listen>,
    blocking: Blocking,
}

impl ToolCx {
    /// Makes a context for one call, in which nobody answers or listens.
    pub fn new(
        call_id: impl Into<Arc<str>>,
        folders: ThreadFolders,
        world: Arc<dyn World>,
    ) -> Self {
        let call_id = call_id.into();
        Self {
            idempotency_key: Arc::clone(&call_id),
            call_id,
            folders,
            world,
            now: None,
            cancellation: CancellationToken::new(),
            options: Arc::default(),
            routes: Arc::default(),
            channels: Arc::default(),
            ask: Arc::new(Nobody),
            listen: Arc::new(Nobody),
            blocking: Blocking::default(),
        }
    }

    /// Freezes the time that tools see.
    #[must_use]
    pub fn with_now(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Sets what stops the tool.
    #[must_use]
    pub fn with_cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = token;
        self
    }

    /// Sets the key that stays the same when the call is tried again.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.idempotency_key = key.into();
        self
    }

    /// Sets the options of the run, such as `disable_clarification`.
    #[must_use]
    pub fn with_options(mut self, options: Arc<Map<String, Value>>) -> Self {
        self.options = options;
        self
    }

    /// Names the route labels that the tools node maps.
    #[must_use]
    pub fn with_routes(mut self, labels: Arc<[String]>) -> Self {
        self.routes = labels;
        self
    }

    /// Names the channels that the graph declares.
    #[must_use]
    pub fn with_channels(mut self, names: Arc<[String]>) -> Self {
        self.channels = names;
        self
    }

    /// Sets who answers questions.
    #[must_use]
    pub fn with_ask(mut self, ask: Arc<dyn Ask>) -> Self {
        self.ask = ask;
        self
    }

    /// Sets who hears notes.
    #[must_use]
    pub fn with_listen(mut self, listen: Arc<dyn Listen>) -> Self {
        self.listen = listen;
        self
    }

    /// Sets where work that blocks is done.
    #[must_use]
    pub fn with_blocking(mut self, blocking: Blocking) -> Self {
        self.blocking = blocking;
        self
    }

    /// Names the call, as the model's message does.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Gives the thread's folders.
    #[must_use]
    pub fn folders(&self) -> &ThreadFolders {
        &self.folders
    }

    /// Gives the source of time, ids and randomness.
    #[must_use]
    pub fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    /// Gives the time: that of the step, where the host froze it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(|| self.world.now())
    }

    /// Tells when the run is cancelled.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Gives a key that is the same each time this call is tried.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// Tells whether an option of the run is on.
    #[must_use]
    pub fn flag(&self, option: &str) -> bool {
        match self.options.get(option) {
            Some(Value::Bool(flag)) => *flag,
            _ => false,
        }
    }

    /// Tells whether the tools node maps a route label.
    #[must_use]
    pub fn maps_route(&self, label: &str) -> bool {
        self.routes.iter().any(|mapped| mapped == label)
    }

    /// Tells whether the graph declares a channel.
    #[must_use]
    pub fn declares(&self, channel: &str) -> bool {
        self.channels.iter().any(|declared| declared == channel)
    }

    /// Asks a person and gives the answer.
    ///
    /// While there is none, the task stops; the tool is called again from its
    /// start when the answer has come, so ask before doing anything.
    ///
    /// # Errors
    /// [`ToolError::Interrupted`], to be passed on; or a failure when nobody
    /// can be asked.
    pub async fn ask(&self, payload: Value) -> Result<Value, ToolError> {
        self.ask.ask(payload).await
    }

    /// Tells people something; the model does not see it.
    pub fn note(&self, text: &str) {
        self.listen.note(text);
    }

    /// Does work that blocks, where the host wants it done.
    ///
    /// # Errors
    /// When the work panicked or the runtime shuts down.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        match (self.blocking, tokio::runtime::Handle::try_current()) {
            (Blocking::Threads, Ok(runtime)) => {
                runtime
                    .spawn_blocking(work)
                    .await
                    .map_err(|error| ToolError::Failed {
                        message: "the work was broken off".to_owned(),
                        source: Some(Box::new(error)),
                    })
            }
            _ => Ok(work()),
        }
    }
}

impl fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCx")
            .field("call_id", &self.call_id)
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}

/// Answers nothing and hears nothing.
struct Nobody;

#[async_trait]
impl Ask for Nobody {
    async fn ask(&self, _: Value) -> Result<Value, ToolError> {
        Err(ToolError::failed(
            "nobody can be asked in this run: decide yourself and say what you assumed",
        ))
    }
}

impl Listen for Nobody {
    fn note(&self, _: &str) {}
}
