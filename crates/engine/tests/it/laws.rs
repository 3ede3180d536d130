//! Laws of reducers, over seeded random programs.

use crate::scene::{Scene, block_on, nothing, thread};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tine_engine::channel::{
    Add, Append, Dedupe, Definition, Extreme, Merge, Messages, Newest, Promoted, Same, Upsert,
};
use tine_engine::command::Target;
use tine_engine::value::List;
use tine_engine::{
    ChannelSpec, Command, Event, EventKind, Graph, NodeCx, NodeError, Op, RunOptions, START,
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

/// All reducers that take several writes a step.
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
    let subject = |spec, write| Subject { spec, write };
    let mut last_three = Upsert::by("id");
    last_three.move_to_end = true;
    last_three.max = Some(3);
    vec![
        subject(ChannelSpec::new(Append), list_write),
        subject(ChannelSpec::new(Dedupe::default()), list_write),
        subject(ChannelSpec::new(Upsert::by("id")), |dice| {
            dice.mostly(object)
        }),
        subject(ChannelSpec::new(last_three), |dice| {
            Write::Value(object(dice))
        }),
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

/// Runs a program in batches. Gives the value in the end, after checking that every stored state loads as it was.
fn fold(spec: ChannelSpec, program: &[Write], batches: Vec<usize>) -> Option<Value> {
    let scene = Scene::new(writer(spec, program.to_vec(), batches));
    let live: Arc<Mutex<Vec<(i64, Value)>>> = Arc::default();
    let heard = live.clone();
    let listen = move |event: &Event| {
        if let EventKind::Values { values } = &event.kind {
            let state = (event.step, Value::from(values.clone()));
            heard.lock().unwrap().push(state);
        }
    };
    let options = RunOptions {
        listener: Some(Arc::new(listen)),
        ..RunOptions::default()
    };
    let key = thread();
    let run = scene.runner.invoke(&key, nothing(), options);
    let outcome = block_on(run).unwrap();
    assert_eq!(outcome.exit.name(), "done", "{:?}", outcome.exit);
    let stored = scene.history();
    for (step, values) in live.lock().unwrap().iter() {
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
fn check(subject: &Subject, law: fn(&ChannelSpec, &[Write], &mut Dice)) {
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

#[test]
fn folding_in_batches_equals_folding_at_once() {
    for subject in subjects() {
        check(&subject, |spec, program, dice| {
            let mut batches = Vec::new();
            let mut left = program.len();
            while left > 0 {
                let batch = 1 + dice.below(left as u64) as usize;
                batches.push(batch);
                left -= batch;
            }
            let in_batches = fold(spec.clone(), program, batches);
            let at_once = fold(spec.clone(), program, vec![program.len()]);
            assert_eq!(in_batches, at_once, "{spec:?} {program:?}");
        });
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
            let all = vec![program.len()];
            let ordered = fold(spec.clone(), program, all.clone());
            assert_eq!(ordered, fold(spec.clone(), &shuffled, all));
        });
    }
}

#[test]
fn an_overwrite_hides_every_other_write_of_its_step() {
    for subject in subjects() {
        check(&subject, |spec, program, dice| {
            let alone = fold(spec.clone(), &program[..1], vec![1]).unwrap_or_default();
            let mut program = program.to_vec();
            let place = dice.below(program.len() as u64 + 1) as usize;
            program.insert(place, Write::Overwrite(alone.clone()));
            let all = vec![program.len()];
            let folded = fold(spec.clone(), &program, all).unwrap_or_default();
            assert_eq!(folded, alone, "{spec:?} {program:?}");
        });
    }
}
