//! Running a case: its actions in order, what each shows, and the verdict.

use crate::case::{Action, ActionKind, Answer, At, AtWord, Case, CommandSpec, Observe, UpdateSpec};
use crate::compare::{Difference, compare};
use crate::events::{Events, source_name};
use crate::graph::{breakpoints, build};
use crate::lang::{CaseError, Env, command_targets, eval, eval_map};
use crate::neutral::{
    engine_name, neutral, neutral_error, neutral_name, neutral_path, typed_update,
};
use crate::probe::{CaseRun, Ear};
use crate::support::unsupported;
use std::collections::BTreeMap;
use std::sync::Arc;
use tine_engine::run::{Durability, HistoryQuery, InputPolicy, Snapshot, ThreadUpdate, UpdateAs};
use tine_engine::value::{List, Map};
use tine_engine::world::Id;
use tine_engine::{
    Checkpointer, ClientCommand, Command, Exit, Input, Interrupt, Outcome, Output, Resume,
    RunError, RunOptions, Runner, SimWorld, ThreadKey, Update, Value,
};

/// What became of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Where the engine did something else; none if the case passed.
    pub differences: Vec<Difference>,
}

impl Verdict {
    /// Whether the engine did what the case says.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Runs a case over a fresh checkpointer, and compares.
pub async fn run_case(
    case: &Case,
    make_checkpointer: &(dyn Fn() -> Arc<dyn Checkpointer> + Sync),
) -> Verdict {
    let missing = unsupported(case);
    if !missing.is_empty() {
        let differences = missing.into_iter().map(|feature| Difference::Unsupported {
            feature: feature.to_owned(),
        });
        return Verdict {
            differences: differences.collect(),
        };
    }
    let run = Arc::new(CaseRun::new(case.clone()));
    let graph = match build(&run, "root", &case.graph) {
        Ok(graph) => graph,
        Err(error) => return broken(None, error.to_string()),
    };
    let mut runner = Runner::new(graph, SimWorld::new(0));
    if case.checkpointer {
        runner = runner.with_checkpointer(make_checkpointer());
    }
    let mut drive = Drive {
        case,
        run,
        runner,
        reported: Vec::new(),
    };
    let mut verdict = Verdict::default();
    for (at, action) in case.run.iter().enumerate() {
        match drive.act(action).await {
            Ok(found) => verdict.differences.extend(compare(case, at, &found)),
            // What comes after it stands on nothing.
            Err(error) => {
                verdict
                    .differences
                    .extend(broken(Some(at), error.to_string()).differences);
                return verdict;
            }
        }
        let faults = drive.run.probe.take_faults();
        verdict
            .differences
            .extend(faults.into_iter().map(|message| Difference::Broken {
                action: Some(at),
                message,
            }));
    }
    verdict
}

fn broken(action: Option<usize>, message: String) -> Verdict {
    Verdict {
        differences: vec![Difference::Broken { action, message }],
    }
}

struct Drive<'a> {
    case: &'a Case,
    run: Arc<CaseRun>,
    runner: Runner,
    /// The questions that each action reported.
    reported: Vec<Vec<Interrupt>>,
}

