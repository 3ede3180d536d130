//! Runs written down: a block for each step.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tine::agent::events;
use tine::engine::event::ChannelWrite;
use tine::engine::{Event, EventKind, Listener, Message, Outcome, START, Value, Write};

/// How much of a text is shown.
const SHOWN: usize = 60;

/// Hears a run and writes it down.
#[derive(Clone, Default)]
pub(crate) struct Transcript(Arc<Mutex<String>>);

impl Transcript {
    pub(crate) fn listener(&self) -> Option<Arc<dyn Listener>> {
        Some(Arc::new(self.clone()))
    }

    /// Closes the record of one invocation.
    pub(crate) fn end(&self, outcome: &Outcome) {
        let mut text = self.0.lock().unwrap();
        let _ = write!(text, "{}", outcome.exit.name());
        if let Some(error) = outcome.exit.error() {
            let _ = write!(text, ": {error}");
        }
        text.push('\n');
        for interrupt in &outcome.interrupts {
            let question = interrupt
                .payload
                .get("question")
                .unwrap_or(&interrupt.payload);
            let _ = writeln!(
                text,
                "  asks   {} {}",
                interrupt.node,
                short(&question.to_canonical())
            );
        }
        let artifacts = outcome.values.get("artifacts").and_then(Value::as_list);
        for artifact in artifacts.iter().flat_map(|artifacts| artifacts.iter()) {
            let _ = writeln!(text, "  has    {}", artifact.as_str().unwrap());
        }
        text.push('\n');
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Listener for Transcript {
    fn on_event(&self, event: &Event) {
        let mut text = self.0.lock().unwrap();
        let _ = match &event.kind {
            EventKind::Started { thread, run } => writeln!(text, "thread {thread}  run {run}\n"),
            EventKind::Step { tasks } => {
                let tasks = tasks.join("  ").replace(START, "the input");
                writeln!(text, "step {}\n  ran    {tasks}", event.step)
            }
            EventKind::TaskFinished { writes, cached, .. } => {
                if *cached {
                    text.push_str("  kept   what had finished before\n");
                }
                writes
                    .iter()
                    .flat_map(lines)
                    .try_for_each(|line| writeln!(text, "  wrote  {line}"))
            }
            EventKind::TaskFailed { node, error, .. } => writeln!(text, "  failed {node}: {error}"),
            EventKind::Custom { kind, data, .. } => custom(&mut text, kind, data),
            // The input is stored before it is a step.
            EventKind::Checkpoint { next, .. } if event.step >= 0 => match next.as_slice() {
                [] => writeln!(text),
                next => writeln!(text, "  next   {}\n", next.join("  ")),
            },
            _ => Ok(()),
        };
    }
}

fn custom(text: &mut String, kind: &str, data: &Value) -> std::fmt::Result {
    let get = |key| data.get(key).cloned().unwrap_or_default();
    let name = get("name");
    let name = name.as_str().unwrap_or_default();
    match kind {
        events::TOOL_CALL => {
            writeln!(
                text,
                "  call   {name} {}",
                short(&get("args").to_canonical())
            )
        }
        events::TOOL_RESULT => {
            let (status, result) = (get("status"), get("text"));
            let (status, result) = (status.as_str().unwrap(), result.as_str().unwrap());
            let status = status.replace("success", "ok");
            writeln!(text, "  {status:7}{name} {}", short(result))
        }
        _ => Ok(()),
    }
}

/// What a write adds, a line for each item.
fn lines(write: &ChannelWrite) -> Vec<String> {
    let channel = &write.channel;
    let (value, sign) = match &write.write {
        Write::Value(value) => (value, "+="),
        Write::Overwrite(value) => (value, "="),
        other => return vec![format!("{channel} {other:?}")],
    };
    match value.as_list() {
        Some(items) => items
            .iter()
            .map(|item| format!("{channel} {sign} {}", item_line(item)))
            .collect(),
        None => vec![format!("{channel} {sign} {}", short(&value.to_canonical()))],
    }
}

fn item_line(item: &Value) -> String {
    let Ok(message) = Message::from_value(item) else {
        return short(&item.to_canonical());
    };
    let role = format!("{:?}", message.role).to_lowercase();
    let mut parts = vec![role];
    parts.extend(message.name.as_deref().map(str::to_owned));
    if message.status == Some(tine::engine::message::ToolStatus::Error) {
        parts.push("error".to_owned());
    }
    let calls: Vec<_> = message.tool_calls.iter().map(|call| &*call.name).collect();
    if !calls.is_empty() {
        parts.push(format!("calls {}", calls.join(", ")));
    }
    let text = message.content.text();
    if !text.is_empty() {
        parts.push(format!("{:?}", short(&text)));
    }
    parts.join(" ")
}

fn short(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    }
}
