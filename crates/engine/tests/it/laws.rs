//! Laws of reducers, over seeded random programs.

use crate::scene::{Scene, block_on, nothing, thread};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tine_engine::channel::{
    Add, Append, Dedupe, Definition, Extreme, Last, Merge, Messages, Newest, Promoted, Same, Upsert,
};
use tine_engine::command::Target;
use tine_engine::value::List;
use tine_engine::{
    ChannelSpec, Command, Event, EventKind, Graph, Input, NodeCx, NodeError, Op, RunOptions, START,
    SimWorld, Update, Value, World, Write,
};

/// How many programs each law is tried on.
const PROGRAMS: u64 = 200;

/// A reducer, and a maker of writes that it takes.
struct Subject {
    spec: ChannelSpec,
    write: fn(&mut Dice) -> Write,
}

/// Random numbers, and the names of what the channel holds by now.
struct Dice {
    world: SimWorld,
    present: Vec<Arc<str>>,
}

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.world.random() % limit
    }

    fn number(&mut self) -> i64 {
        self.below(7) as i64 - 3
    }

    fn numbers(&mut self) -> Value {
        let many = self.below(3);
        let items: List = (0..many).map(|_| Value::from(self.number())).collect();
        items.into()
    }

    /// A name, which the channel holds from now on.
    fn name(&mut self) -> Arc<str> {
        let name: Arc<str> = ["a", "b", "c", "d"][self.below(4) as usize].into();
        if !self.present.contains(&name) {
            self.present.push(name.clone());
        }
        name
    }

    /// A removal of something that is there, or else an addition.
    fn removal(&mut self, add: fn(&mut Self) -> Value) -> Write {
        if self.below(4) == 0 {
            self.present.clear();
            return Write::Ops(vec![Op::Clear, Op::Add(add(self))]);
        }
        if self.present.is_empty() {
            return Write::Value(add(self));
        }
        let place = self.below(self.present.len() as u64) as usize;
        Write::Ops(vec![Op::Remove(self.present.remove(place))])
    }

    fn mostly(&mut self, add: fn(&mut Self) -> Value) -> Write {
        if self.below(4) == 0 {
            self.removal(add)
        } else {
            Write::Value(add(self))
        }
    }
}

fn list_write(dice: &mut Dice) -> Write {
    match dice.below(6) {
        0 => Write::Ops(vec![Op::Clear, Op::Add(dice.numbers())]),
        1 => Write::Value(dice.number().into()),
        _ => Write::Value(dice.numbers()),
    }
}

fn object(dice: &mut Dice) -> Value {
    let name = dice.name();
    json!({"id": &*name, "v": dice.number()}).into()
}

fn message(dice: &mut Dice) -> Value {
    let name = dice.name();
    json!({"role": "user", "content": dice.number().to_string(), "id": &*name}).into()
}

fn entry(dice: &mut Dice) -> Value {
    let name = dice.name();
    Value::from_pairs([(name, Value::from(dice.number()))])
}

fn promotion(dice: &mut Dice) -> Value {
    let hash = ["h1", "h2"][dice.below(2) as usize];
    json!({"catalog_hash": hash, "names": [&*dice.name(), &*dice.name()]}).into()
}

/// All reducers the engine ships.
fn subjects() -> Vec<Subject> {
    fn number(dice: &mut Dice) -> Write {
        Write::Value(dice.number().into())
    }
    fn number_or_null(dice: &mut Dice) -> Write {
        Write::Value(match dice.below(3) {
            0 => Value::Null,
            _ => dice.number().into(),
        })
    }
    fn one_or_null(dice: &mut Dice) -> Write {
        Write::Value(match dice.below(3) {
            0 => Value::Null,
            _ => json!({"k": [1]}).into(),
        })
    }
    fn item(dice: &mut Dice) -> Write {
        match dice.below(8) {
            0 => Write::Ops(vec![Op::Clear, Op::Add(object(dice))]),
            _ => Write::Value(object(dice)),
        }
    }
    let subject = |spec, write| Subject { spec, write };
    let mut last_three = Upsert::by("id");
    last_three.move_to_end = true;
    last_three.max = Some(3);
    let mut finals = Upsert::by("id");
    finals.final_when = Some(("v".into(), vec![1.into(), 2.into()]));
    vec![
        subject(ChannelSpec::new(Last), |dice| Write::Value(object(dice))),
        subject(ChannelSpec::new(Append), list_write),
        subject(ChannelSpec::new(Dedupe::default()), list_write),
        subject(ChannelSpec::new(Dedupe::by("id")), item),
        subject(ChannelSpec::new(Upsert::by("id")), |dice| {
            dice.mostly(object)
        }),
        subject(ChannelSpec::new(last_three), |dice| {
            Write::Value(object(dice))
        }),
        subject(ChannelSpec::new(finals), item),
        subject(ChannelSpec::new(Messages), |dice| dice.mostly(message)),
        subject(ChannelSpec::new(Merge), |dice| dice.mostly(entry)),
        subject(ChannelSpec::new(Promoted), |dice| {
            Write::Value(promotion(dice))
        }),
        subject(ChannelSpec::new(Add), number),
        subject(ChannelSpec::new(Extreme::Max), number),
        subject(ChannelSpec::new(Extreme::Min), number),
        subject(ChannelSpec::new(Newest), number_or_null),
        subject(ChannelSpec::new(Same), one_or_null),
    ]
}