impl Drive<'_> {
    /// Performs an action. Gives what it showed.
    async fn act(&mut self, action: &Action) -> Result<Map, CaseError> {
        let thread = ThreadKey::local(action.thread.as_str());
        let updating = matches!(
            action.kind,
            ActionKind::Update(_) | ActionKind::BulkUpdate { .. }
        );
        self.run.probe.begin_action(updating);
        let at = match &action.at {
            Some(at) => Some(self.checkpoint(&thread, at).await?),
            None => None,
        };
        let mut asked = Vec::new();
        let found = match (&action.kind, at) {
            (ActionKind::State { .. }, Some(id)) => self.state_at(&thread, id).await,
            (ActionKind::State { subgraphs }, None) => self.state(&thread, *subgraphs).await,
            (ActionKind::History { limit }, _) => self.history(&thread, *limit).await,
            (ActionKind::Update(update), at) => {
                let update = update_of(update)?;
                self.update(&thread, at, vec![vec![update]]).await
            }
            (ActionKind::BulkUpdate { steps }, at) => {
                let step = |step: &Vec<UpdateSpec>| step.iter().map(update_of).collect();
                let steps: Result<Vec<Vec<ThreadUpdate>>, CaseError> =
                    steps.iter().map(step).collect();
                self.update(&thread, at, steps?).await
            }
            (kind, at) => {
                let input = self.input(&thread, kind, at).await?;
                self.invoke(action, &thread, input, at, &mut asked).await?
            }
        };
        self.reported.push(asked);
        Ok(found)
    }

    /// The checkpoint that an action names.
    async fn checkpoint(&self, thread: &ThreadKey, at: &At) -> Result<Id, CaseError> {
        let query = match at {
            At::Word(AtWord::Unknown) => return Ok(Id(u128::MAX)),
            At::Word(AtWord::Head) => HistoryQuery {
                limit: Some(1),
                ..HistoryQuery::default()
            },
            At::Matching { step, source } => HistoryQuery {
                limit: Some(1),
                step: Some(*step),
                source: Some(*source),
                ..HistoryQuery::default()
            },
        };
        let history = self.runner.history(thread, query).await;
        let history = history.map_err(|error| CaseError(error.to_string()))?;
        let found = history.first().map(|snapshot| snapshot.id);
        found.ok_or_else(|| CaseError(format!("there is no checkpoint {at:?}")))
    }

    async fn input(
        &self,
        thread: &ThreadKey,
        kind: &ActionKind,
        at: Option<Id>,
    ) -> Result<Input, CaseError> {
        let env = Env::default();
        Ok(match kind {
            ActionKind::Invoke { input } => Input::New(typed_update(eval_map(input, &env)?)),
            ActionKind::Resume {
                answers: Some(answers),
                ..
            } => Input::Resume(self.by_id(thread, answers, at).await?),
            ActionKind::Resume { value, .. } => {
                let answer = eval(value.as_ref().unwrap_or(&Value::Null), &env)?;
                Input::Resume(Resume::value(answer).lenient())
            }
            ActionKind::Command { command } => {
                let resume = command.resume.as_ref();
                let resume = resume.map(|answer| eval(answer, &env)).transpose()?;
                Input::Command(ClientCommand {
                    update: command_update(command)?,
                    goto: command_targets(command, &env)?,
                    resume: resume.map(|answer| Resume::value(answer).lenient()),
                })
            }
            _ => Input::Continue,
        })
    }

    /// Answers by the ids of the questions they name.
    async fn by_id(
        &self,
        thread: &ThreadKey,
        answers: &[Answer],
        at: Option<Id>,
    ) -> Result<Resume, CaseError> {
        let read = match at {
            Some(id) => self.runner.state_at(thread, id).await.map(Some),
            None => self.runner.state(thread).await,
        };
        let pending = match read {
            Ok(Some(snapshot)) => snapshot.interrupts,
            _ => Vec::new(),
        };
        let mut by_id = Vec::new();
        for answer in answers {
            let value = eval(&answer.value, &Env::default())?;
            let Some(question) = answer.to.as_ref().filter(|_| !answer.unknown) else {
                by_id.push((format!("{:032x}", 1), value));
                continue;
            };
            let pool = match answer.seen {
                None => &pending,
                Some(action) => self.reported.get(action).ok_or_else(|| {
                    CaseError(format!(
                        "an answer names action {action}, which is not done"
                    ))
                })?,
            };
            let mut asked = pool
                .iter()
                .filter(|interrupt| neutral(&interrupt.payload) == *question);
            match (asked.next(), asked.next()) {
                (Some(only), None) => by_id.push((only.id.to_string(), value)),
                (None, _) => return Err(CaseError(format!("nobody asked {question}"))),
                (Some(_), Some(_)) => return Err(CaseError(format!("several asked {question}"))),
            }
        }
        Ok(Resume::by_id(by_id).lenient())
    }

    async fn invoke(
        &self,
        action: &Action,
        thread: &ThreadKey,
        input: Input,
        at: Option<Id>,
        asked: &mut Vec<Interrupt>,
    ) -> Result<Map, CaseError> {
        let invocation = action.run_id.as_deref().map(invocation_id);
        let durability = match action.durability.as_deref() {
            None | Some("sync") => Durability::Sync,
            Some("async") => Durability::Async,
            Some("exit") => Durability::Exit,
            Some(other) => return Err(CaseError(format!("there is no durability `{other}`"))),
        };
        let mut options = RunOptions {
            at,
            invocation,
            durability,
            input_policy: InputPolicy::Ignore,
            listener: Some(Arc::new(Ear(self.run.clone()))),
            ..RunOptions::default()
        };
        if let Some(limit) = action.recursion_limit {
            options.step_limit = u64::try_from(limit).unwrap_or(0);
        }
        if let Some(at) = &action.interrupt_before {
            options.interrupt_before = breakpoints(at);
        }
        if let Some(at) = &action.interrupt_after {
            options.interrupt_after = breakpoints(at);
        }
        let outcome = self.runner.invoke(thread, input, options).await;
        let (status, error) = match &outcome {
            Ok(outcome) => status(outcome),
            Err(error) => ("error", Some(error.clone())),
        };
        let mut found = Map::new();
        found.insert("status".into(), status.into());
        let mut events = self.events(thread).await;
        match &error {
            Some(error) => {
                found.insert("error".into(), neutral_error(error));
                if is_task_failure(error) {
                    let node = error.node().map(|node| neutral_path(node));
                    events.drop_failed_step(&node.unwrap_or_default());
                }
            }
            None => {
                if self.case.observes(Observe::Result) {
                    found.insert("result".into(), events.result());
                }
                asked.extend(outcome.into_iter().flat_map(|outcome| outcome.interrupts));
                if !asked.is_empty() {
                    found.insert("interrupts".into(), questions(asked));
                }
            }
        }
        if self.case.observes(Observe::Calls) {
            found.insert("calls".into(), self.run.probe.calls().into());
        }
        let shown = events.shown(self.case);
        if !shown.is_empty() {
            found.insert("events".into(), shown.into());
        }
        if self.case.observes(Observe::State) && self.case.checkpointer {
            found.extend(self.state(thread, false).await);
        }
        Ok(found)
    }

    async fn events(&self, thread: &ThreadKey) -> Events {
        let mut stored: BTreeMap<Id, Value> = BTreeMap::new();
        if self.case.observes(Observe::Checkpoints)
            && let Ok(history) = self.runner.history(thread, None).await
        {
            stored.extend(
                history
                    .into_iter()
                    .map(|snapshot| (snapshot.id, neutral(&snapshot.values.into()))),
            );
        }
        let mut outputs = self.run.probe.outputs();
        outputs.insert(
            String::new(),
            self.runner.graph().output().cloned().collect(),
        );
        Events::collect(&self.run.probe.heard(), outputs, stored)
    }

    async fn update(
        &self,
        thread: &ThreadKey,
        at: Option<Id>,
        steps: Vec<Vec<ThreadUpdate>>,
    ) -> Map {
        let mut found = Map::new();
        match self.runner.bulk_update(thread, at, steps).await {
            Ok(_) => found.insert("status".into(), "done".into()),
            Err(error) => {
                found.insert("error".into(), neutral_error(&error));
                found.insert("status".into(), "error".into())
            }
        };
        let calls = self.run.probe.calls();
        if self.case.observes(Observe::Calls) && !calls.is_empty() {
            found.insert("calls".into(), calls.into());
        }
        found.extend(self.state(thread, false).await);
        found
    }

    /// A checkpoint as it was stored, under the key `state`.
    async fn state_at(&self, thread: &ThreadKey, id: Id) -> Map {
        let state = match self.runner.state_at(thread, id).await {
            Ok(snapshot) => show(&snapshot),
            Err(error) => Value::from_pairs([("error", neutral_error(&error))]),
        };
        [("state".into(), state)].into()
    }

    /// The head of the thread, under the key `state`.
    async fn state(&self, thread: &ThreadKey, children: bool) -> Map {
        let read = if children {
            self.runner.state_with_children(thread).await
        } else {
            self.runner.state(thread).await
        };
        let state = match read {
            Ok(Some(snapshot)) => show(&snapshot),
            Ok(None) => nothing(),
            Err(error) => Value::from_pairs([("error", neutral_error(&error))]),
        };
        [("state".into(), state)].into()
    }

    async fn history(&self, thread: &ThreadKey, limit: Option<usize>) -> Map {
        let snapshots = match self.runner.history(thread, None).await {
            Ok(snapshots) => snapshots,
            Err(error) => return [("error".into(), neutral_error(&error))].into(),
        };
        let places: BTreeMap<Id, usize> = snapshots
            .iter()
            .enumerate()
            .map(|(place, snapshot)| (snapshot.id, place))
            .collect();
        let items: List = snapshots
            .iter()
            .take(limit.unwrap_or(usize::MAX))
            .map(|snapshot| {
                let parent = snapshot.parent.and_then(|parent| places.get(&parent));
                let mut item = show(snapshot).as_map().cloned().unwrap_or_default();
                item.insert(
                    "parent".into(),
                    parent.map_or(Value::Null, |place| (*place).into()),
                );
                Value::from(item)
            })
            .collect();
        [
            ("count".into(), snapshots.len().into()),
            ("items".into(), items.into()),
        ]
        .into()
    }
}

