//! Random programs of runs, answers, updates, forks, replays and crashes over random graphs: the engine's threads are
//! those of a model that shares no reducer, delta, snapshot or branch with it.

mod reduce;
mod spec;
mod store;
mod thread;

use crate::kit::{open, wait};
use reduce::{Chan, Kept, Kind, O, State, W};
use serde_json::{Value as J, json};
use spec::{Dice, Goal, Spec, Will};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use store::Stopping;
use thread::{Begin, Model, Up};
use tine_engine::channel::{
    Add, Append, Dedupe, Definition, Extreme, Last, Merge, Messages, Newest, Promoted, Same, Upsert,
};
use tine_engine::checkpoint::{Checkpointer, Source, ThreadKey};
use tine_engine::run::{Durability, Snapshot, ThreadUpdate, UpdateAs};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{
    ChannelSpec, Command, ErrorClass, Event, EventKind, Graph, Input, Keep, Listener,
    MemoryCheckpointer, NodeCx, NodeError, Op, Resume, RunOptions, Runner, START, SimWorld, Target,
    Update, Value, Write,
};

/// What happened in all programs.
#[derive(Debug, Default)]
struct Counts {
    invocations: u64,
    resumes: u64,
    updates: u64,
    forks: u64,
    bulk: u64,
    /// Checkpoints that a run did not store, by its own choice.
    left_out: u64,
    replays: u64,
    crashes: u64,
    reopened: u64,
    failures: u64,
    refused: u64,
    conflicts: u64,
    refusals: u64,
    checkpoints: u64,
    compared: u64,
    live: u64,
}

fn value(json: &J) -> Value {
    Value::from_json(json.clone())
}

fn write(write: &W) -> Write {
    match write {
        W::Value(json) => Write::Value(value(json)),
        W::Overwrite(json) => Write::Overwrite(value(json)),
        W::Ops(ops) => Write::Ops(
            ops.iter()
                .map(|op| match op {
                    O::Add(json) => Op::Add(value(json)),
                    O::Remove(name) => Op::Remove(name.as_str().into()),
                    O::Clear => Op::Clear,
                })
                .collect(),
        ),
    }
}

fn update(writes: &[(String, W)]) -> Update {
    writes.iter().fold(Update::new(), |update, (channel, w)| {
        update.with(channel.as_str(), write(w))
    })
}

fn target(goal: &Goal) -> Target {
    match goal {
        Goal::Node(name) => Target::Node(name.as_str().into()),
        Goal::Dispatch(name, input) => Target::dispatch(name.as_str(), value(input)),
        Goal::End => Target::End,
    }
}

fn command(writes: &[(String, W)], goto: &[Goal]) -> Command {
    Command {
        update: update(writes),
        goto: goto.iter().map(target).collect(),
        ..Command::default()
    }
}

fn channel(chan: &Chan) -> ChannelSpec {
    let mut spec = match &chan.kind {
        Kind::Last => ChannelSpec::new(Last),
        Kind::Newest => ChannelSpec::new(Newest),
        Kind::Same => ChannelSpec::new(Same),
        Kind::Append => ChannelSpec::new(Append),
        Kind::Dedupe => ChannelSpec::new(Dedupe::default()),
        Kind::DedupeById => ChannelSpec::new(Dedupe::by("id")),
        Kind::Upsert {
            move_to_end,
            max,
            finals,
        } => {
            let mut upsert = Upsert::by("id");
            upsert.move_to_end = *move_to_end;
            upsert.max = *max;
            upsert.final_when = finals.then(|| ("v".into(), vec![0.into()]));
            ChannelSpec::new(upsert)
        }
        Kind::Merge => ChannelSpec::new(Merge),
        Kind::Add => ChannelSpec::new(Add),
        Kind::Max => ChannelSpec::new(Extreme::Max),
        Kind::Min => ChannelSpec::new(Extreme::Min),
        Kind::Messages => ChannelSpec::new(Messages),
        Kind::Promoted => ChannelSpec::new(Promoted),
    };
    spec.keep = match chan.kept {
        Kept::Thread => Keep::Thread,
        Kept::Run => Keep::Run,
        Kept::Step => Keep::Step,
    };
    spec.default = chan.default.as_ref().map(value);
    spec
}

fn thread_update(up: &Up) -> ThreadUpdate {
    match up {
        Up::Node(name, writes, goto) => {
            let by = match name.as_str() {
                "START" => UpdateAs::Start,
                node => UpdateAs::from(node),
            };
            ThreadUpdate::new(by, command(writes, goto))
        }
        Up::Input(writes) => ThreadUpdate::new(UpdateAs::Input, update(writes)),
        Up::End => ThreadUpdate::new(UpdateAs::End, ()),
        Up::Copy => ThreadUpdate::new(UpdateAs::Copy, ()),
    }
}