/// A graph that writes `program` to `x`, each write by a task of its own, as many a step as `batches` says.
fn writer(spec: ChannelSpec, program: Vec<Write>, batches: Vec<usize>) -> Graph {
    let mut graph = Graph::builder("writer");
    graph.channel("x", Definition::from(spec));
    let plan = move |cx: NodeCx| {
        let round = usize::try_from(cx.step() - 1).unwrap();
        let begin: usize = batches[..round].iter().sum();
        let tasks = (begin..begin + batches[round]).map(|place| Target::dispatch("write", place));
        let again = (round + 1 < batches.len()).then(|| Target::from("plan"));
        let goto = tasks.chain(again).collect();
        async move {
            Ok::<_, NodeError>(Command {
                goto,
                ..Command::default()
            })
        }
    };
    graph.node("plan", plan);
    graph.node("write", move |cx: NodeCx| {
        let place = cx.dispatched().and_then(Value::as_i64).unwrap();
        let write = program[usize::try_from(place).unwrap()].clone();
        async move { Ok::<_, NodeError>(Update::new().with("x", write)) }
    });
    graph.edge(START, "plan");
    graph.build().unwrap()
}

/// How a program is folded.
struct Way {
    batches: Vec<usize>,
    /// Whether every step is an invocation of its own, which loads what the last one stored.
    reloads: bool,
}

impl Way {
    fn in_batches(batches: Vec<usize>) -> Self {
        Self {
            batches,
            reloads: false,
        }
    }

    fn at_once(program: &[Write]) -> Self {
        Self::in_batches(vec![program.len()])
    }
}

/// Runs a program. Gives the value in the end, after checking that every stored state loads as it was.
fn fold(spec: &ChannelSpec, program: &[Write], way: Way) -> Option<Value> {
    let scene = Scene::new(writer(spec.clone(), program.to_vec(), way.batches));
    let live: Arc<Mutex<Vec<(i64, Value)>>> = Arc::default();
    let heard = live.clone();
    let listen = Arc::new(move |event: &Event| {
        if let EventKind::Values { values } = &event.kind {
            let state = (event.step, Value::from(values.clone()));
            heard.lock().unwrap().push(state);
        }
    });
    let options = RunOptions {
        listener: Some(listen),
        max_steps: way.reloads.then_some(1),
        ..RunOptions::default()
    };
    let key = thread();
    let run = |input| block_on(scene.runner.invoke(&key, input, options.clone())).unwrap();
    let mut outcome = run(nothing());
    while way.reloads && outcome.exit.name() == "step_limit" {
        outcome = run(Input::Continue);
    }
    assert_eq!(outcome.exit.name(), "done", "{:?}", outcome.exit);
    let stored = scene.history();
    // What goes on tells the state first, under the number of the step to come.
    let told = live.lock().unwrap();
    for (step, values) in told.iter().filter(|_| !way.reloads) {
        let loaded = stored
            .iter()
            .find(|snapshot| snapshot.step == *step)
            .unwrap();
        assert_eq!(
            Value::from(loaded.values.clone()),
            *values,
            "at step {step}"
        );
    }
    assert_eq!(stored[0].values, outcome.values);
    outcome.values.get("x").cloned()
}

/// A law: what must be equal for a program, given random numbers to arrange it by.
fn check(subject: &Subject, law: impl Fn(&ChannelSpec, &[Write], &mut Dice)) {
    for seed in 0..PROGRAMS {
        let mut dice = Dice {
            world: SimWorld::new(seed),
            present: Vec::new(),
        };
        let length = 1 + dice.below(12);
        let program: Vec<Write> = (0..length).map(|_| (subject.write)(&mut dice)).collect();
        law(&subject.spec, &program, &mut dice);
    }
}

