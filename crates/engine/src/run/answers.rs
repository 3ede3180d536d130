//! Answers that come for open questions.

use super::journal::check_outcome;
use crate::checkpoint::{Open, Record, RecordKind, RecordOp, asked_questions, open_questions};
use crate::error::{Location, RunError, panic_text};
use crate::graph::Graph;
use crate::interrupt::{Answers, Interrupt, Resume, Slot};
use crate::value::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What answers come to.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// The answers, to be recorded.
    pub(super) ops: Vec<RecordOp>,
    /// How many questions the client answered.
    pub(super) answered: usize,
    /// Ids that belong to no open question; only a lenient resume has them.
    pub(super) unknown_ids: Vec<String>,
}

/// Matches answers to open questions. They count from `epoch` on, which is one more than now if a command changes the
/// state together with its answers. The nodes of `checks` say whether they take them; in a child graph that was said
/// already where the answers came in, and there is none.
///
/// # Errors
/// An id map without answers, a plain answer to several questions, an id of no open question, or an answer that the
/// question does not take.
pub(super) fn match_answers(
    checks: Option<&Graph>,
    records: &[Record],
    resume: Resume,
    epoch: u32,
) -> Result<Matched, RunError> {
    let open = open_questions(records);
    let (given, unknown_ids) = given(checks, &open, resume)?;
    let answered = given
        .iter()
        .map(|(open, value)| answer(open, epoch, value.clone()));
    Ok(Matched {
        ops: answered.collect(),
        answered: given.len(),
        unknown_ids,
    })
}

/// Matches answers to what was asked at a checkpoint that the thread has moved past, answered there or not. The answers
/// are for a branch that begins there.
///
/// With `keeps`, the other answers that were given there hold on the branch too, as far as they can not have come of an
/// answer that is now another one: their questions were asked before that was given.
///
/// # Errors
/// As [`match_answers`].
pub(super) fn answer_anew(
    checks: Option<&Graph>,
    records: &[Record],
    resume: Resume,
    keeps: bool,
) -> Result<Matched, RunError> {
    let asked = asked_questions(records);
    let (given, unknown_ids) = given(checks, &asked, resume)?;
    let is_given = |open: &Open| {
        let mut ids = given.iter().map(|(given, _)| given.interrupt.id);
        ids.any(|id| id == open.interrupt.id)
    };
    let answers: Vec<(usize, &Open, &Value)> = asked
        .iter()
        .filter_map(|open| {
            let (place, value) = answer_to(records, open)?;
            Some((place, open, value))
        })
        .collect();
    let changed_at = answers
        .iter()
        .filter(|(_, open, _)| is_given(open))
        .map(|(place, ..)| *place)
        .min();
    let holds = |open: &Open| {
        let asked_at = place_of(records, open);
        changed_at.is_none_or(|changed| asked_at.is_some_and(|asked| asked < changed))
    };
    let kept = answers
        .iter()
        .filter(|(_, open, _)| keeps && !is_given(open) && holds(open))
        .map(|(_, open, value)| answer(open, 0, (*value).clone()));
    if let Some((of_child, _)) = given.iter().find(|(open, _)| is_of_child(open)) {
        let Interrupt { id, node, .. } = &of_child.interrupt;
        return Err(RunError::InvalidOption {
            message: format!(
                "question `{id}` was asked by `{node}` in a child graph, which begins anew on a branch; go on from the \
                 checkpoint without an answer, and answer what is asked then"
            ),
        });
    }
    let given_ops = given
        .iter()
        .map(|(open, value)| answer(open, 0, value.clone()));
    // What is asked about a call is answered only where the call is known.
    let calls = given
        .iter()
        .filter_map(|(open, _)| call_asked_about(records, open));
    let matched = Matched {
        ops: calls.chain(given_ops).chain(kept).collect(),
        answered: given.len(),
        unknown_ids,
    };
    Ok(matched)
}

/// Whether a child graph asks by way of the task. Its namespace stands in the place of the question.
fn is_of_child(open: &Open) -> bool {
    open.slot.call.starts_with('/')
}

