//! Events as people read them, line by line.

use super::line::{clean, columns, one_line};
use crate::cli::output::{Stream, Tone};
use std::collections::BTreeSet;
use std::sync::Arc;
use tine::agent::events;
use tine::engine::event::ChannelWrite;
use tine::engine::message::{Message, Role};
use tine::engine::{Event, EventKind, START, Value, Write};

/// The width of the words in front of lines: `call`, `ok`, `error`, ...
const MARK: usize = 7;
/// The least room that a cut text gets, however narrow the terminal.
const LEAST: usize = 8;

/// Tells a run as it happens.
pub(super) struct Narration {
    out: Stream,
    graph: String,
    /// Who speaks, while a line of streamed text is unfinished.
    speaks: Option<Speaker>,
    /// What the run works on, for those who wait.
    work: Option<String>,
    /// The nodes whose words were shown as they came.
    streamed: BTreeSet<Arc<str>>,
    tasks: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Speaker {
    node: Arc<str>,
    thinks: bool,
    /// Whether the last character ended a line.
    at_start: bool,
}

impl Narration {
    pub(super) fn new(out: Stream, graph: &str) -> Self {
        Self {
            out,
            graph: graph.to_owned(),
            speaks: None,
            work: None,
            streamed: BTreeSet::new(),
            tasks: 0,
        }
    }

    /// Whether nobody reads on.
    pub(super) fn closed(&self) -> bool {
        self.out.closed()
    }

    /// What the run works on while nothing is being written.
    pub(super) fn waits_for(&self) -> Option<&str> {
        match self.speaks {
            Some(_) => None,
            None => self.work.as_deref(),
        }
    }

    /// Gives the stream back, at the start of a line.
    pub(super) fn end(mut self) -> Stream {
        self.stop_speaking();
        self.out
    }

    /// Tells one event.
    pub(super) fn tell(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Started { thread, run } if event.namespace.is_empty() => {
                let thread = self.out.paint(Tone::Strong, &clean(thread));
                let rest = format!("run {run}  graph {}", self.graph);
                let rest = self.out.paint(Tone::Faint, &rest);
                self.line(&format!("thread {thread}  {rest}"));
            }
            EventKind::Step { tasks } => self.step(event, tasks),
            EventKind::TaskFinished {
                node,
                writes,
                cached,
                ..
            } => self.finished(node, writes, *cached),
            EventKind::TaskFailed {
                node,
                error,
                retried,
                ..
            } => {
                let again = if *retried { ", once more" } else { "" };
                self.marked(Tone::Bad, "error", &format!("{node}{again}: {error}"));
            }
            EventKind::Breakpoint { nodes } => {
                self.marked(Tone::Hint, "pause", &nodes.join(", "));
            }
            EventKind::Custom { node, kind, data } => self.custom(node, kind, data),
            EventKind::Ended { .. } if event.namespace.is_empty() => self.work = None,
            _ => {}
        }
    }

    fn step(&mut self, event: &Event, tasks: &[Arc<str>]) {
        if tasks.iter().all(|task| &**task == START) {
            return;
        }
        self.streamed.clear();
        self.tasks = tasks.len();
        let names = tasks.join(", ");
        let inside = match &*event.namespace {
            "" => String::new(),
            namespace => format!("{namespace} / "),
        };
        let step = format!("step {}", event.step);
        let step = self.out.paint(Tone::Faint, &step);
        self.line(&format!("{step}  {inside}{names}"));
        self.work = Some(names);
    }

    fn finished(&mut self, node: &Arc<str>, writes: &[ChannelWrite], cached: bool) {
        if &**node == START {
            return;
        }
        if cached {
            self.marked(
                Tone::Faint,
                "kept",
                &format!("{node}, which had finished before"),
            );
        } else if !self.streamed.contains(node) {
            for text in writes.iter().flat_map(said) {
                self.speak(node, &text, false);
            }
        }
        self.stop_speaking();
    }

