//! Open questions, as people read and answer them.

use super::line::{clean, quoted};
use crate::cli::output::{Stream, Tone};
use tine::engine::{Interrupt, Value};

/// Whether a question is one of the model's, to be answered in words.
pub(crate) fn is_clarification(interrupt: &Interrupt) -> bool {
    interrupt.payload.get("source").and_then(Value::as_str) == Some("ask_clarification")
}

/// What is asked, in words.
pub(crate) fn text(interrupt: &Interrupt) -> String {
    let payload = &interrupt.payload;
    let words = ["text", "question", "message"]
        .into_iter()
        .find_map(|key| payload.get(key)?.as_str());
    match words.or(payload.as_str()) {
        Some(words) => clean(words),
        None => clean(&payload.to_canonical()),
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
        for line in text(interrupt).lines() {
            let line = format!("  {line}");
            out.line(line.trim_end());
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
        [_] => vec![format!("tine resume {thread} \"ANSWER\"")],
        _ => questions
            .iter()
            .map(|question| format!("tine resume {thread} --answer {}=\"ANSWER\"", question.id))
            .collect(),
    }
}
