//! Open questions, as people read and answer them.

use super::line::{clean, one_line, quoted, resume_command, wrapped};
use super::narration::arguments;
use crate::cli::answer::{self, Choice, asked};
use crate::cli::output::{Stream, Tone};
use serde_json::json;
use tine::engine::value::Map;
use tine::engine::world::Id;
use tine::engine::{Interrupt, Value};
use tine::tools::{FieldKind, Form};

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

/// Brings the questions of each node into the order of the calls that ask them, as far as the values of the thread show
/// them. The engine orders them by the ids of the calls, which say nothing to people.
pub(crate) fn in_order(questions: &[Interrupt], values: &Map) -> Vec<Interrupt> {
    let messages = values.get("messages").and_then(Value::as_list);
    let calls: Vec<&str> = messages
        .iter()
        .flat_map(|messages| messages.iter())
        .filter_map(|message| message.get("tool_calls").and_then(Value::as_list))
        .flat_map(|calls| calls.iter())
        .filter_map(|call| call.get("id").and_then(Value::as_str))
        .collect();
    let call_of = |question: &Interrupt| {
        let asked = asked(question);
        let id = ["tool_call_id", "call"].map(|key| asked.get(key).and_then(Value::as_str));
        let id = id[0].or(id[1])?;
        calls.iter().rposition(|call| *call == id)
    };
    let node_of = |question: &Interrupt| {
        let mut nodes = questions.iter().map(|other| &other.node);
        nodes.position(|node| *node == question.node)
    };
    let mut ordered = questions.to_vec();
    ordered.sort_by_key(|question| (node_of(question), call_of(question)));
    ordered
}

/// What is asked, in words: the question, below it what else the payload says, and the options by number.
pub(crate) fn text(interrupt: &Interrupt, width: usize) -> String {
    let payload = asked(interrupt);
    if is_unknown_outcome(interrupt) {
        return clean(&outcome_text(payload, width));
    }
    let Some(entries) = payload.as_map() else {
        return clean(&plain(payload));
    };
    let words = |key: &&str| payload.get(key).and_then(Value::as_str);
    let Some(key) = ["text", "question", "message"]
        .into_iter()
        .find(|key| words(key).is_some())
    else {
        return clean(&payload.to_canonical());
    };
    let mut text = words(&key).unwrap_or_default().to_owned();
    // The words of a clarification hold all of it already, those of an approval all but its options.
    if !is_clarification(interrupt) {
        let options = answer::options(payload);
        for (name, value) in entries {
            let told = [key, PROBLEM, "call_id"].contains(&&**name)
                || value.is_null()
                || answer::is_fixed(payload)
                || (&**name == "options" && !options.is_empty());
            if !told {
                text.push_str(&format!("\n{name}: {}", plain(value)));
            }
        }
        if !options.is_empty() {
            text.push('\n');
        }
        for (at, option) in options.iter().enumerate() {
            text.push_str(&format!("\n  {}. {}", at + 1, option.label));
        }
    }
    clean(&text)
}

/// Where a question that is asked again keeps why the last answer would not do.
const PROBLEM: &str = "problem";

fn problem(interrupt: &Interrupt) -> Option<&str> {
    interrupt.payload.get(PROBLEM).and_then(Value::as_str)
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
        print_one(out, interrupt, questions.len() > 1);
    }
    print_commands(out, thread, questions);
}

/// Prints one question; with its id, if it is one of several.
pub(crate) fn print_one(out: &mut Stream, interrupt: &Interrupt, several: bool) {
    let node = out.paint(Tone::Faint, &format!("{} asks", interrupt.node));
    let id = match several {
        false => String::new(),
        true => format!("  {}", interrupt.id),
    };
    out.line(&format!("\n{node}{id}"));
    for line in text(interrupt, out.device().width).lines() {
        print_wrapped(out, Tone::Plain, &format!("  {line}"));
    }
    if let Some(problem) = problem(interrupt) {
        let label = out.paint(Tone::Bad, "the last answer will not do:");
        out.line(&format!("  {label} {}", clean(problem)));
    }
}