/// The record of the call that a question asks about, if it asks about one.
fn call_asked_about(records: &[Record], open: &Open) -> Option<RecordOp> {
    let key = open.slot.call.strip_suffix('?')?;
    let is_it = |record: &&Record| match &record.kind {
        RecordKind::Call(call) => record.task == open.task && *call.key == *key,
        _ => false,
    };
    records.iter().find(is_it).cloned().map(RecordOp::Put)
}

/// Where a question stands among the records.
fn place_of(records: &[Record], open: &Open) -> Option<usize> {
    records.iter().position(|record| {
        record.task == open.task
            && matches!(&record.kind, RecordKind::Asked { slot, .. } if *slot == open.slot)
    })
}

/// The answer to a question, and where it stands among the records.
fn answer_to<'a>(records: &'a [Record], open: &Open) -> Option<(usize, &'a Value)> {
    let mut answers = records.iter().enumerate();
    answers.find_map(|(place, record)| match &record.kind {
        RecordKind::Answered { slot, value } if record.task == open.task && *slot == open.slot => {
            Some((place, value))
        }
        _ => None,
    })
}

fn answer(open: &Open, epoch: u32, value: Value) -> RecordOp {
    let slot = Slot {
        epoch,
        ..open.slot.clone()
    };
    RecordOp::Put(Record {
        task: open.task.clone(),
        kind: RecordKind::Answered { slot, value },
    })
}

/// Which questions get which answers.
type Given<'a> = Vec<(&'a Open, Value)>;

/// The answers by their questions; and the ids that belong to none, of a lenient resume.
///
/// All are checked before any is recorded.
fn given<'a>(
    checks: Option<&Graph>,
    open: &'a [Open],
    resume: Resume,
) -> Result<(Given<'a>, Vec<String>), RunError> {
    let ids = || {
        let ids = open.iter().map(|open| open.interrupt.id.to_string().into());
        ids.collect()
    };
    let mut given = Vec::new();
    let mut unknown_ids = Vec::new();
    match resume.answers {
        Answers::One(value) => match open {
            [] => {}
            [only] => given.push((only, value)),
            _ => return Err(RunError::MultipleInterrupts { open: ids() }),
        },
        Answers::ById(answers) if answers.is_empty() => return Err(RunError::EmptyResume),
        Answers::ById(answers) => {
            let by_id: BTreeMap<String, &Open> = open
                .iter()
                .map(|open| (open.interrupt.id.to_string(), open))
                .collect();
            for (id, value) in answers {
                match by_id.get(&id) {
                    Some(open) => given.push((*open, value)),
                    None if resume.lenient => unknown_ids.push(id),
                    None => {
                        let (id, open) = (id.into(), ids());
                        return Err(RunError::UnknownInterrupt { id, open });
                    }
                }
            }
        }
    }
    if let Some(graph) = checks {
        for (open, answer) in &given {
            check_answer(graph, &open.interrupt, answer)?;
        }
    }
    Ok((given, unknown_ids))
}

/// Refuses an answer that the node that asks does not take.
fn check_answer(graph: &Graph, question: &Interrupt, answer: &Value) -> Result<(), RunError> {
    let mut graph = graph;
    let mut names = question.node.split('/').peekable();
    let refused = |graph: &Graph, message| RunError::InvalidAnswer {
        location: Location {
            graph: graph.name().clone(),
            node: question.node.clone(),
        },
        id: question.id.to_string().into(),
        message,
    };
    if let Some(fits) = check_outcome(question, answer) {
        return fits.map_err(|message| refused(graph, message));
    }
    while let Some(name) = names.next() {
        let Some(ix) = graph.find(name) else { break };
        let def = graph.node(ix);
        if names.peek().is_some() {
            // What a node runs otherwise than as its own graph can not be looked into.
            let Some(subgraph) = def.node.subgraph() else {
                break;
            };
            graph = &subgraph.graph;
            continue;
        }
        let check = || {
            if let Some(check) = &def.answers {
                check.check(answer)?;
            }
            def.node.check_answer(question, answer)
        };
        // That a check panics must neither take the caller down nor let the answer through.
        let fits = catch_unwind(AssertUnwindSafe(check));
        let fits = fits.unwrap_or_else(|payload| Err(panic_text(&*payload)));
        return fits.map_err(|message| refused(graph, message));
    }
    Ok(())
}
