//! A thread as naively as it can be kept: for every checkpoint its parent and the raw writes that made it. Values are
//! folded anew from the beginning of the thread whenever somebody asks.

use super::reduce::{Kept, Refused, State, W, fold_step, initial, overlay, reset};
use super::spec::{Goal, Spec, Will};
use serde_json::Value as J;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tine_engine::world::Id;

#[derive(Clone, Debug)]
pub(super) enum Plan {
    Start(Vec<(String, W)>),
    Node(String),
    Dispatch(String, J),
}

/// What made the values of a checkpoint of those of its parent.
#[derive(Clone, Debug)]
enum Made {
    /// A run begins.
    NewRun,
    /// The writes of the tasks of a step, in task order.
    Writes(Vec<(String, W)>),
}

/// What the tasks planned at a checkpoint did so far.
#[derive(Clone, Debug, Default)]
struct Open {
    done: BTreeMap<String, Fin>,
    asked: BTreeMap<String, Vec<J>>,
    answers: BTreeMap<String, Vec<J>>,
    /// Whether something failed here.
    failed: bool,
}

impl Open {
    /// Whether nothing came of what is planned here.
    fn is_untouched(&self) -> bool {
        self.done.is_empty() && self.asked.is_empty() && !self.failed
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cp {
    /// The engine's name for it, learned when it is first met.
    pub(super) id: Option<Id>,
    pub(super) parent: Option<usize>,
    pub(super) source: &'static str,
    pub(super) step: i64,
    /// In order; several if steps before it were not stored.
    made: Vec<Made>,
    next: Vec<Plan>,
    joins: BTreeMap<usize, BTreeSet<String>>,
    deferred: BTreeSet<String>,
    open: Open,
}

/// A finished task.
#[derive(Clone, Debug, Default)]
struct Fin {
    writes: Vec<(String, W)>,
    nodes: Vec<String>,
    dispatches: Vec<(String, J)>,
    joins: Vec<usize>,
}

struct Task {
    node: String,
    path: String,
    plan: Plan,
}

enum End {
    Done(Fin),
    Asked(J),
    Failed,
}

/// An update from outside.
#[derive(Clone, Debug)]
pub(super) enum Up {
    /// As if this node had returned this, or the start.
    Node(String, Vec<(String, W)>, Vec<Goal>),
    Input(Vec<(String, W)>),
    End,
    Copy,
}

/// What an invocation begins with.
#[derive(Clone, Debug)]
pub(super) enum Begin {
    New {
        at: Option<usize>,
        writes: Vec<(String, W)>,
    },
    /// Answers, by the path of the task.
    Resume(Vec<(String, J)>),
    Continue,
    Replay(usize),
}

/// What a store wrote before it was stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wrote {
    /// One of this step.
    Checkpoint(i64),
    Done(String),
    Undone(String),
    Asked(String),
    Answered,
}

/// How an invocation ended, and what it asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) exit: &'static str,
    pub(super) asked: Vec<J>,
}

pub(super) struct Model {
    spec: Arc<Spec>,
    pub(super) cps: Vec<Cp>,
    /// The number of the last step that may be made.
    stop: i64,
    /// The step of the last checkpoint that was stored before the store stopped, if it does; the least of all if none was.
    last: Option<i64>,
    pub(super) conflicts: u64,
    pub(super) refusals: u64,
}

fn ended(exit: &'static str) -> Ended {
    Ended {
        exit,
        asked: Vec::new(),
    }
}

const CRASHED: &str = "crashed";

impl Model {
    pub(super) fn new(spec: Arc<Spec>) -> Self {
        Self {
            spec,
            cps: Vec::new(),
            stop: 0,
            last: None,
            conflicts: 0,
            refusals: 0,
        }
    }

    fn head(&self) -> usize {
        self.cps.len() - 1
    }

    pub(super) fn values(&self, at: Option<usize>) -> State {
        let mut line = Vec::new();
        let mut next = at;
        while let Some(at) = next {
            line.push(at);
            next = self.cps[at].parent;
        }
        let channels = &self.spec.channels;
        let mut state = initial(channels);
        for at in line.into_iter().rev() {
            for made in &self.cps[at].made {
                match made {
                    Made::NewRun => reset(channels, &mut state, Kept::Run),
                    Made::Writes(writes) => fold_step(channels, &mut state, writes, true).unwrap(),
                }
            }
        }
        state
    }