/// Prints a line, broken where the terminal ends.
pub(super) fn print_wrapped(out: &mut Stream, tone: Tone, line: &str) {
    let device = out.device();
    // What is no terminal is for others to wrap.
    let lines = match device.terminal {
        true => wrapped(line, device.width),
        false => vec![line.to_owned()],
    };
    for line in lines {
        let line = out.paint(tone, line.trim_end());
        out.line(&line);
    }
}

/// Prints the commands that answer questions.
pub(crate) fn print_commands(out: &mut Stream, thread: &str, questions: &[Interrupt]) {
    print_commands_at(out, thread, None, questions);
}

/// Prints the commands that answer questions; those of an old checkpoint, on a branch.
pub(crate) fn print_commands_at(
    out: &mut Stream,
    thread: &str,
    at: Option<Id>,
    questions: &[Interrupt],
) {
    let options = |question: &Interrupt| answer::options(asked(question));
    let head = match questions {
        [question] => match options(question).as_slice() {
            _ if answer::is_fixed(asked(question)) => "answer with".to_owned(),
            [] => "answer with".to_owned(),
            options => format!(
                "answer by number, {}, or in words",
                answer::numbers(options)
            ),
        },
        _ if questions
            .iter()
            .all(|question| options(question).is_empty()) =>
        {
            "answer with".to_owned()
        }
        _ => "answer with (the number of an option will do)".to_owned(),
    };
    let head = match at {
        Some(_) => head.replacen("answer", "answer on a branch", 1),
        None => head,
    };
    out.line(&format!("\n{head}"));
    for command in commands(thread, at, questions) {
        let command = out.paint(Tone::Hint, &command);
        out.line(&format!("  {command}"));
    }
}

/// The commands that answer questions.
fn commands(thread: &str, at: Option<Id>, questions: &[Interrupt]) -> Vec<String> {
    let resume_command = |thread: &str, options: &str, words: &str| {
        let options = match at {
            Some(at) => format!("--at {at} {options}"),
            None => options.to_owned(),
        };
        resume_command(thread, options.trim_end(), words)
    };
    let json = |question: &Interrupt, before: &str| {
        let form = Form::of_question(&asked(question).to_json())?;
        let answer = quoted(&format!("{before}{}", skeleton(&form)));
        Some(resume_command(
            thread,
            &format!("--answer-json {answer}"),
            "",
        ))
    };
    let words = || resume_command(thread, "", "\"ANSWER\"");
    match questions {
        [question] => {
            let options: Vec<Choice> = answer::options(asked(question));
            if answer::is_fixed(asked(question)) {
                let command = |option: &Choice| resume_command(thread, "", &quoted(&option.label));
                return options.iter().map(command).collect();
            }
            let mut commands = match json(question, "") {
                Some(command) => return vec![command],
                None if options.is_empty() => Vec::new(),
                None => vec![resume_command(thread, "", "1")],
            };
            commands.push(words());
            // Words were refused before, so it may take something else.
            if problem(question).is_some() {
                commands.push(resume_command(thread, "--answer-json JSON", ""));
            }
            commands
        }
        _ => questions
            .iter()
            .map(|question| {
                json(question, &format!("{}=", question.id)).unwrap_or_else(|| {
                    let options = answer::options(asked(question));
                    let answer = match options.first() {
                        Some(first) if answer::is_fixed(asked(question)) => quoted(&first.label),
                        _ => "\"ANSWER\"".to_owned(),
                    };
                    resume_command(thread, &format!("--answer {}={answer}", question.id), "")
                })
            })
            .collect(),
    }
}

/// An answer to a form that is to be filled in.
fn skeleton(form: &Form) -> serde_json::Value {
    let value = |field: &tine::tools::FormField| match (field.default(), field.kind()) {
        (Some(default), _) => default.clone(),
        (None, FieldKind::Number) => json!(0),
        (None, FieldKind::Checkbox) => json!(true),
        (None, FieldKind::Date) => json!("2026-08-01"),
        (None, FieldKind::Select) => json!(field.options().first()),
        (None, FieldKind::MultiSelect) => json!(field.options()),
        (None, FieldKind::Text | FieldKind::TextArea) => json!("..."),
    };
    let fields = form.fields().iter();
    fields
        .map(|field| (field.name().to_owned(), value(field)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