/// What is shown of a thread or a checkpoint that is not there.
fn nothing() -> Value {
    Value::from_pairs([
        ("values", Value::map()),
        ("next", Value::list()),
        ("step", Value::Null),
        ("source", Value::Null),
    ])
}

/// The engine's id of an invocation that a case names.
fn invocation_id(name: &str) -> Id {
    let bytes = name.bytes().take(16);
    Id(bytes.fold(0, |id, byte| id << 8 | u128::from(byte)))
}

fn update_of(spec: &UpdateSpec) -> Result<ThreadUpdate, CaseError> {
    let env = Env::default();
    let output: Output = match &spec.command {
        Some(command) => Command {
            update: command_update(command)?,
            goto: command_targets(command, &env)?,
            ..Command::default()
        }
        .into(),
        None => match &spec.values {
            Some(values) => typed_update(eval_map(values, &env)?).into(),
            None => Output::default(),
        },
    };
    let by = match spec.as_node.as_deref() {
        None => UpdateAs::LastRan,
        Some("INPUT") => UpdateAs::Input,
        Some("COPY") => UpdateAs::Copy,
        Some(name) => engine_name(name).into(),
    };
    Ok(ThreadUpdate::new(by, output))
}

fn command_update(command: &CommandSpec) -> Result<Update, CaseError> {
    let writes = command.update.clone().unwrap_or_default();
    Ok(typed_update(eval_map(&writes, &Env::default())?))
}