    fn tasks(&self, at: usize) -> Vec<Task> {
        let mut dispatched = 0;
        let task = |plan: &Plan| {
            let (node, path) = match plan {
                Plan::Start(_) => ("START".to_owned(), "START".to_owned()),
                Plan::Node(node) => (node.clone(), node.clone()),
                Plan::Dispatch(node, _) => {
                    dispatched += 1;
                    (node.clone(), format!("{node}#{}", dispatched - 1))
                }
            };
            Task {
                node,
                path,
                plan: plan.clone(),
            }
        };
        self.cps[at].next.iter().map(task).collect()
    }

    /// The nodes planned at a checkpoint; in the newest state those that have not finished.
    pub(super) fn next(&self, at: usize, finished: bool) -> Vec<String> {
        let done = &self.cps[at].open.done;
        self.tasks(at)
            .into_iter()
            .filter(|task| finished || !done.contains_key(&task.path))
            .map(|task| task.node)
            .collect()
    }

    /// All questions asked at a checkpoint, in the order of their tasks.
    pub(super) fn asked(&self, at: usize) -> Vec<J> {
        let open = &self.cps[at].open;
        self.tasks(at)
            .iter()
            .filter_map(|task| open.asked.get(&task.path))
            .flatten()
            .cloned()
            .collect()
    }

    /// The tasks with an open question in the newest state, with the question.
    pub(super) fn open(&self) -> Vec<(String, J)> {
        let Some(at) = self.cps.len().checked_sub(1) else {
            return Vec::new();
        };
        let open = &self.cps[at].open;
        self.tasks(at)
            .into_iter()
            .filter_map(|task| {
                let asked = open.asked.get(&task.path)?;
                let answers = open.answers.get(&task.path).map_or(0, Vec::len);
                Some((task.path, asked.get(answers)?.clone()))
            })
            .collect()
    }

    /// The newest values, with the writes of tasks that finished in the open step if they fit.
    pub(super) fn newest_values(&self) -> State {
        let at = self.head();
        let values = self.values(Some(at));
        let done = &self.cps[at].open.done;
        if done.is_empty() {
            return values;
        }
        let mut seen = values.clone();
        let tasks = self.tasks(at);
        let writes: Vec<(String, W)> = tasks
            .iter()
            .filter_map(|task| done.get(&task.path))
            .flat_map(|fin| fin.writes.clone())
            .collect();
        match fold_step(&self.spec.channels, &mut seen, &writes, true) {
            Ok(()) => seen,
            Err(_) => values,
        }
    }

    fn push(&mut self, cp: Cp) -> bool {
        if self.last.is_some_and(|last| cp.step > last) {
            return false;
        }
        self.cps.push(cp);
        true
    }

    /// Runs an invocation. `wrote` is what a store that stopped in the middle had written.
    pub(super) fn invoke(
        &mut self,
        begin: &Begin,
        round: u64,
        limit: u64,
        wrote: Option<&[Wrote]>,
    ) -> Result<Ended, Refused> {
        self.last = wrote.map(|wrote| {
            let last = wrote.iter().rev().find_map(|wrote| match wrote {
                Wrote::Checkpoint(step) => Some(*step),
                _ => None,
            });
            last.unwrap_or(i64::MIN)
        });
        let head = self.cps.len().checked_sub(1);
        let base = match begin {
            Begin::New { at: Some(at), .. } | Begin::Replay(at) => Some(*at),
            _ => head,
        };
        let step = base.map_or(-2, |base| self.cps[base].step);
        self.stop = step + i64::try_from(limit).unwrap() + 2;
        match begin {
            Begin::New { writes, .. } => {
                let cp = self.input(base, self.values(base), writes)?;
                if !self.push(cp) {
                    return Ok(ended(CRASHED));
                }
            }
            Begin::Replay(at) => {
                let untouched = self.cps[*at].open.is_untouched();
                let begins = matches!(self.cps[*at].source, "update" | "fork");
                // What an update or a fork made is the beginning of a branch already, until something came of it.
                if Some(*at) != head || !begins || !untouched {
                    let cp = self.follow(base, "fork", Vec::new(), self.cps[*at].next.clone());
                    if !self.push(cp) {
                        return Ok(ended(CRASHED));
                    }
                }
            }
            Begin::Resume(answers) => {
                let stored = wrote.is_none_or(|wrote| wrote.contains(&Wrote::Answered));
                if !stored {
                    return Ok(ended(CRASHED));
                }
                let at = self.head();
                for (path, answer) in answers {
                    let known = self.cps[at].open.answers.entry(path.clone()).or_default();
                    known.push(answer.clone());
                }
            }
            Begin::Continue => {}
        }
        Ok(self.run(round, wrote))
    }