/// What a node or router sees.
fn seen(spec: &Spec, cx: &NodeCx) -> State {
    spec.channels
        .iter()
        .filter_map(|chan| Some((chan.name.clone(), cx.value(&chan.name)?.to_json())))
        .collect()
}

async fn node(cx: NodeCx, spec: Arc<Spec>, round: u64) -> Result<Command, NodeError> {
    let (name, step) = (cx.node().to_string(), cx.step());
    let (input, state) = (cx.dispatched().map(Value::to_json), seen(&spec, &cx));
    for _ in 0..spec.pauses(&name, step, round) {
        tokio::task::yield_now().await;
    }
    let mut answers = Vec::new();
    loop {
        match spec.will(&name, step, input.as_ref(), &state, round, &answers) {
            Will::Fail => return Err(NodeError::new(ErrorClass::Denied, "as planned")),
            Will::Ask(question) => answers.push(cx.interrupt(value(&question))?.to_json()),
            Will::Do { writes, goto } => return Ok(command(&writes, &goto)),
        }
    }
}

fn graph(spec: &Arc<Spec>, round: &Arc<AtomicU64>) -> Graph {
    let mut graph = Graph::builder("random");
    for chan in &spec.channels {
        graph.channel(chan.name.as_str(), Definition::from(channel(chan)));
    }
    for def in &spec.nodes {
        let (known, round) = (spec.clone(), round.clone());
        let options = graph.node(def.name.as_str(), move |cx: NodeCx| {
            node(cx, known.clone(), round.load(Ordering::Relaxed))
        });
        if def.defer {
            options.defer();
        }
        for to in &def.edges {
            graph.edge(def.name.as_str(), to.as_str());
        }
        for to in &def.defaults {
            graph.default_edge(def.name.as_str(), to.as_str());
        }
        if def.routes {
            let known = spec.clone();
            graph.branch(def.name.as_str(), move |cx: NodeCx| {
                let goals = known.route(cx.node(), &seen(&known, &cx));
                async move { Ok(goals.iter().map(target).collect::<Vec<_>>()) }
            });
        }
    }
    for to in &spec.entry {
        graph.edge(START, to.as_str());
    }
    for (sources, target) in &spec.joins {
        graph.join(sources.iter().map(String::as_str), target.as_str());
    }
    graph.build().unwrap()
}

/// A stored state, as the model has it.
fn state(values: &Map) -> State {
    values
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_json()))
        .collect()
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Input => "input",
        Source::Loop => "loop",
        Source::Update => "update",
        Source::Fork => "fork",
    }
}

/// One program: a thread of the engine and its model.
struct Program {
    spec: Arc<Spec>,
    model: Model,
    dice: Dice,
    key: ThreadKey,
    round: Arc<AtomicU64>,
    world: Arc<SimWorld>,
    store: Stopping,
    runner: Runner,
    live: Arc<Ears>,
    log: Vec<String>,
}

/// The values that listeners were told of checkpoints.
#[derive(Default)]
struct Live {
    /// The checkpoint that was just told of.
    just: Option<Id>,
    values: BTreeMap<Id, Map>,
}

#[derive(Default)]
struct Ears(Mutex<Live>);

impl Listener for Ears {
    fn on_event(&self, event: &Event) {
        let mut live = self.0.lock().unwrap();
        let just = live.just.take();
        match &event.kind {
            EventKind::Checkpoint { id, .. } => live.just = Some(*id),
            EventKind::Values { values } => {
                live.values.extend(just.map(|id| (id, values.clone())));
            }
            _ => {}
        }
    }
}

impl Program {
    fn new(seed: u64, store: Arc<dyn Checkpointer>) -> Self {
        let spec = Arc::new(Spec::random(seed));
        let round = Arc::new(AtomicU64::new(0));
        let store = Stopping::new(store);
        let world = Arc::new(SimWorld::new(seed).shuffled(seed));
        let runner = Runner::new(graph(&spec, &round), world.clone())
            .with_checkpointer(Arc::new(store.clone()));
        Self {
            model: Model::new(spec.clone()),
            spec,
            dice: Dice::of(&["program", &seed.to_string()]),
            key: ThreadKey::local(format!("model {seed}")),
            round,
            world,
            store,
            runner,
            live: Arc::default(),
            log: Vec::new(),
        }
    }