fn status(outcome: &Outcome) -> (&'static str, Option<RunError>) {
    match &outcome.exit {
        Exit::Done => ("done", None),
        Exit::Interrupted => ("interrupted", None),
        Exit::Paused => ("paused", None),
        Exit::Cancelled => ("cancelled", None),
        other => ("error", other.error().cloned()),
    }
}

/// Whether an error is that of a task. A step limit is none, nor are writes that can not be folded together.
fn is_task_failure(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Node { .. }
            | RunError::NodeTimeout { .. }
            | RunError::UnknownNode { .. }
            | RunError::UnmappedRoute { .. }
            | RunError::InvalidUpdate { .. }
            | RunError::Reducer { .. }
            | RunError::NoParent { .. }
    )
}

/// Questions as cases list them, sorted.
fn questions(interrupts: &[Interrupt]) -> Value {
    let mut rows: Vec<(String, String, Value)> = interrupts
        .iter()
        .map(|interrupt| {
            let payload = neutral(&interrupt.payload);
            (
                neutral_path(&interrupt.node),
                payload.to_canonical(),
                payload,
            )
        })
        .collect();
    rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    rows.into_iter()
        .map(|(node, _, payload)| Value::from_pairs([("node", node.into()), ("payload", payload)]))
        .collect::<List>()
        .into()
}

fn show(snapshot: &Snapshot) -> Value {
    let name = |node: &str| Value::from(neutral_name(node));
    let next: List = snapshot.next.iter().map(|task| name(&task.node)).collect();
    let failed: List = snapshot
        .next
        .iter()
        .filter(|task| task.error.is_some())
        .map(|task| name(&task.node))
        .collect();
    let mut shown = Map::new();
    shown.insert("values".into(), neutral(&snapshot.values.clone().into()));
    shown.insert("next".into(), next.into());
    if !snapshot.interrupts.is_empty() {
        shown.insert("interrupts".into(), questions(&snapshot.interrupts));
    }
    if !failed.is_empty() {
        shown.insert("failed".into(), failed.into());
    }
    shown.insert("step".into(), snapshot.step.into());
    shown.insert("source".into(), source_name(snapshot.source).into());
    let children: Map = snapshot
        .next
        .iter()
        .filter_map(|task| Some((task.node.clone(), show(task.child.as_ref()?))))
        .collect();
    if !children.is_empty() {
        shown.insert("children".into(), children.into());
    }
    shown.into()
}
