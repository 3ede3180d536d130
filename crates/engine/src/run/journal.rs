//! Journaled calls: work inside a task that is not done again once it has finished.

use crate::checkpoint::{CallRecord, Record, RecordKey, RecordKind, RecordOp};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, NodeErrorKind, RunError, StoreError};
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::sync::Arc;

/// What doing a call twice would mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// Nothing: it only reads.
    ReadOnly,
    /// Nothing more: the second time leaves things as the first did.
    Idempotent,
    /// Something more; so it must not be done again unasked.
    #[default]
    Effectful,
}

/// Names a journaled call within its task, and says what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    key: Arc<str>,
    input: u64,
}

/// What the journal knows of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    Nothing,
    /// It started, and nobody knows whether it finished.
    Started,
    Done(Value),
}

impl Call {
    /// A call under this key. The key must be the same whenever the task runs again, and used once an attempt.
    pub fn new(key: impl Into<Arc<str>>, input: &Value) -> Self {
        Self {
            key: key.into(),
            input: xxhash_rust::xxh3::xxh3_64(input.to_canonical().as_bytes()),
        }
    }

    /// Makes the input part of the key: another input is then another call, not a mismatch.
    #[must_use]
    pub fn keyed_by_input(mut self) -> Self {
        self.key = format!("{}:{:016x}", self.key, self.input).into();
        self
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    fn record(&self, result: Option<Value>) -> CallRecord {
        CallRecord {
            key: self.key.clone(),
            input: self.input,
            result,
        }
    }
}

impl NodeCx {
    /// Does `work` once: if it finished in an earlier attempt of this task, or before a crash, its result is returned
    /// and nothing is done.
    ///
    /// Before effectful work its start is recorded, and taken back if the work says that it failed. If the task finds a start without a result, nobody knows
    /// whether the work took place: it asks whether to `retry`, to `skip` (the result is then null) or to `fail`.
    /// Errors are not recorded, so failed work is done again on a retry.
    ///
    /// # Errors
    /// Those of `work`; a key that was used before; a journal that could not be written.
    pub async fn call<F, R>(
        &self,
        call: &Call,
        effects: Effects,
        work: F,
    ) -> Result<Value, NodeError>
    where
        F: FnOnce(Self) -> R + Send,
        R: Future<Output = Result<Value, NodeError>> + Send,
    {
        if let Some(result) = self.known_result(call, effects)? {
            return Ok(result);
        }
        if effects == Effects::Effectful {
            self.start_calls(std::slice::from_ref(call)).await?;
        }
        match work(self.for_call(call)).await {
            Ok(result) => {
                self.finish_call(call, &result).await?;
                Ok(result)
            }
            Err(error) => {
                if effects == Effects::Effectful {
                    self.abandon_calls(std::slice::from_ref(call)).await?;
                }
                Err(error)
            }
        }
    }

    /// The result of a call that need not be done: recorded, or skipped because its outcome is unknown and the person
    /// asked said so. `None` if it is to be done.
    ///
    /// # Errors
    /// A key that was used before, a record of another call under the key, or an open question about the outcome.
    pub fn known_result(&self, call: &Call, effects: Effects) -> Result<Option<Value>, NodeError> {
        if !self.task.take_key(self.attempt, &call.key) {
            let message = format!(
                "the journal key `{}` was used twice in one attempt",
                call.key
            );
            return Err(NodeError::new(ErrorClass::Internal, message));
        }
        match self.known(call)? {
            Known::Done(result) => Ok(Some(result)),
            Known::Started if effects == Effects::Effectful => self.ask_about(call),
            Known::Started | Known::Nothing => Ok(None),
        }
    }

