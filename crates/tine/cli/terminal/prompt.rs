//! Questions that are asked and answered right where a run stopped.

use super::line::clean;
use super::question;
use crate::cli::Cx;
use crate::cli::answer::Takes;
use crate::cli::output::Tone;
use crate::cli::signal::Stops;
use std::collections::BTreeSet;
use std::io::{self, BufRead as _};
use tine::engine::interrupt::InterruptId;
use tine::engine::{Interrupt, Resume, RunError, Value};
use tine::tools::{FieldKind, Form, FormField};

/// The questions of one run and the answers of the user who sits before it.
#[derive(Debug)]
pub(crate) struct Dialog {
    /// The definition of the graph, which says what its nodes take.
    definition: Value,
    /// The questions that the user left for later.
    left: BTreeSet<InterruptId>,
    /// The questions that were asked last.
    asked: Vec<Interrupt>,
    /// The answers to them.
    given: Vec<(InterruptId, Value)>,
}

/// What a user does about a question or one field of it.
enum Said<T> {
    Answer(T),
    /// It is left for later.
    Later,
    /// Nothing more is to be asked (Ctrl-D).
    End,
    /// Everything is to be left as it was (Ctrl-C).
    Stop,
}

impl Dialog {
    pub(crate) fn new(definition: Value) -> Self {
        Self {
            definition,
            left: BTreeSet::new(),
            asked: Vec::new(),
            given: Vec::new(),
        }
    }

    /// Asks what is open and was not left for later. Gives what the run is to go on with, if it is to go on.
    pub(crate) async fn ask(&mut self, cx: &mut Cx, open: &[Interrupt]) -> Option<Resume> {
        self.given.clear();
        self.asked = open
            .iter()
            .filter(|question| !self.left.contains(&question.id))
            .cloned()
            .collect();
        let asked = self.asked.clone();
        let several = open.len() > 1;
        self.go_through(cx, &asked, several, None).await
    }

    /// Asks once more what was answered with something that will not do.
    ///
    /// Nothing of it was recorded. The other answers still stand.
    pub(crate) async fn ask_again(&mut self, cx: &mut Cx, error: &RunError) -> Again {
        let RunError::InvalidAnswer { id, message, .. } = error else {
            return Again::Other;
        };
        let is_it = |question: &&Interrupt| question.id.to_string() == **id;
        let Some(question) = self.asked.iter().find(is_it).cloned() else {
            return Again::Other;
        };
        self.given.retain(|(given, _)| *given != question.id);
        match self.go_through(cx, &[question], false, Some(message)).await {
            Some(resume) => Again::Resume(resume),
            None => Again::Leave,
        }
    }

    async fn go_through(
        &mut self,
        cx: &mut Cx,
        questions: &[Interrupt],
        several: bool,
        problem: Option<&str>,
    ) -> Option<Resume> {
        let mut rest = questions.iter();
        while let Some(question) = rest.next() {
            let takes = Takes::of(question, &self.definition);
            match problem {
                None => question::print_one(&mut cx.stdout, question, several),
                Some(problem) => complain(cx, problem),
            }
            match answer(cx, &takes).await {
                Said::Answer(value) => self.given.push((question.id, value)),
                Said::Later => {
                    self.left.insert(question.id);
                }
                Said::End => {
                    self.left.insert(question.id);
                    self.left.extend(rest.by_ref().map(|question| question.id));
                }
                Said::Stop => {
                    self.given.clear();
                    break;
                }
            }
        }
        let answers = self.given.clone();
        (!answers.is_empty()).then(|| Resume::by_id(answers))
    }
}

/// What comes of asking again.
pub(crate) enum Again {
    /// The run goes on.
    Resume(Resume),
    /// The thread is left waiting.
    Leave,
    /// The error was another one.
    Other,
}

fn complain(cx: &mut Cx, problem: &str) {
    let line = format!("  {}", clean(problem));
    question::print_wrapped(&mut cx.stdout, Tone::Bad, &line);
}

/// Says what can be written.
fn explain(cx: &mut Cx, text: &str) {
    cx.stdout.line("");
    question::print_wrapped(&mut cx.stdout, Tone::Hint, text);
}

async fn answer(cx: &mut Cx, takes: &Takes) -> Said<Value> {
    if let Takes::Form(form) = takes {
        return fill_in(cx, form).await;
    }
    let told = format!(
        "{}; an empty line leaves it for later",
        clean(&takes.told())
    );
    explain(cx, &told);
    loop {
        let text = match line(cx, "> ").await {
            Said::Answer(text) => text,
            Said::Later => return Said::Later,
            Said::End => return Said::End,
            Said::Stop => return Said::Stop,
        };
        if text.trim().is_empty() {
            return Said::Later;
        }
        let problem = match takes.read(&text) {
            Ok(value) => match (takes, value.as_str()) {
                // What the node that asks would say only at the end of all questions.
                (Takes::Whole, Some(text)) if text.trim().parse::<i64>().is_err() => {
                    "a whole number is wanted".to_owned()
                }
                (Takes::Number, Some(text)) if text.trim().parse::<f64>().is_err() => {
                    "a number is wanted".to_owned()
                }
                (Takes::YesNo, Some(_)) => "yes or no is wanted".to_owned(),
                (Takes::Whole | Takes::Number, Some(text)) => {
                    return Said::Answer(text.trim().into());
                }
                _ => return Said::Answer(value),
            },
            Err(problem) => problem,
        };
        complain(cx, &problem);
    }
}

