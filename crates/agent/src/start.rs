//! The start of a call in the journal, written where the chain reaches the tool.

use futures_util::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tine_engine::run::Call;
use tine_engine::{NodeCx, NodeError};
use tine_tools::{ToolError, ToolOutput};

/// The start of one call: whether it is recorded, and whether the call may have taken place since.
///
/// An attempt that finds a start without a result asks the user what became of the call. So a start is taken back when
/// the call gives no reply, but only if it is known not to have taken place:
///
/// - the chain did not reach the tool, because it refused the call or asks somebody first;
/// - the tool says that it did not begin: its arguments do not fit, or it asks before it works.
///
/// After any other error a tool may have done half of its work. Where the error becomes a reply, the call is recorded
/// as done with that reply. Where the node fails with it (`on_tool_error: fail`, `type: tool`), the start stays, and the
/// next attempt asks, be it a resume or a retry: a tool that may be called again unasked says so by its effect. The
/// start also stays when a tool was cancelled, and when its result could not be used or stored.
pub(crate) struct Start<'a> {
    cx: &'a NodeCx,
    call: &'a Call,
    recorded: AtomicBool,
    /// How many runs of the tool may have taken place; middleware may run it again.
    taken: AtomicUsize,
    failure: Mutex<Option<NodeError>>,
}

impl<'a> Start<'a> {
    /// The start of a call that is `recorded` already or not.
    pub(crate) fn new(cx: &'a NodeCx, call: &'a Call, recorded: bool) -> Self {
        Self {
            cx,
            call,
            recorded: AtomicBool::new(recorded),
            taken: AtomicUsize::new(0),
            failure: Mutex::new(None),
        }
    }

    /// Makes the start durable, if it is not.
    ///
    /// # Errors
    /// One that is not for the model and ends the call. [`end`](Self::end) gives what it stands for.
    pub(crate) async fn record(&self) -> Result<(), ToolError> {
        if self.recorded.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.cx.start_calls(std::slice::from_ref(self.call)).await {
            Ok(()) => {
                self.recorded.store(true, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(error);
                Err(ToolError::Cancelled)
            }
        }
    }

    /// Runs the tool, and notes whether it may have done something. It counts as done while it runs: middleware may
    /// drop it.
    ///
    /// # Errors
    /// Those of the tool.
    pub(crate) async fn watch(
        &self,
        tool: impl Future<Output = Result<ToolOutput, ToolError>>,
    ) -> Result<ToolOutput, ToolError> {
        self.taken.fetch_add(1, Ordering::AcqRel);
        // A panic ends this call alone; past here it would end all calls of the message.
        let result = AssertUnwindSafe(tool).catch_unwind().await;
        let result = result.unwrap_or_else(|panic| Err(panicked(&*panic)));
        if let Err(ToolError::Arguments(_) | ToolError::Interrupted) = result {
            self.taken.fetch_sub(1, Ordering::AcqRel);
        }
        result
    }

    /// What kept the start from being recorded, whatever the chain made of it.
    ///
    /// # Errors
    /// If there was something.
    pub(crate) fn end(&self) -> Result<(), NodeError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }

    /// Takes a recorded start back, if the call is known not to have taken place.
    ///
    /// # Errors
    /// If that could not be made durable.
    pub(crate) async fn take_back(&self) -> Result<(), NodeError> {
        if self.recorded.load(Ordering::Acquire) && self.taken.load(Ordering::Acquire) == 0 {
            let call = std::slice::from_ref(self.call);
            self.cx.abandon_calls(call).await?;
        }
        Ok(())
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolError::failed(format!(
        "the tool panicked: {}",
        text.unwrap_or("no message")
    ))
}
