//! Random graphs whose nodes decide by hashes of what they see, so that a model can foretell them.

use super::reduce::{Chan, Kept, Kind, O, State, W, canon};
use serde_json::{Value as J, json};

/// splitmix64
#[derive(Clone)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn of(parts: &[&str]) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in parts.iter().flat_map(|part| part.bytes().chain([0xff])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(hash)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn of_all<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

#[derive(Clone, Debug)]
pub(super) struct NodeSpec {
    pub(super) name: String,
    pub(super) defer: bool,
    pub(super) edges: Vec<String>,
    /// Edges that fire unless a command named a target.
    pub(super) defaults: Vec<String>,
    /// Whether a router chooses more targets.
    pub(super) routes: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) seed: u64,
    pub(super) channels: Vec<Chan>,
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) entry: Vec<String>,
    pub(super) joins: Vec<(Vec<String>, String)>,
}

/// A place to go.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Goal {
    Node(String),
    Dispatch(String, J),
    End,
}

/// What a node does next.
#[derive(Clone, Debug)]
pub(super) enum Will {
    Fail,
    Ask(J),
    Do {
        writes: Vec<(String, W)>,
        goto: Vec<Goal>,
    },
}

/// Not in the order of their numbers, to tell code points from numbers and from places.
const NAMES: [&str; 6] = ["n2", "n10", "B", "a", "ä", "z"];

impl Spec {
    pub(super) fn random(seed: u64) -> Self {
        let mut dice = Dice::of(&["graph", &seed.to_string()]);
        let channels = channels(&mut dice);
        let many = 3 + dice.below(4);
        let mut nodes: Vec<NodeSpec> = NAMES[..many]
            .iter()
            .map(|name| NodeSpec {
                name: (*name).to_owned(),
                defer: dice.one_in(7),
                edges: Vec::new(),
                defaults: Vec::new(),
                routes: dice.one_in(4),
            })
            .collect();
        for (from, node) in nodes.iter_mut().enumerate() {
            for (to, name) in NAMES[..many].iter().enumerate() {
                let often = if from < to { 3 } else { 12 };
                if dice.one_in(often) {
                    let name = (*name).to_owned();
                    match dice.one_in(4) {
                        true => node.defaults.push(name),
                        false => node.edges.push(name),
                    }
                }
            }
        }
        let mut entry = vec![NAMES[dice.below(many)].to_owned()];
        for name in &NAMES[..many] {
            if dice.one_in(3) && !entry.contains(&(*name).to_owned()) {
                entry.push((*name).to_owned());
            }
        }
        let mut joins: Vec<(Vec<String>, String)> = Vec::new();
        for _ in 0..dice.below(3) {
            let sources: Vec<String> = NAMES[..many]
                .iter()
                .filter(|_| dice.one_in(2))
                .map(|name| (*name).to_owned())
                .collect();
            let target = &nodes[dice.below(many)];
            let known = joins
                .iter()
                .any(|(known, to)| *known == sources && *to == target.name);
            if sources.len() > 1 && !known {
                joins.push((sources, target.name.clone()));
            }
        }
        Self {
            seed,
            channels,
            nodes,
            entry,
            joins,
        }
    }

    pub(super) fn node(&self, name: &str) -> &NodeSpec {
        self.nodes.iter().find(|node| node.name == name).unwrap()
    }

    /// What a node sees, as a text.
    fn seen(&self, state: &State) -> String {
        let mut text = String::new();
        for (name, value) in state {
            text.push_str(name);
            canon(value, &mut text);
        }
        text
    }

    /// What a task does, given the answers it has by now. It may do otherwise in another round, but never asks otherwise.
    pub(super) fn will(
        &self,
        node: &str,
        step: i64,
        input: Option<&J>,
        state: &State,
        round: u64,
        answers: &[J],
    ) -> Will {
        let mut given = String::new();
        canon(&input.cloned().unwrap_or_default(), &mut given);
        let (seed, number) = (self.seed.to_string(), step.to_string());
        let (seen, round) = (self.seen(state), round.to_string());
        let place = [seed.as_str(), node, &number, &given, &seen];
        if Dice::of(&[&place[..], &["fails", &round]].concat()).one_in(14) {
            return Will::Fail;
        }
        let asks =
            *Dice::of(&[&place[..], &["asks"]].concat()).of_all(&[0, 0, 0, 0, 0, 0, 1, 1, 2]);
        if answers.len() < asks {
            let ordinal = answers.len();
            return Will::Ask(json!(format!("{node} {number} {given} {ordinal}")));
        }
        let answers = format!("{answers:?}");
        let mut dice = Dice::of(&[&place[..], &["does", &round, &answers]].concat());
        let writes = self.writes(&mut dice, state, 3);
        let mut goto = Vec::new();
        if dice.one_in(4) {
            for _ in 0..=dice.below(3) {
                goto.push(self.goal(&mut dice));
            }
        }
        Will::Do { writes, goto }
    }

    fn goal(&self, dice: &mut Dice) -> Goal {
        let name = dice.of_all(&self.nodes).name.clone();
        match dice.below(7) {
            0 => Goal::End,
            1..=3 => Goal::Dispatch(name, json!({"n": dice.below(3)})),
            _ => Goal::Node(name),
        }
    }

    /// Where the router of a node sends its task on.
    pub(super) fn route(&self, node: &str, seen: &State) -> Vec<Goal> {
        let mut dice = Dice::of(&["route", node, &self.seed.to_string(), &self.seen(seen)]);
        (0..dice.below(3)).map(|_| self.goal(&mut dice)).collect()
    }

