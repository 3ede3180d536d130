//! As which node an update is made that does not say so.

use crate::checkpoint::{Checkpoint, Checkpointer, Scope, Source, by_edges};
use crate::command::START;
use crate::error::{RunError, StoreError};
use std::sync::Arc;

/// The node that ran last before a checkpoint, [`START`] if none did.
///
/// Nodes reached by edges count; dispatches and updates do not.
///
/// # Errors
/// [`RunError::AmbiguousUpdate`] if several ran last in one step; or what the store says.
pub(super) async fn last_ran(
    checkpointer: &dyn Checkpointer,
    scope: &Scope,
    base: Option<&Checkpoint>,
) -> Result<Arc<str>, RunError> {
    let Some(base) = base else {
        return Ok(START.into());
    };
    let (mut ran, mut source, mut parent) = (base.ran.clone(), base.source, base.parent);
    loop {
        match &*ran {
            [] => {}
            [only] => return Ok(only.clone()),
            [..] => return Err(RunError::AmbiguousUpdate { candidates: ran }),
        }
        let Some(id) = parent else {
            return Ok(START.into());
        };
        let loaded = checkpointer.load(scope, Some(id)).await?;
        let before = loaded.ok_or_else(|| StoreError::UnknownCheckpoint {
            thread: scope.thread.to_string().into(),
            id: id.to_string(),
        })?;
        ran = match source {
            Source::Loop => by_edges(&before.next),
            Source::Input | Source::Update | Source::Fork => Vec::new(),
        };
        if ran.is_empty() {
            ran = before.ran;
        }
        (source, parent) = (before.source, before.parent);
    }
}