    fn run(&mut self, round: u64, wrote: Option<&[Wrote]>) -> Ended {
        loop {
            let at = self.head();
            if let (Some(last), Some(wrote)) = (self.last, wrote)
                && self.cps[at].step >= last
            {
                self.keep(at, round, wrote);
                return ended(CRASHED);
            }
            if self.cps[at].step + 1 > self.stop {
                return ended("step_limit");
            }
            let tasks = self.tasks(at);
            if tasks.is_empty() {
                return ended("done");
            }
            let state = self.values(Some(at));
            let mut asked = Vec::new();
            let mut failed = false;
            for task in &tasks {
                if self.cps[at].open.done.contains_key(&task.path) {
                    continue;
                }
                let end = self.end(at, &state, task, round);
                failed |= matches!(end, End::Failed);
                if let End::Asked(question) = &end {
                    asked.push(question.clone());
                }
                self.record(at, &task.path, end);
            }
            let exit = match failed {
                true => "failed",
                false => "interrupted",
            };
            if failed || !asked.is_empty() {
                return Ended { exit, asked };
            }
            let fins: Vec<(String, Fin)> = tasks
                .iter()
                .map(|task| {
                    let fin = self.cps[at].open.done[&task.path].clone();
                    (task.node.clone(), fin)
                })
                .collect();
            match self.applied(Some(at), state, &fins, "loop") {
                Ok(cp) => {
                    if !self.push(cp) {
                        return ended(CRASHED);
                    }
                }
                Err(refused) => {
                    self.count(refused);
                    let open = &mut self.cps[at].open;
                    open.done.clear();
                    self.cps[at].open.failed = true;
                    return ended("failed");
                }
            }
        }
    }

    fn count(&mut self, refused: Refused) {
        match refused {
            Refused::Conflict => self.conflicts += 1,
            Refused::Reducer | Refused::Nothing => self.refusals += 1,
        }
    }

    fn record(&mut self, at: usize, path: &str, end: End) {
        let open = &mut self.cps[at].open;
        match end {
            End::Done(fin) => {
                open.done.insert(path.to_owned(), fin);
            }
            End::Asked(question) => {
                let answers = open.answers.get(path).map_or(0, Vec::len);
                let asked = open.asked.entry(path.to_owned()).or_default();
                asked.truncate(answers);
                asked.push(question);
            }
            End::Failed => {
                open.failed = true;
            }
        }
    }

    /// Keeps what a store that was stopped had written of the step under way.
    fn keep(&mut self, at: usize, round: u64, wrote: &[Wrote]) {
        let last = wrote
            .iter()
            .rposition(|wrote| matches!(wrote, Wrote::Checkpoint(_)));
        let (tasks, state) = (self.tasks(at), self.values(Some(at)));
        for wrote in &wrote[last.map_or(0, |last| last + 1)..] {
            match wrote {
                Wrote::Done(path) | Wrote::Asked(path) => {
                    let task = tasks.iter().find(|task| task.path == *path).unwrap();
                    let end = self.end(at, &state, task, round);
                    self.record(at, path, end);
                }
                Wrote::Undone(path) => {
                    self.cps[at].open.done.remove(path);
                    self.cps[at].open.failed = true;
                }
                Wrote::Checkpoint(_) | Wrote::Answered => {}
            }
        }
    }