    /// Goes on over another store, which holds the same.
    fn reopen(&mut self, store: Arc<dyn Checkpointer>) {
        self.store = Stopping::new(store);
        let graph = graph(&self.spec, &self.round);
        self.runner =
            Runner::new(graph, self.world.clone()).with_checkpointer(Arc::new(self.store.clone()));
    }

    /// The place of some checkpoint.
    fn some(&mut self) -> usize {
        self.dice.below(self.model.cps.len())
    }

    fn id(&self, at: usize) -> Id {
        self.model.cps[at].id.unwrap()
    }

    fn writes(&mut self, most: usize) -> Vec<(String, W)> {
        let at = self.model.cps.len().checked_sub(1);
        let state = self.model.values(at);
        self.spec.writes(&mut self.dice, &state, most)
    }

    async fn step(&mut self, counts: &mut Counts) {
        let new = self.model.cps.is_empty();
        let open = self.model.open();
        let begin = match self.dice.below(20) {
            0..3 if new => return self.update(None, counts).await,
            0..6 => Begin::New {
                at: None,
                writes: self.writes(3),
            },
            _ if new => Begin::New {
                at: None,
                writes: self.writes(3),
            },
            6 => Begin::New {
                at: Some(self.some()),
                writes: self.writes(3),
            },
            7..12 if !open.is_empty() => {
                let some = open.iter().enumerate();
                let some = some.filter(|(at, _)| *at == 0 || self.dice.one_in(2));
                let answers = some.map(|(at, (path, _))| (path.clone(), json!({"yes": at})));
                Begin::Resume(answers.collect())
            }
            12..14 => return self.update(None, counts).await,
            14..16 => {
                let at = self.some();
                return self.update(Some(at), counts).await;
            }
            16..19 => Begin::Replay(self.some()),
            _ => Begin::Continue,
        };
        self.invoke(begin, open, counts).await;
    }

    /// An update as a node or as the start.
    fn up(&mut self) -> Up {
        let nodes = self.spec.nodes.iter();
        let names: Vec<String> = nodes.map(|node| node.name.clone()).collect();
        let name = match self.dice.one_in(8) {
            true => "START".to_owned(),
            false => self.dice.of_all(&names).clone(),
        };
        let writes = self.writes(2);
        let goto = match self.dice.one_in(5) {
            true => vec![Goal::Node(self.dice.of_all(&names).clone())],
            false => Vec::new(),
        };
        Up::Node(name, writes, goto)
    }

    async fn update(&mut self, at: Option<usize>, counts: &mut Counts) {
        let mut steps = Vec::new();
        for number in 0..1 + self.dice.below(3) / 2 * self.dice.below(3) {
            steps.push(match self.dice.below(12) {
                0 => vec![Up::End],
                1 if number == 0 => vec![Up::Copy],
                2 => vec![Up::Input(self.writes(2))],
                3 => vec![self.up(), self.up()],
                _ => vec![self.up()],
            });
        }
        self.log.push(format!("update {at:?} {steps:?}"));
        counts.bulk += u64::from(steps.len() > 1 || steps[0].len() > 1);
        let id = at.map(|at| self.id(at));
        self.store.arm(None);
        let updates = steps
            .iter()
            .map(|step| step.iter().map(thread_update).collect());
        let found = self.runner.bulk_update(&self.key, id, updates.collect());
        let found = found.await;
        let expected = self.model.update(at, &steps);
        assert_eq!(found.is_ok(), expected.is_ok(), "{found:?} {:#?}", self.log);
        match at {
            _ if found.is_err() => counts.refused += 1,
            Some(_) => counts.forks += 1,
            None => counts.updates += 1,
        }
    }

