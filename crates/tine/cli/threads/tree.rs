//! The checkpoints of a thread: which there are, how they are called, which branch they are on.

use crate::cli::failure::Failure;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, quoted};
use std::collections::{BTreeMap, BTreeSet};
use tine::engine::ThreadKey;
use tine::engine::checkpoint::{Advance, PlannedTask, Scope, Source};
use tine::engine::world::Id;

/// The checkpoints of a thread's root graph in the order in which they were stored, without what they changed.
pub(crate) struct Tree {
    thread: String,
    all: Vec<Advance>,
    /// The place of each.
    places: BTreeMap<Id, usize>,
    /// The places of those from which the newest came, itself included.
    current: BTreeSet<usize>,
}

/// How many checkpoints are read at once.
const PIECE: usize = 500;

/// The fewest characters of an id that are shown: all of its time.
const SHORTEST: usize = 13;

impl Tree {
    pub(crate) async fn load(store: &Store, key: &ThreadKey) -> Result<Self, Failure> {
        let scope = Scope::root(key.clone());
        let mut all: Vec<Advance> = Vec::new();
        loop {
            let from = all.len() as u64;
            let piece = store.0.advances(&scope, from, Some(PIECE)).await?;
            let ended = piece.len() < PIECE;
            all.extend(piece.into_iter().map(|advance| Advance {
                effects: Vec::new(),
                ..advance
            }));
            if ended {
                break;
            }
        }
        Ok(Self::new(&key.thread, all))
    }

    fn new(thread: &str, all: Vec<Advance>) -> Self {
        let ids = all.iter().enumerate();
        let places: BTreeMap<Id, usize> = ids.map(|(place, one)| (one.id, place)).collect();
        let mut current = BTreeSet::new();
        let mut next = all.len().checked_sub(1);
        while let Some(place) = next {
            // A parent that is no older is none.
            if !current.insert(place) {
                break;
            }
            let parent = all[place].parent.and_then(|id| places.get(&id)).copied();
            next = parent.filter(|parent| *parent < place);
        }
        Self {
            thread: thread.to_owned(),
            all,
            places,
            current,
        }
    }

    /// All, the oldest first.
    pub(crate) fn all(&self) -> &[Advance] {
        &self.all
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Advance> {
        self.places.get(&id).map(|place| &self.all[*place])
    }

    /// The newest; every thread has one.
    pub(crate) fn newest(&self) -> Option<Id> {
        self.all.last().map(|one| one.id)
    }

    /// Whether the thread goes on with what came of this checkpoint.
    pub(crate) fn is_current(&self, id: Id) -> bool {
        let place = self.places.get(&id);
        place.is_some_and(|place| self.current.contains(place))
    }

    /// As much of an id as tells it from the others.
    pub(crate) fn short(&self, id: Id) -> String {
        let mut text = id.to_string();
        let shared = |other: Option<(&Id, &usize)>| {
            other.map_or(0, |(other, _)| {
                let other = other.to_string();
                let same = text.bytes().zip(other.bytes());
                same.take_while(|(a, b)| a == b).count()
            })
        };
        let before = shared(self.places.range(..id).next_back());
        let after = shared(self.places.range(id..).find(|(other, _)| **other != id));
        let mut length = before.max(after).saturating_add(1).max(SHORTEST);
        // One that ends with a dash looks cut off.
        if text.as_bytes().get(length - 1) == Some(&b'-') {
            length += 1;
        }
        text.truncate(length);
        text
    }

    /// The checkpoint that a user means: by its id, the beginning of it, or `step:N`.
    pub(crate) fn find(&self, said: &str) -> Result<Id, Failure> {
        let thread = clean(&self.thread);
        let lists = format!(
            "`tine threads history {}` lists the checkpoints",
            quoted(&self.thread)
        );
        let found: Vec<Id> = match said.strip_prefix("step:") {
            Some(number) => {
                let number: i64 = number.parse().map_err(|_| {
                    Failure::usage(format!("`{}` is no step", clean(said)))
                        .hint("write it as `step:3`")
                })?;
                let steps = self.all.iter().filter(|one| one.step == number);
                steps.map(|one| one.id).collect()
            }
            None => {
                let said = said.to_ascii_lowercase();
                let begins = |id: &Id| !said.is_empty() && id.to_string().starts_with(&said);
                self.places.keys().copied().filter(begins).collect()
            }
        };
        match found.as_slice() {
            [id] => Ok(*id),
            [] => Err(Failure::usage(format!(
                "thread `{thread}` has no checkpoint `{}`",
                clean(said)
            ))
            .hint(lists)),
            several => {
                const SHOWN: usize = 5;
                let mut names: Vec<String> = several.iter().map(|id| self.short(*id)).collect();
                if names.len() > SHOWN {
                    names.truncate(SHOWN);
                    names.push("…".to_owned());
                }
                let failure = Failure::usage(format!(
                    "`{}` stands for {} checkpoints of thread `{thread}`",
                    clean(said),
                    several.len()
                ));
                Err(failure
                    .hint(format!("name one of {}", names.join(", ")))
                    .hint(lists))
            }
        }
    }

    /// The nodes whose results a checkpoint holds; none for those that no step made.
    pub(crate) fn ran(&self, one: &Advance) -> Vec<String> {
        if !one.ran.is_empty() {
            return one.ran.iter().map(|node| node.to_string()).collect();
        }
        let parent = one.parent.and_then(|id| self.get(id));
        match (one.source, parent) {
            (Source::Loop, Some(parent)) => nodes(&parent.next),
            _ => Vec::new(),
        }
    }
}

/// The nodes of a plan, as people call them.
pub(crate) fn nodes(plan: &[PlannedTask]) -> Vec<String> {
    let names = plan.iter().map(|task| match task {
        PlannedTask::Start { .. } => "input".to_owned(),
        _ => task.node().to_owned(),
    });
    names.collect()
}

/// Names in a row; several of one name count: `square ×4`.
pub(crate) fn counted(names: &[String]) -> String {
    let groups = names.chunk_by(|a, b| a == b).map(|group| match group {
        [one] => clean(one),
        several => format!("{} ×{}", clean(&several[0]), several.len()),
    });
    groups.collect::<Vec<_>>().join(", ")
}

/// What made a checkpoint, in a word.
pub(crate) fn source_name(source: Source) -> &'static str {
    match source {
        Source::Input => "input",
        Source::Loop => "loop",
        Source::Update => "update",
        Source::Fork => "fork",
    }
}