    fn end(&self, at: usize, state: &State, task: &Task, round: u64) -> End {
        let (writes, goto) = match &task.plan {
            Plan::Start(writes) => (writes.clone(), Vec::new()),
            Plan::Node(_) | Plan::Dispatch(..) => {
                let input = match &task.plan {
                    Plan::Dispatch(_, input) => Some(input),
                    _ => None,
                };
                let answers = self.cps[at].open.answers.get(&task.path);
                let answers = answers.map_or(&[][..], Vec::as_slice);
                let step = self.cps[at].step + 1;
                match self
                    .spec
                    .will(&task.node, step, input, state, round, answers)
                {
                    Will::Fail => return End::Failed,
                    Will::Ask(question) => return End::Asked(question),
                    Will::Do { writes, goto } => (writes, goto),
                }
            }
        };
        match self.finish(&task.node, state, writes, &goto) {
            Ok(fin) => End::Done(fin),
            Err(_) => End::Failed,
        }
    }

    /// Where a task goes that wrote this.
    fn finish(
        &self,
        node: &str,
        state: &State,
        writes: Vec<(String, W)>,
        goto: &[Goal],
    ) -> Result<Fin, Refused> {
        let mut fin = Fin::default();
        let mut go = |goal: &Goal| match goal {
            Goal::Node(name) => fin.nodes.push(name.clone()),
            Goal::Dispatch(name, input) => fin.dispatches.push((name.clone(), input.clone())),
            Goal::End => {}
        };
        goto.iter().for_each(&mut go);
        if node == "START" {
            fin.nodes.extend(self.spec.entry.iter().cloned());
        } else {
            let def = self.spec.node(node);
            if def.routes {
                let seen = overlay(&self.spec.channels, state, &writes)?;
                self.spec.route(node, &seen).iter().for_each(&mut go);
            }
            fin.nodes.extend(def.edges.iter().cloned());
            if goto.is_empty() {
                fin.nodes.extend(def.defaults.iter().cloned());
            }
            let joins = self.spec.joins.iter().enumerate();
            let feeds = joins.filter(|(_, (sources, _))| sources.iter().any(|from| from == node));
            fin.joins.extend(feeds.map(|(at, _)| at));
        }
        fin.writes = writes;
        Ok(fin)
    }

    /// The checkpoint that finished tasks make on top of another.
    fn applied(
        &self,
        base: Option<usize>,
        mut state: State,
        fins: &[(String, Fin)],
        source: &'static str,
    ) -> Result<Cp, Refused> {
        let writes: Vec<(String, W)> = fins
            .iter()
            .flat_map(|(_, fin)| fin.writes.clone())
            .collect();
        fold_step(&self.spec.channels, &mut state, &writes, true)?;
        let base_cp = base.map(|base| &self.cps[base]);
        let mut joins = base_cp.map(|cp| cp.joins.clone()).unwrap_or_default();
        let mut deferred = base_cp.map(|cp| cp.deferred.clone()).unwrap_or_default();
        let mut nodes: BTreeSet<String> = BTreeSet::new();
        let mut dispatches = Vec::new();
        for (node, fin) in fins {
            nodes.extend(fin.nodes.iter().cloned());
            dispatches.extend(fin.dispatches.iter().cloned());
            for join in &fin.joins {
                joins.entry(*join).or_default().insert(node.clone());
            }
        }
        // All that a step brings counts for the same round of a join.
        let spec = &self.spec;
        let full = |join: &usize, seen: &BTreeSet<String>| seen.len() == spec.joins[*join].0.len();
        nodes.extend(
            joins
                .iter()
                .filter(|(join, seen)| full(join, seen))
                .map(|(join, _)| spec.joins[*join].1.clone()),
        );
        let (waits, mut runs): (BTreeSet<String>, BTreeSet<String>) =
            nodes.into_iter().partition(|node| spec.node(node).defer);
        deferred.extend(waits);
        if runs.is_empty() {
            runs = std::mem::take(&mut deferred);
        }
        // A full join begins its next round when its target runs, which a deferred one does later.
        joins.retain(|join, seen| !full(join, seen) || deferred.contains(&spec.joins[*join].1));
        let next = runs.into_iter().map(Plan::Node);
        let dispatches = dispatches
            .into_iter()
            .map(|(node, input)| Plan::Dispatch(node, input));
        Ok(Cp {
            id: None,
            parent: base,
            source,
            step: base_cp.map_or(-1, |cp| cp.step) + 1,
            made: vec![Made::Writes(writes)],
            next: next.chain(dispatches).collect(),
            joins,
            deferred,
            open: Open::default(),
        })
    }