    /// How often a task lets others go first.
    pub(super) fn pauses(&self, node: &str, step: i64, round: u64) -> usize {
        let parts = ["pauses", node, &step.to_string(), &round.to_string()];
        *Dice::of(&parts).of_all(&[0, 0, 1, 4])
    }

    pub(super) fn writes(&self, dice: &mut Dice, state: &State, most: usize) -> Vec<(String, W)> {
        (0..dice.below(most + 1))
            .map(|_| {
                let chan = dice.of_all(&self.channels);
                let write = write(dice, chan, state.get(&chan.name));
                (chan.name.clone(), write)
            })
            .collect()
    }
}

fn channels(dice: &mut Dice) -> Vec<Chan> {
    let upsert = Kind::Upsert {
        move_to_end: dice.one_in(2),
        max: if dice.one_in(2) { Some(3) } else { None },
        finals: dice.one_in(2),
    };
    let kinds = [
        Kind::Last,
        Kind::Newest,
        Kind::Same,
        Kind::Append,
        Kind::Dedupe,
        Kind::DedupeById,
        upsert,
        Kind::Merge,
        Kind::Add,
        Kind::Max,
        Kind::Min,
        Kind::Messages,
        Kind::Promoted,
    ];
    let many = 4 + dice.below(5);
    (0..many)
        .map(|at| {
            let kind = dice.of_all(&kinds).clone();
            let default = match kind {
                Kind::Last if dice.one_in(2) => Some(json!("at start")),
                Kind::Append if dice.one_in(2) => Some(json!([7])),
                Kind::Merge if dice.one_in(2) => Some(json!({"k0": 0})),
                Kind::Add | Kind::Max if dice.one_in(3) => Some(json!(5)),
                _ => None,
            };
            Chan {
                name: format!("c{at}"),
                kind,
                kept: *dice.of_all(&[
                    Kept::Thread,
                    Kept::Thread,
                    Kept::Thread,
                    Kept::Thread,
                    Kept::Run,
                    Kept::Step,
                ]),
                default,
            }
        })
        .collect()
}

/// A write that mostly fits.
fn write(dice: &mut Dice, chan: &Chan, value: Option<&J>) -> W {
    if dice.one_in(10) {
        return W::Overwrite(plain(dice, chan));
    }
    if !dice.one_in(4) {
        return W::Value(plain(dice, chan));
    }
    let names: Vec<String> = match value {
        Some(J::Array(items)) => items
            .iter()
            .filter_map(|item| item["id"].as_str().map(str::to_owned))
            .collect(),
        Some(J::Object(entries)) => {
            let mut keys: Vec<String> = entries.keys().cloned().collect();
            keys.sort();
            keys
        }
        _ => Vec::new(),
    };
    let removes = matches!(
        chan.kind,
        Kind::Upsert { .. } | Kind::Merge | Kind::Messages
    );
    let clears = removes || matches!(chan.kind, Kind::Append | Kind::Dedupe | Kind::DedupeById);
    let mut ops = Vec::new();
    if clears && dice.one_in(3) {
        ops.extend([O::Add(plain_one(dice, chan)), O::Clear]);
    } else if removes && !names.is_empty() {
        ops.push(O::Remove(dice.of_all(&names).clone()));
    } else if dice.one_in(8) {
        ops.push(O::Remove("nothing".to_owned()));
    }
    for _ in 0..dice.below(3) {
        ops.push(O::Add(plain_one(dice, chan)));
    }
    W::Ops(ops)
}

/// As [`plain`], but a single message where that is not the same.
fn plain_one(dice: &mut Dice, chan: &Chan) -> J {
    match (&chan.kind, plain(dice, chan)) {
        (Kind::Messages, J::Array(_)) => message(dice),
        (_, value) => value,
    }
}

fn message(dice: &mut Dice) -> J {
    let id = *dice.of_all(&["m1", "m2", "m3", "m4"]);
    json!({"type": "human", "content": format!("{}", dice.below(9)), "id": id})
}

fn object(dice: &mut Dice) -> J {
    json!({"v": dice.below(4), "id": dice.of_all(&["a", "b", "c", "d", "e"])})
}

fn several(dice: &mut Dice, item: fn(&mut Dice) -> J) -> J {
    match dice.below(3) {
        0 => item(dice),
        _ => (0..dice.below(4)).map(|_| item(dice)).collect(),
    }
}

fn plain(dice: &mut Dice, chan: &Chan) -> J {
    match chan.kind {
        Kind::Last => match dice.below(4) {
            0 => J::Null,
            1 => json!([dice.below(9), {"b": 1, "a": 2}]),
            2 => json!("ä\n\u{1F98C}"),
            _ => json!(dice.below(1000)),
        },
        Kind::Newest => match dice.below(3) {
            0 => J::Null,
            _ => json!(dice.below(1000)),
        },
        Kind::Same => match dice.below(12) {
            0 => json!("other"),
            1..4 => json!("same"),
            _ => J::Null,
        },
        Kind::Append | Kind::Dedupe => several(dice, |dice| json!(dice.below(6))),
        Kind::DedupeById | Kind::Upsert { .. } => several(dice, object),
        Kind::Messages => several(dice, message),
        Kind::Merge => (0..dice.below(3))
            .map(|_| (format!("k{}", dice.below(4)), json!(dice.below(9))))
            .collect(),
        Kind::Add => json!(dice.below(9) as i64 - 4),
        Kind::Max | Kind::Min if dice.one_in(40) => json!("text"),
        Kind::Max | Kind::Min => json!(dice.below(100)),
        Kind::Promoted => json!({
            "catalog_hash": dice.of_all(&["h1", "h2"]),
            "names": [dice.of_all(&["x", "y", "z"]), dice.of_all(&["x", "v", "w"])],
        }),
    }
}