    async fn invoke(&mut self, begin: Begin, open: Vec<(String, J)>, counts: &mut Counts) {
        let round = self.round.fetch_add(1, Ordering::Relaxed) + 1;
        let limit = 1 + self.dice.below(7) as u64;
        let durability = *self.dice.of_all(&[
            Durability::Sync,
            Durability::Sync,
            Durability::Sync,
            Durability::Async,
            Durability::Exit,
        ]);
        let crash = self
            .dice
            .one_in(4)
            .then(|| (1 + self.dice.below(7), self.dice.one_in(2)));
        self.log.push(format!(
            "{begin:?}, limit {limit}, crash {crash:?}, {durability:?}"
        ));
        let mut options = RunOptions {
            step_limit: limit,
            max_parallel: *self.dice.of_all(&[1, 2, 3, 64]),
            listener: Some(self.live.clone()),
            durability,
            ..RunOptions::default()
        };
        let input = match &begin {
            Begin::New { at, writes } => {
                options.at = at.map(|at| self.id(at));
                Input::New(update(writes))
            }
            Begin::Replay(at) => {
                options.at = Some(self.id(*at));
                Input::Continue
            }
            Begin::Continue => Input::Continue,
            Begin::Resume(answers) => {
                let state = self.runner.state(&self.key).await.unwrap().unwrap();
                let asked = open.iter().zip(&state.interrupts);
                let by_id = answers.iter().map(|(path, answer)| {
                    let asked = asked.clone().find(|((known, _), _)| known == path);
                    (asked.unwrap().1.id, value(answer))
                });
                Input::Resume(match open.len() == 1 && self.dice.one_in(2) {
                    true => Resume::value(value(&answers[0].1)),
                    false => Resume::by_id(by_id),
                })
            }
        };
        self.store.arm(crash);
        let run = self.runner.invoke(&self.key, input, options);
        let found = tokio::select! {
            biased;
            found = run => Some(found),
            () = self.store.stopped() => None,
        };
        self.live.0.lock().unwrap().just = None;
        if found.is_none() {
            self.store.end().await;
        }
        let wrote = self.store.wrote();
        let wrote = found.is_none().then_some(wrote.as_slice());
        let first = self.model.cps.len();
        let expected = self.model.invoke(&begin, round, limit, wrote);
        if durability == Durability::Exit {
            let history = self.history(None).await;
            let new = history.len().saturating_sub(first);
            let kept: Vec<i64> = history[..new].iter().map(|stored| stored.step).collect();
            let made = self.model.cps.len();
            self.model.contract(first, &kept);
            counts.left_out += (made - self.model.cps.len()) as u64;
        }
        counts.invocations += 1;
        if expected.is_ok() {
            // Tells more of what is wrong than the exit does.
            self.compare(counts, false).await;
        }
        match (found, expected) {
            (None, Ok(_)) => counts.crashes += 1,
            (Some(Err(_)), Err(_)) => counts.refused += 1,
            (Some(Ok(found)), Ok(expected)) => {
                assert_eq!(
                    found.exit.name(),
                    expected.exit,
                    "{:?} {:#?}",
                    found.exit,
                    self.log
                );
                let asked: Vec<J> = found
                    .interrupts
                    .iter()
                    .map(|asked| asked.payload.to_json())
                    .collect();
                assert_eq!(asked, expected.asked, "{:#?}", self.log);
                counts.failures += u64::from(expected.exit == "failed");
                match begin {
                    Begin::Resume(answers) => {
                        assert_eq!(found.answered, answers.len());
                        counts.resumes += 1;
                    }
                    Begin::Replay(_) => counts.replays += 1,
                    _ => {}
                }
            }
            (found, expected) => panic!("{found:?} {expected:?} {:#?}", self.log),
        }
    }

    async fn history(&self, limit: Option<usize>) -> Vec<Snapshot> {
        let history = self.runner.history(&self.key, limit).await;
        history.unwrap_or_else(|error| panic!("{error} {:#?}\n{:#?}", self.log, self.spec.channels))
    }

    /// Compares the checkpoints that are new, or all, and the newest state.
    async fn compare(&mut self, counts: &mut Counts, all: bool) {
        let known = self.model.cps.iter().filter(|cp| cp.id.is_some()).count();
        let limit = (!all).then(|| self.model.cps.len() - known + 1);
        let history = self.history(limit).await;
        let first = match all {
            true => 0,
            // The last of those that were known, to see that it is still there.
            false => known.saturating_sub(1),
        };
        let places = first..self.model.cps.len();
        for (at, found) in places.clone().zip(history.iter().rev()) {
            let known = self.model.cps[at].id.get_or_insert(found.id);
            assert_eq!(*known, found.id, "{:#?}", self.log);
            self.same(at, found);
            counts.compared += 1;
        }
        assert_eq!(history.len(), places.len(), "{:#?}", self.log);
        let newest = self.runner.state(&self.key).await.unwrap();
        let Some(newest) = newest else {
            assert!(self.model.cps.is_empty());
            return;
        };
        let at = self.model.cps.len() - 1;
        assert_eq!(newest.id, self.id(at));
        assert_eq!(
            state(&newest.values),
            self.model.newest_values(),
            "{:#?}",
            self.log
        );
        let nodes: Vec<&str> = newest.next.iter().map(|task| &*task.node).collect();
        let expected = self.model.next(at, false);
        assert_eq!(nodes, with_start(&expected), "{:#?}", self.log);
        let open: Vec<J> = newest
            .interrupts
            .iter()
            .map(|asked| asked.payload.to_json())
            .collect();
        let expected: Vec<J> = self
            .model
            .open()
            .into_iter()
            .map(|(_, asked)| asked)
            .collect();
        assert_eq!(open, expected, "{:#?}", self.log);
    }

