//! Open questions, as people read and answer them.

use super::line::{clean, one_line, quoted};
use super::narration::arguments;
use crate::cli::output::{Stream, Tone};
use tine::engine::{Interrupt, Value};

/// Whether a question is one of the model's, to be answered in words.
pub(crate) fn is_clarification(interrupt: &Interrupt) -> bool {
    interrupt.payload.get("source").and_then(Value::as_str) == Some("ask_clarification")
}

/// What may be answered about a call of unknown outcome, and what comes of it.
const OUTCOMES: [(&str, &str); 3] = [
    ("retry", "makes the call, again if it took place"),
    ("skip", "does not make it, and goes on without its result"),
    ("fail", "does not make it, and lets the node fail"),
];

/// Whether it is asked what became of a call.
fn is_unknown_outcome(interrupt: &Interrupt) -> bool {
    let kind = interrupt.payload.get("kind").and_then(Value::as_str);
    kind == Some("unknown_outcome")
}

/// What became of a call: which one it was, and what may be answered.
fn outcome_text(payload: &Value, width: usize) -> String {
    let words = |key| payload.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut text = words("text").to_owned();
    if let Some(args) = payload.get("args") {
        let call = format!("{}({})", words("name"), arguments(Some(args)));
        // Long arguments stand last, and are cut: `threads show --json` has them whole.
        let call = one_line(&call, width.saturating_sub(4).max(8));
        text.push_str(&format!("\n\n  {call}"));
    }
    text.push('\n');
    for (answer, means) in OUTCOMES {
        text.push_str(&format!("\n{answer:5}  {means}"));
    }
    text
}

/// What is asked, in words: the question, and below it what else the payload says.
fn text(interrupt: &Interrupt, width: usize) -> String {
    let (payload, _) = parts(interrupt);
    if is_unknown_outcome(interrupt) {
        return clean(&outcome_text(payload, width));
    }
    let Some(entries) = payload.as_map() else {
        return clean(&plain(payload));
    };
    let words = |key: &&str| payload.get(key).and_then(Value::as_str);
    let Some(asked) = ["text", "question", "message"]
        .into_iter()
        .find(|key| words(key).is_some())
    else {
        return clean(&payload.to_canonical());
    };
    let mut text = words(&asked).unwrap_or_default().to_owned();
    // The words of a clarification hold all of it already.
    if !is_clarification(interrupt) {
        for (key, value) in entries {
            let told = [asked, PROBLEM, "call_id"].contains(&&**key) || value.is_null();
            if !told {
                text.push_str(&format!("\n{key}: {}", plain(value)));
            }
        }
    }
    clean(&text)
}

/// Where a question that is asked again keeps why the last answer would not do.
const PROBLEM: &str = "problem";

/// What was asked at first, and why the last answer would not do, if this is asked again.
fn parts(interrupt: &Interrupt) -> (&Value, Option<&str>) {
    let payload = &interrupt.payload;
    let problem = payload.get(PROBLEM).and_then(Value::as_str);
    let wrapped = payload.as_map().filter(|entries| entries.len() == 2);
    match (problem, wrapped.and_then(|entries| entries.get("payload"))) {
        (Some(problem), Some(first)) => (first, Some(problem)),
        (problem, _) => (payload, problem),
    }
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_canonical(),
    }
}

/// Prints the questions and the commands that answer them.
pub(crate) fn print(out: &mut Stream, thread: &str, questions: &[Interrupt]) {
    for interrupt in questions {
        let node = out.paint(Tone::Faint, &format!("{} asks", interrupt.node));
        let id = match questions {
            [_] => String::new(),
            _ => format!("  {}", interrupt.id),
        };
        out.line(&format!("\n{node}{id}"));
        for line in text(interrupt, out.device().width).lines() {
            let line = format!("  {line}");
            out.line(line.trim_end());
        }
        if let (_, Some(problem)) = parts(interrupt) {
            let label = out.paint(Tone::Bad, "the last answer will not do:");
            out.line(&format!("  {label} {}", clean(problem)));
        }
    }
    out.line("\nanswer with");
    for command in commands(thread, questions) {
        let command = out.paint(Tone::Hint, &command);
        out.line(&format!("  {command}"));
    }
}

/// The commands that answer questions.
fn commands(thread: &str, questions: &[Interrupt]) -> Vec<String> {
    let thread = quoted(thread);
    match questions {
        // Words were refused before, so it may take something else.
        [question] if parts(question).1.is_some() => vec![
            format!("tine resume {thread} \"ANSWER\""),
            format!("tine resume {thread} --answer-json JSON"),
        ],
        [question] if is_unknown_outcome(question) => OUTCOMES
            .iter()
            .map(|(answer, _)| format!("tine resume {thread} {answer}"))
            .collect(),
        [_] => vec![format!("tine resume {thread} \"ANSWER\"")],
        _ => questions
            .iter()
            .map(|question| {
                let answer = match is_unknown_outcome(question) {
                    true => OUTCOMES[0].0,
                    false => "\"ANSWER\"",
                };
                format!("tine resume {thread} --answer {}={answer}", question.id)
            })
            .collect(),
    }
}