    fn known(&self, call: &Call) -> Result<Known, NodeError> {
        match self.task.recorded_call(&call.key) {
            None => Ok(Known::Nothing),
            Some(record) if record.input != call.input => {
                let error = RunError::JournalMismatch {
                    location: self.task.location(),
                    key: call.key.clone(),
                };
                Err(NodeError::from_kind(NodeErrorKind::Run(Box::new(error))))
            }
            Some(CallRecord { result: None, .. }) => Ok(Known::Started),
            Some(CallRecord {
                result: Some(result),
                ..
            }) => Ok(Known::Done(result)),
        }
    }

    fn ask_about(&self, call: &Call) -> Result<Option<Value>, NodeError> {
        let text = format!(
            "`{}` was started before this run broke off, and nobody knows whether it took place.",
            call.key
        );
        let payload = Value::from_pairs([
            ("kind", "unknown_outcome".into()),
            ("call", Value::Text(call.key.clone())),
            ("text", text.into()),
            ("options", vec!["retry", "skip", "fail"].into()),
        ]);
        let asker = Self {
            call: Some(asker(call).into()),
            ..self.clone()
        };
        loop {
            let answer = asker.interrupt(payload.clone())?;
            match answer.as_str() {
                Some("retry") => return Ok(None),
                Some("skip") => return Ok(Some(Value::Null)),
                Some("fail") => {
                    return Err(NodeError::new(
                        ErrorClass::ToolFailed,
                        format!("`{}` has an unknown outcome and was given up", call.key),
                    ));
                }
                // None of the options: an answer stays with the task, so this is asked anew.
                _ => {}
            }
        }
    }

    /// Records, in one commit, that these calls start. Nothing of them may be done before this has returned.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub async fn start_calls(&self, calls: &[Call]) -> Result<(), NodeError> {
        let task = &self.task;
        let mut ops = Vec::new();
        for call in calls {
            // An answer about an earlier start says nothing about this one.
            for slot in task.answered(&asker(call)) {
                task.forget_answer(&slot);
                ops.extend(RecordKey::question(&task.path, &slot).map(RecordOp::Remove));
            }
        }
        let starts = calls.iter().map(|call| call.record(None)).collect();
        self.record_calls(ops, starts).await
    }

    /// Records the result of a call. Nobody may be told of it before this has returned.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub async fn finish_call(&self, call: &Call, result: &Value) -> Result<(), NodeError> {
        self.record_calls(Vec::new(), vec![call.record(Some(result.clone()))])
            .await
    }

    /// Takes back the starts of calls that are known not to have taken place: they failed, or asked before they began.
    /// The next attempt makes them without a question.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub async fn abandon_calls(&self, calls: &[Call]) -> Result<(), NodeError> {
        let task = &self.task;
        let ops = calls.iter().map(|call| {
            let record = Record {
                task: task.path.clone(),
                kind: RecordKind::Call(call.record(None)),
            };
            RecordOp::Remove(record.key())
        });
        let stored = self.run_cx().record(task.checkpoint, ops.collect()).await;
        stored.map_err(store_error)?;
        task.forget_calls(calls.iter().map(Call::key));
        Ok(())
    }

    async fn record_calls(
        &self,
        mut ops: Vec<RecordOp>,
        calls: Vec<CallRecord>,
    ) -> Result<(), NodeError> {
        ops.extend(calls.iter().map(|call| {
            RecordOp::Put(Record {
                task: self.task.path.clone(),
                kind: RecordKind::Call(call.clone()),
            })
        }));
        let stored = self.run_cx().record(self.task.checkpoint, ops).await;
        stored.map_err(store_error)?;
        self.task.note_calls(calls);
        Ok(())
    }

    /// The context in which a call works: what it asks and what ids it makes are its own.
    #[must_use]
    pub fn for_call(&self, call: &Call) -> Self {
        Self {
            call: Some(call.key.clone()),
            ..self.clone()
        }
    }
}

/// Who asks about the unknown outcome of a call.
fn asker(call: &Call) -> String {
    format!("{}?", call.key)
}

fn store_error(error: StoreError) -> NodeError {
    NodeError::from_kind(NodeErrorKind::Run(Box::new(RunError::Store(error))))
}
