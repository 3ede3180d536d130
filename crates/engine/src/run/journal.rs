//! Journaled calls: work inside a task that is not done again once it has finished.

use crate::checkpoint::{CallRecord, CallState, Record, RecordKind, RecordOp};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, NodeErrorKind, RunError};
use crate::interrupt::Interrupt;
use crate::run::task::Left;
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
    shown: Option<Shown>,
}

/// What people are told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    name: Arc<str>,
    args: Value,
}

impl Call {
    /// A call under this key. The key must be the same whenever the task runs again, and used once an attempt.
    pub fn new(key: impl Into<Arc<str>>, input: &Value) -> Self {
        Self {
            key: key.into(),
            input: xxhash_rust::xxh3::xxh3_64(input.to_canonical().as_bytes()),
            shown: None,
        }
    }

    /// Makes the input part of the key: another input is then another call, not a mismatch.
    #[must_use]
    pub fn keyed_by_input(mut self) -> Self {
        self.key = format!("{}:{:016x}", self.key, self.input).into();
        self
    }

    /// Says what the call is to people, who are asked about it when its outcome is unknown: a question that says so
    /// names this and not the key alone.
    #[must_use]
    pub fn shown_as(mut self, name: impl Into<Arc<str>>, args: Value) -> Self {
        self.shown = Some(Shown {
            name: name.into(),
            args,
        });
        self
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }
}

/// What may be answered about a call of unknown outcome.
const OUTCOMES: [&str; 3] = ["retry", "skip", "fail"];

/// The question about a call of unknown outcome.
fn outcome_question(key: &Arc<str>, shown: Option<&Shown>) -> Value {
    let name = shown.map_or(key, |shown| &shown.name);
    let text = format!(
        "`{name}` was started before this run broke off, and nobody knows whether it took place."
    );
    let question = [
        ("kind", "unknown_outcome".into()),
        ("call", Value::Text(key.clone())),
        ("text", text.into()),
        ("options", OUTCOMES.to_vec().into()),
    ];
    let shown = shown.map(|shown| {
        [
            ("name", Value::Text(shown.name.clone())),
            ("args", shown.args.clone()),
        ]
    });
    Value::from_pairs(question.into_iter().chain(shown.into_iter().flatten()))
}

/// Whether this is what is asked about a call of unknown outcome.
fn is_outcome_question(payload: &Value) -> bool {
    let text = |key| match payload.get(key) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let shown = text("name").zip(payload.get("args"));
    let shown = shown.map(|(name, args)| Shown {
        name,
        args: args.clone(),
    });
    // Compared as a whole: a node may ask about something of its own that looks much like it.
    text("call").is_some_and(|key| *payload == outcome_question(&key, shown.as_ref()))
}

/// Whether an answer fits a question about a call of unknown outcome; `None` if the question is another one.
pub(super) fn check_outcome(question: &Interrupt, answer: &Value) -> Option<Result<(), String>> {
    if !is_outcome_question(&question.payload) {
        return None;
    }
    if answer.as_str().is_some_and(|text| OUTCOMES.contains(&text)) {
        return Some(Ok(()));
    }
    let given = match answer.as_str() {
        Some(text) => text.to_owned(),
        None => answer.to_canonical(),
    };
    let given: String = given.chars().take(80).collect();
    Some(Err(format!(
        "`{given}` is none of `retry`, `skip` and `fail`"
    )))
}

