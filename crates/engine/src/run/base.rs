//! The checkpoint at which an invocation begins, and branching off from it.

use crate::checkpoint::{Checkpoint, Checkpointer, Record, RecordKind, Scope, Source};
use crate::error::RunError;
use crate::world::Id;

/// Where an invocation begins.
#[derive(Debug)]
pub(super) struct Base {
    /// The checkpoint; none if the thread is new.
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) stands: Stands,
}

/// How a checkpoint stands to its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// It is the newest.
    Newest,
    /// It is the newest, and was asked for by its id.
    NewestById,
    /// The thread has moved past it: what was recorded there belongs to another branch.
    Passed,
}

impl Base {
    /// Loads the newest checkpoint, or the one with the id `at`.
    ///
    /// # Errors
    /// If there is none with this id, or it can not be loaded.
    pub(super) async fn load(
        checkpointer: Option<&dyn Checkpointer>,
        scope: &Scope,
        at: Option<Id>,
    ) -> Result<Self, RunError> {
        let Some(checkpointer) = checkpointer else {
            return match at {
                None => Ok(Self {
                    checkpoint: None,
                    stands: Stands::Newest,
                }),
                Some(_) => Err(RunError::NoCheckpointer {
                    what: "beginning at a checkpoint".into(),
                }),
            };
        };
        let newest = checkpointer.load(scope, None).await?;
        let Some(id) = at else {
            return Ok(Self {
                checkpoint: newest,
                stands: Stands::Newest,
            });
        };
        if let Some(newest) = newest.filter(|newest| newest.id == id) {
            return Ok(Self {
                checkpoint: Some(newest),
                stands: Stands::NewestById,
            });
        }
        match checkpointer.load(scope, Some(id)).await? {
            Some(checkpoint) => Ok(Self {
                checkpoint: Some(checkpoint),
                stands: Stands::Passed,
            }),
            None => Err(RunError::UnknownCheckpoint {
                thread: scope.thread.to_string().into(),
                id,
            }),
        }
    }

    /// What was recorded at the checkpoint.
    pub(super) fn records(&self) -> &[Record] {
        self.checkpoint
            .as_ref()
            .map_or(&[], |checkpoint| &checkpoint.records)
    }

    /// Whether going on from here runs again what ran before, so that it needs a branch of its own. A checkpoint that an
    /// update or a fork made is the beginning of a branch, as long as nothing has come of it.
    pub(super) fn is_replay(&self) -> bool {
        match (&self.checkpoint, self.stands) {
            (None, _) | (_, Stands::Newest) => false,
            (_, Stands::Passed) => true,
            (Some(checkpoint), Stands::NewestById) => {
                let is_carried = |record: &Record| matches!(&record.kind, RecordKind::Call(call) if call.carried);
                !is_branch_point(checkpoint.source) || !checkpoint.records.iter().all(is_carried)
            }
        }
    }

    /// Whether the first step passes breakpoints, if the thread goes on: one stopped here before, or a person changed the
    /// state here since.
    pub(super) fn passes_breakpoints(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(|checkpoint| {
            self.is_replay() || is_branch_point(checkpoint.source) || self.is_paused()
        })
    }

    /// Whether a run stopped here at a breakpoint.
    pub(super) fn is_paused(&self) -> bool {
        let mut records = self.records().iter();
        records.any(|record| record.kind == RecordKind::Paused)
    }
}

fn is_branch_point(source: Source) -> bool {
    matches!(source, Source::Update | Source::Fork)
}