/// How many writes each step of a random split has. A step takes several writes if the reducer does; with an overwrite
/// as its last one every reducer does, for that hides the others.
fn split(spec: &ChannelSpec, program: &[Write], dice: &mut Dice) -> Vec<usize> {
    let overwrites = |write: &Write| matches!(write, Write::Overwrite(_));
    let mut batches = Vec::new();
    let mut left = program;
    while !left.is_empty() {
        let mut batch = 1 + dice.below(left.len() as u64) as usize;
        if let Some(first) = left[..batch].iter().position(overwrites) {
            batch = first + 1;
        } else if spec.reducer.single_write() {
            batch = 1;
        }
        batches.push(batch);
        left = &left[batch..];
    }
    batches
}

#[test]
fn folding_in_batches_equals_folding_at_once() {
    let (mut programs, mut writes, mut steps, mut overwrites) = (0, 0, 0, 0);
    for subject in subjects() {
        let counts = std::cell::RefCell::new((0, 0, 0, 0));
        check(&subject, |spec, program, dice| {
            // Some writes overwrite instead, with a value that the reducer could have made. What is there afterwards
            // is no longer what removals were made for, so those become overwrites too.
            let mut program = program.to_vec();
            let from = dice.below(program.len() as u64 * 2) as usize;
            for (at, write) in program.iter_mut().enumerate().skip(from) {
                let removes = matches!(write, Write::Ops(_));
                if at == from || removes || dice.below(3) == 0 {
                    let alone = Write::Value((0..).find_map(|_| plain(&subject, dice)).unwrap());
                    let value = fold(
                        spec,
                        std::slice::from_ref(&alone),
                        Way::at_once(std::slice::from_ref(&alone)),
                    );
                    *write = Write::Overwrite(value.unwrap_or_default());
                }
            }
            let singles = vec![1; program.len()];
            let one_by_one = fold(spec, &program, Way::in_batches(singles));
            let batches = split(spec, &program, dice);
            let mut count = counts.borrow_mut();
            count.0 += 1;
            count.1 += program.len();
            count.2 += batches.len();
            count.3 += program
                .iter()
                .filter(|write| matches!(write, Write::Overwrite(_)))
                .count();
            let in_batches = fold(spec, &program, Way::in_batches(batches.clone()));
            assert_eq!(in_batches, one_by_one, "{spec:?} {program:?} {batches:?}");
            let way = Way {
                batches: batches.clone(),
                reloads: true,
            };
            assert_eq!(
                fold(spec, &program, way),
                one_by_one,
                "{spec:?} {program:?} {batches:?}, reloaded"
            );
            let hides = program
                .iter()
                .any(|write| matches!(write, Write::Overwrite(_)));
            if !hides && !spec.reducer.single_write() {
                let at_once = fold(spec, &program, Way::at_once(&program));
                assert_eq!(at_once, one_by_one, "{spec:?} {program:?}");
            }
        });
        let count = counts.into_inner();
        programs += count.0;
        writes += count.1;
        steps += count.2;
        overwrites += count.3;
    }
    println!(
        "{programs} programs of {writes} writes, {overwrites} of them overwrites, in {steps} steps"
    );
    assert!(overwrites > 2_000 && steps < writes * 3 / 4);
}

/// A write of the subject that is a plain value.
fn plain(subject: &Subject, dice: &mut Dice) -> Option<Value> {
    match (subject.write)(dice) {
        Write::Value(value) => Some(value),
        _ => None,
    }
}

#[test]
fn sums_and_extremes_do_not_depend_on_order() {
    let free = |subject: &Subject| ["add", "max", "min"].contains(&subject.spec.reducer.name());
    for subject in subjects().iter().filter(|subject| free(subject)) {
        check(subject, |spec, program, dice| {
            let mut shuffled = program.to_vec();
            for place in (1..shuffled.len()).rev() {
                shuffled.swap(place, dice.below(place as u64 + 1) as usize);
            }
            let ordered = fold(spec, program, Way::at_once(program));
            assert_eq!(ordered, fold(spec, &shuffled, Way::at_once(program)));
        });
    }
}

#[test]
fn an_overwrite_hides_every_other_write_of_its_step() {
    for subject in subjects() {
        check(&subject, |spec, program, dice| {
            let alone = fold(spec, &program[..1], Way::in_batches(vec![1])).unwrap_or_default();
            let mut program = program.to_vec();
            let place = dice.below(program.len() as u64 + 1) as usize;
            program.insert(place, Write::Overwrite(alone.clone()));
            let folded = fold(spec, &program, Way::at_once(&program)).unwrap_or_default();
            assert_eq!(folded, alone, "{spec:?} {program:?}");
        });
    }
}