impl NodeCx {
    /// Does `work` once: if it finished in an earlier attempt of this task, or before a crash, its result is returned
    /// and nothing is done.
    ///
    /// Before effectful work its start is recorded. If the task finds a start without a result, nobody knows whether
    /// the work took place: it asks whether to `retry`, to `skip` (the result is then null) or to `fail`. Errors are
    /// not recorded. Failed work is done again on a retry, without a question if its error says that it did not take
    /// place; a timeout, a broken connection and a cancellation do not say that.
    ///
    /// # Errors
    /// Those of `work`; a key that was used before; a journal that could not be written.
    #[doc(alias = "task")]
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
        if let Some(result) = self.known_result(call, effects).await? {
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
                let unknown = [
                    ErrorClass::Timeout,
                    ErrorClass::Transport,
                    ErrorClass::Canceled,
                ];
                if effects == Effects::Effectful
                    && (error.stops_run() || !unknown.contains(&error.class()))
                {
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
    pub async fn known_result(
        &self,
        call: &Call,
        effects: Effects,
    ) -> Result<Option<Value>, NodeError> {
        if !self.task.take_key(self.attempt, &call.key) {
            let message = format!(
                "the journal key `{}` was used twice in one attempt",
                call.key
            );
            return Err(NodeError::new(ErrorClass::Internal, message));
        }
        let Some(record) = self.task.recorded_call(&call.key) else {
            return Ok(None);
        };
        match record.state {
            CallState::Idle => Ok(None),
            _ if record.input != call.input && record.carried => Ok(None),
            _ if record.input != call.input => {
                let error = RunError::JournalMismatch {
                    location: self.task.location(),
                    key: call.key.clone(),
                };
                Err(NodeError::from_kind(NodeErrorKind::Run(Box::new(error))))
            }
            CallState::Done(result) => Ok(Some(result)),
            CallState::Started if effects == Effects::Effectful => {
                self.ask_about(call, record).await
            }
            CallState::Started => Ok(None),
        }
    }

    /// Asks what to do about a call whose outcome is unknown. Each time it is started or asked about has a question of
    /// its own, so no answer speaks of more than one.
    async fn ask_about(
        &self,
        call: &Call,
        mut record: CallRecord,
    ) -> Result<Option<Value>, NodeError> {
        let payload = outcome_question(&record.key, call.shown.as_ref());
        loop {
            let slot = self.task.slot(&format!("{}?", record.key), record.times);
            let answer = self.ask_at(slot, || payload.clone())?;
            match answer.as_str() {
                Some("retry") => return Ok(None),
                Some("skip") => return Ok(Some(Value::Null)),
                answer => {
                    // Asked anew when the task runs again; and at once after what is none of the options, which can
                    // stand in threads of an engine that took every answer.
                    record.times += 1;
                    self.record_calls(vec![record.clone()]).await?;
                    if answer == Some("fail") {
                        let name = call.shown.as_ref().map_or(&record.key, |shown| &shown.name);
                        let message = format!("`{name}` has an unknown outcome and was given up");
                        return Err(NodeError::new(ErrorClass::ToolFailed, message));
                    }
                }
            }
        }
    }

    /// Records, in one commit, that these calls start. Nothing of them may be done before this has returned.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub async fn start_calls(&self, calls: &[Call]) -> Result<(), NodeError> {
        let starts = calls.iter().map(|call| {
            let times = self.times(call) + 1;
            self.record_of(call, times, CallState::Started)
        });
        self.record_calls(starts.collect()).await
    }

    /// Records the result of a call. Nobody may be told of it before this has returned.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub async fn finish_call(&self, call: &Call, result: &Value) -> Result<(), NodeError> {
        let done = CallState::Done(result.clone());
        self.record_calls(vec![self.record_of(call, self.times(call), done)])
            .await
    }

    /// Takes back the starts of calls that are known not to have taken place: they failed, or asked before they began.
    /// The next attempt makes them without a question.
    ///
    /// # Errors
    /// If the record could not be made durable.
    pub async fn abandon_calls(&self, calls: &[Call]) -> Result<(), NodeError> {
        let idle = calls
            .iter()
            .map(|call| self.record_of(call, self.times(call), CallState::Idle));
        self.record_calls(idle.collect()).await
    }

    /// Says what is to be kept of work should a cancellation break the task off: it is asked for then, and recorded as
    /// the result of `call`, which is no call that is made. The task runs again when the thread goes on;
    /// [`recorded`](Self::recorded) tells of what was kept, and [`abandon_calls`](Self::abandon_calls) drops it. What
    /// was said last holds; nothing is kept where `left` gives nothing, nor of a task in a child graph, which ends with
    /// its host.
    pub fn keep_if_cancelled(
        &self,
        call: &Call,
        left: impl Fn() -> Option<Value> + Send + Sync + 'static,
    ) {
        self.task.set_left(Left {
            call: self.record_of(call, self.times(call), CallState::Idle),
            result: Box::new(left),
        });
    }

    /// How a call stands in the journal; `None` if it was never begun.
    #[must_use]
    pub fn recorded(&self, call: &Call) -> Option<CallState> {
        let record = self.task.recorded_call(&call.key)?;
        (record.input == call.input).then_some(record.state)
    }

    fn times(&self, call: &Call) -> u32 {
        self.task
            .recorded_call(&call.key)
            .map_or(0, |record| record.times)
    }

    fn record_of(&self, call: &Call, times: u32, state: CallState) -> CallRecord {
        CallRecord {
            key: call.key.clone(),
            input: call.input,
            times,
            state,
            carried: false,
        }
    }

    async fn record_calls(&self, calls: Vec<CallRecord>) -> Result<(), NodeError> {
        self.check_attempt()?;
        let task = &self.task;
        let put = |call: &CallRecord| {
            RecordOp::Put(Record {
                task: task.path.clone(),
                kind: RecordKind::Call(call.clone()),
            })
        };
        let stored = self
            .run_cx()
            .record(task.info.checkpoint, calls.iter().map(put).collect())
            .await;
        stored.map_err(|error| {
            NodeError::from_kind(NodeErrorKind::Run(Box::new(RunError::Store(error))))
        })?;
        task.note_calls(calls);
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