    /// Forgets the checkpoints from `first` on that are not of these steps: they were never stored, and those that were
    /// stand for them.
    pub(super) fn contract(&mut self, first: usize, kept: &[i64]) {
        let Some(parent) = self.cps.get(first).map(|cp| cp.parent) else {
            return;
        };
        let (mut parent, mut made) = (parent, Vec::new());
        for mut cp in self.cps.split_off(first) {
            made.append(&mut cp.made);
            if kept.contains(&cp.step) {
                cp.parent = parent;
                cp.made = std::mem::take(&mut made);
                parent = Some(self.cps.len());
                self.cps.push(cp);
            }
        }
        assert!(made.is_empty(), "the newest checkpoint is always stored");
    }

    /// Updates in several steps: all or none.
    pub(super) fn update(&mut self, at: Option<usize>, steps: &[Vec<Up>]) -> Result<(), Refused> {
        let first = self.cps.len();
        let mut base = at.or(first.checked_sub(1));
        // What was done at a checkpoint counts as long as the thread has not moved past it.
        let mut counts = base == first.checked_sub(1);
        for step in steps {
            let updated = self.updated(base, counts, step);
            match updated {
                Ok(cp) => self.cps.push(cp),
                Err(refused) => {
                    self.cps.truncate(first);
                    return Err(refused);
                }
            }
            base = Some(self.cps.len() - 1);
            counts = false;
        }
        Ok(())
    }

    fn updated(&self, base: Option<usize>, counts: bool, step: &[Up]) -> Result<Cp, Refused> {
        let state = self.values(base);
        match step {
            [Up::End] => {
                let tasks = base.map(|at| self.tasks(at)).unwrap_or_default();
                let done = base.filter(|_| counts).map(|at| &self.cps[at].open.done);
                let fins: Vec<(String, Fin)> = tasks
                    .into_iter()
                    .filter_map(|task| Some((task.node, done?.get(&task.path)?.clone())))
                    .collect();
                self.applied(base, state, &fins, "update")
            }
            [Up::Copy] => {
                let mut cp = self.cps[base.ok_or(Refused::Nothing)?].clone();
                cp.id = None;
                cp.source = "fork";
                cp.step += 1;
                cp.open = Open::default();
                Ok(cp)
            }
            [Up::Input(writes)] => self.input(base, state, writes),
            nodes => {
                let mut fins = Vec::new();
                for up in nodes {
                    let Up::Node(node, writes, goto) = up else {
                        panic!("alone in its step: {up:?}");
                    };
                    let fin = self.finish(node, &state, writes.clone(), goto)?;
                    fins.push((node.clone(), fin));
                }
                self.applied(base, state, &fins, "update")
            }
        }
    }

    /// The checkpoint that new input makes.
    fn input(
        &self,
        base: Option<usize>,
        mut state: State,
        writes: &[(String, W)],
    ) -> Result<Cp, Refused> {
        reset(&self.spec.channels, &mut state, Kept::Run);
        fold_step(&self.spec.channels, &mut state, writes, false)?;
        let next = vec![Plan::Start(writes.to_vec())];
        Ok(self.follow(base, "input", vec![Made::NewRun], next))
    }

    /// A checkpoint that follows another without any task having run.
    fn follow(
        &self,
        base: Option<usize>,
        source: &'static str,
        made: Vec<Made>,
        next: Vec<Plan>,
    ) -> Cp {
        let cp = base.map(|base| &self.cps[base]);
        Cp {
            id: None,
            parent: base,
            source,
            step: cp.map_or(-2, |cp| cp.step) + 1,
            made,
            next,
            joins: cp.map(|cp| cp.joins.clone()).unwrap_or_default(),
            deferred: cp.map(|cp| cp.deferred.clone()).unwrap_or_default(),
            open: Open::default(),
        }
    }
}