/// Asks for the values of a form one after the other.
async fn fill_in(cx: &mut Cx, form: &Form) -> Said<Value> {
    explain(
        cx,
        "field by field; an empty line takes what stands in brackets or leaves the field out; Ctrl-D leaves all for later",
    );
    let mut values = serde_json::Map::new();
    for field in form.fields() {
        match value_of(cx, field).await {
            Said::Answer(Some(value)) => {
                values.insert(field.name().to_owned(), value);
            }
            Said::Answer(None) | Said::Later => {}
            Said::End => return Said::End,
            Said::Stop => return Said::Stop,
        }
    }
    Said::Answer(Value::from_json(values.into()))
}

async fn value_of(cx: &mut Cx, field: &FormField) -> Said<Option<serde_json::Value>> {
    let prompt = prompt_of(field);
    loop {
        let text = match line(cx, &prompt).await {
            Said::Answer(text) => text,
            Said::Later => String::new(),
            Said::End => return Said::End,
            Said::Stop => return Said::Stop,
        };
        match field.accept(&by_number(field, &text)) {
            Ok(Some(value)) => return Said::Answer(Some(value)),
            Ok(None) if field.default().is_some() => {
                return Said::Answer(field.default().cloned());
            }
            Ok(None) if field.required() => {
                complain(cx, &format!("`{}` is required", field.name()));
            }
            Ok(None) => return Said::Answer(None),
            Err(problem) => complain(cx, &problem),
        }
    }
}

/// What stands before the cursor: `  replicas (a number) [2]: `.
fn prompt_of(field: &FormField) -> String {
    let mut prompt = format!("  {}", clean(field.label()));
    let options: Vec<String> = field
        .options()
        .iter()
        .enumerate()
        .map(|(at, option)| format!("{} {}", at + 1, clean(option)))
        .collect();
    let takes = match field.kind() {
        FieldKind::Text | FieldKind::TextArea => field
            .placeholder()
            .map(|example| format!("such as {}", clean(example))),
        FieldKind::Number => Some("a number".to_owned()),
        FieldKind::Checkbox => Some("yes or no".to_owned()),
        FieldKind::Date => Some("a date as 2026-08-01".to_owned()),
        FieldKind::Select => Some(options.join(", ")),
        FieldKind::MultiSelect => Some(format!("some of {}", options.join(", "))),
    };
    if let Some(takes) = takes {
        prompt.push_str(&format!(" ({takes})"));
    }
    match field.default() {
        Some(serde_json::Value::String(text)) => prompt.push_str(&format!(" [{}]", clean(text))),
        Some(default) => prompt.push_str(&format!(" [{}]", clean(&default.to_string()))),
        None if field.required() => prompt.push_str(" (required)"),
        None => {}
    }
    prompt.push_str(": ");
    prompt
}

/// Puts options in the place of their numbers.
fn by_number(field: &FormField, text: &str) -> serde_json::Value {
    let options = field.options();
    let named = |text: &str| {
        let text = text.trim();
        let is_option = options.contains(&text);
        let number = text.parse::<usize>().ok().filter(|_| !is_option);
        let option = number.and_then(|number| options.get(number.checked_sub(1)?));
        option.map_or(text, |option| *option).to_owned()
    };
    match field.kind() {
        FieldKind::Select => named(text).into(),
        FieldKind::MultiSelect if text.trim().is_empty() => text.into(),
        FieldKind::MultiSelect if options.contains(&text.trim()) => text.trim().into(),
        FieldKind::MultiSelect => text
            .split([',', '，', '、'])
            .map(named)
            .collect::<Vec<_>>()
            .into(),
        _ => text.into(),
    }
}

/// Shows a prompt and reads a line. Never gives [`Said::Later`].
async fn line(cx: &mut Cx, prompt: &str) -> Said<String> {
    let mut stops = Stops::listen();
    loop {
        let stdout = &mut cx.stdout;
        let read = async {
            stdout.write(prompt);
            tokio::task::spawn_blocking(read_line).await
        };
        let said = tokio::select! {
            () = stops.next() => Said::Stop,
            read = read => match read {
                Ok(Ok(Some(line))) => match String::from_utf8(line) {
                    Ok(line) => Said::Answer(clean(line.trim_end_matches(['\n', '\r']))),
                    Err(_) => {
                        complain(cx, "that is not UTF-8 text");
                        continue;
                    }
                },
                // A terminal that can not be read answers nothing more.
                Ok(Ok(None) | Err(_)) | Err(_) => Said::End,
            },
        };
        if !matches!(said, Said::Answer(_)) {
            cx.stdout.write("\n");
        }
        return said;
    }
}

/// Reads a line of standard input; `None` at its end.
fn read_line() -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some(line))
}