    fn custom(&mut self, node: &Arc<str>, kind: &str, data: &Value) {
        let text = |key| data.get(key).and_then(Value::as_str).unwrap_or_default();
        match kind {
            events::TOKEN => {
                self.streamed.insert(node.clone());
                self.speak(node, text("text"), false);
            }
            events::REASONING => self.speak(node, text("text"), true),
            events::TOOL_CALL => {
                let name = text("name");
                self.work = Some(name.to_owned());
                self.marked(
                    Tone::Hint,
                    "call",
                    &format!("{name}({})", arguments(data.get("args"))),
                );
            }
            events::TOOL_RESULT => {
                let (tone, mark) = match text("status") {
                    "error" => (Tone::Bad, "error"),
                    _ => (Tone::Good, "ok"),
                };
                self.marked(tone, mark, &format!("{}: {}", text("name"), text("text")));
            }
            events::NOTE => {
                let who = match text("name") {
                    "" => node,
                    tool => tool,
                };
                self.marked(Tone::Faint, "note", &format!("{who}: {}", text("text")));
            }
            // What other programs put in is theirs to show; `--json` has it.
            _ => {}
        }
    }

    /// Writes words as they come. When several tasks of a step speak, each change of speaker is said.
    fn speak(&mut self, node: &Arc<str>, text: &str, thinks: bool) {
        let text = clean(text);
        if text.is_empty() {
            return;
        }
        let goes_on = self
            .speaks
            .as_ref()
            .is_some_and(|speaker| speaker.node == *node && speaker.thinks == thinks);
        if !goes_on {
            self.stop_speaking();
            if self.tasks > 1 {
                let who = self.out.paint(Tone::Faint, &format!("{node}: "));
                self.out.write(&who);
            }
        }
        let tone = if thinks { Tone::Faint } else { Tone::Plain };
        let painted = self.out.paint(tone, &text);
        self.out.write(&painted);
        self.speaks = Some(Speaker {
            node: node.clone(),
            thinks,
            at_start: text.ends_with('\n'),
        });
    }

    fn stop_speaking(&mut self) {
        if let Some(speaker) = self.speaks.take()
            && !speaker.at_start
        {
            self.out.write("\n");
        }
    }

    /// Writes a line below a step: a word, and a text cut to what is left of the line.
    fn marked(&mut self, tone: Tone, mark: &str, text: &str) {
        let room = self.out.device().width.saturating_sub(2 + MARK);
        let text = one_line(text, room.max(LEAST));
        let fill = " ".repeat(MARK.saturating_sub(columns(mark)));
        let mark = self.out.paint(tone, mark);
        self.line(&format!("  {mark}{fill}{text}"));
    }

    fn line(&mut self, text: &str) {
        self.stop_speaking();
        self.out.line(text);
    }
}

/// Arguments in short: `query: "tea", max: 3`. Long ones, such as the content of a file, stand last: they are cut.
pub(crate) fn arguments(args: Option<&Value>) -> String {
    const LONG: usize = 60;
    match args {
        Some(Value::Map(args)) => {
            let mut shown: Vec<String> = args
                .iter()
                .map(|(key, value)| format!("{key}: {}", value.to_canonical()))
                .collect();
            shown.sort_by_key(|argument| columns(argument) > LONG);
            shown.join(", ")
        }
        Some(other) => other.to_canonical(),
        None => String::new(),
    }
}

/// What models say in a write to a channel.
fn said(write: &ChannelWrite) -> Vec<String> {
    let (Write::Value(value) | Write::Overwrite(value)) = &write.write else {
        return Vec::new();
    };
    let one = std::slice::from_ref(value).iter();
    let items: Vec<&Value> = match value.as_list() {
        Some(items) => items.iter().collect(),
        None => one.collect(),
    };
    items
        .into_iter()
        .filter(|item| item.get("type").and_then(Value::as_str) == Some("ai"))
        .filter_map(|item| Message::from_value(item).ok())
        .filter(|message| message.role == Role::Ai)
        .map(|message| message.content.text())
        .filter(|text| !text.is_empty())
        .collect()
}