    fn same(&self, at: usize, found: &Snapshot) {
        let expected = &self.model.cps[at];
        let log = || format!("checkpoint {at} of {:#?}\n{:#?}", self.log, self.spec);
        let parent = expected.parent.map(|parent| self.id(parent));
        assert_eq!(found.parent, parent, "{}", log());
        assert_eq!(found.step, expected.step, "{}", log());
        assert_eq!(source(found.source), expected.source, "{}", log());
        assert_eq!(
            state(&found.values),
            self.model.values(Some(at)),
            "{}",
            log()
        );
        let nodes: Vec<&str> = found.next.iter().map(|task| &*task.node).collect();
        assert_eq!(nodes, with_start(&self.model.next(at, true)), "{}", log());
        let asked: Vec<J> = found
            .interrupts
            .iter()
            .map(|asked| asked.payload.to_json())
            .collect();
        assert_eq!(asked, self.model.asked(at), "{}", log());
    }

    /// What listeners were told live is what loading gives.
    async fn compare_live(&self, counts: &mut Counts) {
        let live = std::mem::take(&mut self.live.0.lock().unwrap().values);
        // A run that stores only its last checkpoint tells of the others too.
        let stored = |id: &Id| self.model.cps.iter().any(|cp| cp.id == Some(*id));
        for (id, values) in live.into_iter().filter(|(id, _)| stored(id)) {
            let loaded = self.runner.state_at(&self.key, id).await.unwrap();
            assert_eq!(loaded.values, values, "{id} {:#?}", self.log);
            counts.live += 1;
        }
    }
}

fn with_start(nodes: &[String]) -> Vec<&str> {
    let name = |node: &'_ String| match node.as_str() {
        "START" => START,
        _ => "",
    };
    nodes
        .iter()
        .map(|node| match name(node) {
            "" => node.as_str(),
            start => start,
        })
        .collect()
}

/// Runs the programs of these seeds; `reopen` gives the store, or another that holds what one does.
fn check(programs: u64, reopen: impl Fn(Option<&Stopping>) -> Arc<dyn Checkpointer>) -> Counts {
    let mut counts = Counts::default();
    wait(async {
        for seed in 0..programs {
            let mut program = Program::new(seed, reopen(None));
            for _ in 0..6 + program.dice.below(14) {
                if program.dice.one_in(8) {
                    program.reopen(reopen(Some(&program.store)));
                    counts.reopened += 1;
                }
                program.step(&mut counts).await;
                program.compare(&mut counts, false).await;
            }
            program.compare(&mut counts, true).await;
            program.compare_live(&mut counts).await;
            counts.checkpoints += program.model.cps.len() as u64;
            counts.conflicts += program.model.conflicts;
            counts.refusals += program.model.refusals;
        }
    });
    println!("{programs} programs: {counts:?}");
    counts
}

/// The programs reach what they are to test.
fn reached(counts: &Counts, programs: u64) {
    let at_least = [
        (counts.resumes, programs / 8),
        (counts.updates, programs / 2),
        (counts.forks, programs / 2),
        (counts.replays, programs / 2),
        (counts.bulk, programs / 8),
        (counts.left_out, programs / 4),
        (counts.crashes, programs / 2),
        (counts.failures, programs / 2),
        (counts.refused, programs / 20),
        (counts.conflicts, programs / 20),
        (counts.refusals, programs / 20),
        (counts.checkpoints, programs * 10),
        (counts.live, programs * 4),
    ];
    for (place, (found, wanted)) in at_least.into_iter().enumerate() {
        assert!(found > wanted, "{place}: {found} of {wanted}: {counts:?}");
    }
}

#[test]
fn threads_in_memory_are_those_of_the_model() {
    let programs = 2_000;
    let counts = check(programs, |known| match known {
        Some(store) => store.inner(),
        None => Arc::new(MemoryCheckpointer::new()),
    });
    reached(&counts, programs);
}

#[test]
fn threads_in_sqlite_are_those_of_the_model() {
    let programs = 300;
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("threads.db");
    // The last to close the file empties its log into it and waits for the disk; with this one, that is not each program.
    let _open = open(path);
    let counts = check(programs, |_| Arc::new(open(path)));
    reached(&counts, programs);
}
