//! Threads that are disturbed in every way that people and machines disturb them: whatever they hold, a model is sent
//! what its provider takes, and the thread can go on.

use crate::fixture::{Bench, asking, react};
use crate::rules::{broken, broken_thread};
use crate::store::{Noting, pause};
use async_trait::async_trait;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tine_agent::events::NOTE;
use tine_agent::middleware::Middleware;
use tine_engine::command::Op;
use tine_engine::message::{Content, InvalidToolCall, Role, ToolCall};
use tine_engine::run::UpdateAs;
use tine_engine::value::Value;
use tine_engine::{
    Event, EventKind, Exit, Input, MemoryCheckpointer, Message, NodeCx, NodeError, Outcome, Resume,
    RunOptions, ThreadKey, Update, from_value,
};
use tine_models::{
    DeltaSink, FinishReason, Model, ModelCx, ModelError, ModelReply, ModelRequest, ReplyCall,
};

/// Numbers that follow from a seed.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of 0, 1, ..., `sides` - 1.
    fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() % sides as u64).unwrap()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())].clone()
    }
}

/// What happened, by kind.
#[derive(Clone, Debug, Default)]
struct Tally(Arc<Mutex<BTreeMap<String, usize>>>);

impl Tally {
    fn count(&self, kind: impl Into<String>) {
        *self.0.lock().unwrap().entry(kind.into()).or_default() += 1;
    }

    fn of(&self, kind: &str) -> usize {
        self.0.lock().unwrap().get(kind).copied().unwrap_or(0)
    }
}

/// A model that says anything, and keeps what is wrong with the requests it gets.
#[derive(Debug)]
struct Wild {
    dice: Mutex<Dice>,
    tally: Tally,
    broken: Mutex<Vec<String>>,
    /// From now on it says one text and is done.
    tame: AtomicBool,
}

impl Wild {
    fn reply(&self) -> Result<ModelReply, ModelError> {
        let mut dice = self.dice.lock().unwrap();
        let mut reply = ModelReply {
            content: "".into(),
            reasoning: None,
            calls: Vec::new(),
            usage: None,
            finish: FinishReason::Stop,
            extra: Default::default(),
            model: "wild".into(),
        };
        if self.tame.load(Ordering::Relaxed) {
            reply.content = "done".into();
            return Ok(reply);
        }
        match dice.roll(10) {
            0 => {
                return Err(ModelError::Transport {
                    model: "wild".into(),
                    message: "reset".to_owned(),
                });
            }
            1 => reply.content = dice.pick(&["", " ", "\n"]).into(),
            2 => reply.content = "said".into(),
            3 => {
                let seen = Value::from(seen(&mut dice));
                let blocks = seen.as_list().unwrap().iter().cloned().collect();
                reply.content = Content::Blocks(blocks);
            }
            4 => {
                // Cut off in its calls.
                reply.finish = FinishReason::Length;
                for _ in 0..=dice.roll(2) {
                    reply.calls.push(ReplyCall::Invalid(invalid(&mut dice)));
                }
            }
            _ => {
                for _ in 0..=dice.roll(4) {
                    reply.calls.push(match dice.roll(8) {
                        0 => ReplyCall::Invalid(invalid(&mut dice)),
                        _ => ReplyCall::Valid(call(&mut dice)),
                    });
                }
            }
        }
        self.tally.count(match reply.calls.is_empty() {
            true => "replies without calls",
            false => "replies with calls",
        });
        Ok(reply)
    }
}

#[async_trait]
impl Model for Wild {
    fn name(&self) -> &str {
        "wild"
    }

    async fn stream(
        &self,
        cx: &ModelCx,
        request: &ModelRequest,
        _: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        self.tally.count("requests");
        for message in &request.messages {
            self.tally.count(format!("{:?} messages", message.role));
            if has_image(message) {
                self.tally.count(format!("{:?} images", message.role));
            }
            let text = message.content.text();
            for (start, kind) in [
                ("The result of this call was never", "results filled in"),
                ("Cancelled: ", "calls cancelled"),
                ("The call of ", "calls refused"),
                ("the tool panicked", "panics"),
                ("(no output)", "results without output"),
            ] {
                if text.starts_with(start) {
                    self.tally.count(kind);
                }
            }
        }
        self.broken.lock().unwrap().extend(broken(request));
        let wait = self.dice.lock().unwrap().roll(20);
        cx.world.sleep(Duration::from_millis(wait as u64)).await;
        pause().await;
        self.reply()
    }
}

fn has_image(message: &Message) -> bool {
    let Content::Blocks(blocks) = &message.content else {
        return false;
    };
    let kind = |block: &Value| block.get("type")?.as_str().map(str::to_owned);
    let mut kinds = blocks.iter().filter_map(kind);
    kinds.any(|kind| kind.starts_with("image"))
}

/// Keeps the end of a conversation, wherever that cuts through.
struct Trims {
    last: usize,
    tally: Tally,
}

#[async_trait]
impl Middleware for Trims {
    fn name(&self) -> &'static str {
        "trims"
    }

    async fn before_model(&self, _: &NodeCx, request: &mut ModelRequest) -> Result<(), NodeError> {
        let from = request.messages.len().saturating_sub(self.last);
        if from > 0 {
            self.tally.count("requests trimmed");
        }
        request.messages.drain(..from);
        Ok(())
    }
}

/// Few ids, so that they meet: in one message, in later ones, and in imports.
fn id(dice: &mut Dice) -> &'static str {
    dice.pick(&["", " ", "x", "y", "call_1", "x_2", "x#1", "ä"])
}

fn own_id(dice: &mut Dice) -> Arc<str> {
    match dice.roll(4) {
        0 => id(dice).into(),
        _ => format!("c{}", dice.next()).into(),
    }
}

fn call(dice: &mut Dice) -> ToolCall {
    let names = [
        "probe",
        "probe",
        "alone",
        "effect",
        "effect",
        "ask_clarification",
        "rm -rf",
        "",
    ];
    let name = dice.pick(&names);
    let question = json!({"question": "which?", "clarification_type": "missing_info"});
    let args = match name {
        "ask_clarification" => question,
        _ => match dice.roll(7) {
            0 => json!({"say": "a", "fail": "no luck"}),
            1 if dice.roll(4) == 0 => json!({"say": "a", "fail": "panic"}),
            2 => json!({"say": 7}),
            3 => json!({"say": ""}),
            4 => json!([1]),
            _ => json!({"say": "a", "millis": dice.roll(20)}),
        },
    };
    ToolCall {
        name: name.into(),
        args: args.into(),
        id: own_id(dice),
    }
}

fn invalid(dice: &mut Dice) -> InvalidToolCall {
    InvalidToolCall {
        name: dice.pick(&[None, Some("probe".into()), Some("no/tool".into())]),
        args: Some("{\"say\": \"ha".into()),
        id: match dice.roll(3) {
            0 => None,
            _ => Some(own_id(dice)),
        },
        error: Some("the reply was cut off (length) before the arguments were whole".into()),
    }
}

/// Content that is more than text: images and blocks that nobody knows, whole and not.
fn seen(dice: &mut Dice) -> Json {
    let blocks = [
        json!({"type": "image_url", "image_url": {"url": "http://x/y.png"}}),
        json!({"type": "image", "base64": "QUJD", "mime_type": "image/png"}),
        json!({"type": "image"}),
        json!({"type": "document", "source": {"type": "text", "data": "x"}}),
        json!({"type": "input_audio", "input_audio": {}}),
        json!({"type": "text", "text": "seen"}),
    ];
    (0..=dice.roll(2)).map(|_| dice.pick(&blocks)).collect()
}

/// A message as some other program may have written it.
fn foreign(dice: &mut Dice) -> Json {
    let id = id(dice);
    let args = dice.pick(&[json!({}), json!("{"), json!("[]"), Json::Null]);
    let openai =
        json!({"id": id, "type": "function", "function": {"name": "fs.read", "arguments": args}});
    let own =
        json!({"id": id, "name": "今天", "args": dice.pick(&[json!({}), json!("x"), json!(null)])});
    let seen = seen(dice);
    dice.pick(&[
        json!({"role": "user", "content": ""}),
        json!({"role": "user", "content": [{"type": "text", "text": ""}, "hi", 7]}),
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "assistant", "content": null, "tool_calls": [openai]}),
        json!({"type": "ai", "content": [{"type": "text", "text": ""}], "tool_calls": [own, own]}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "tool", "content": "4", "tool_call_id": id}),
        json!({"role": "tool", "content": "4", "tool_call_id": null}),
        json!({"role": "tool", "content": "", "tool_call_id": id, "tool_calls": [own]}),
        json!({"role": "user", "content": "hi", "tool_calls": [own]}),
        json!({"role": "user", "content": seen}),
        json!({"role": "assistant", "content": seen}),
        json!({"role": "assistant", "content": seen, "tool_calls": [own]}),
        json!({"role": "tool", "content": seen, "tool_call_id": id}),
    ])
}

/// One thread, and what is done to it.
struct Scene {
    bench: Bench,
    wild: Arc<Wild>,
    dice: Dice,
    tally: Tally,
    open: Vec<(String, Option<String>)>,
}

impl Scene {
    fn new(seed: u64, tally: &Tally) -> Self {
        let graphs = [
            react("", ""),
            react(
                "    retry: { max_attempts: 2, on: [transport] }",
                "    ask_before: [effect]",
            ),
            react("    system: Be kind.", "    on_tool_error: fail"),
            react(
                "    prompt: Go on.\n    prompt_once: true",
                "    max_parallel: 1",
            ),
            asking(),
        ];
        let mut dice = Dice(seed);
        let wild = Arc::new(Wild {
            dice: Mutex::new(Dice(dice.next())),
            tally: tally.clone(),
            broken: Mutex::default(),
            tame: AtomicBool::new(false),
        });
        let graph = dice.pick(&graphs);
        let last = dice.roll(12);
        let trims = Trims {
            last,
            tally: tally.clone(),
        };
        let bench = Bench::of(&graph, wild.clone(), Arc::default(), |agent| match last {
            1..6 => agent.with_middleware(trims),
            _ => agent,
        });
        let store = Noting {
            store: MemoryCheckpointer::new(),
            log: bench.log.clone(),
            refuses: false,
            pauses: true,
        };
        Self {
            bench: bench.over(store),
            wild,
            dice,
            tally: tally.clone(),
            open: Vec::new(),
        }
    }

    fn messages(&self) -> Vec<(String, Message)> {
        let state = poll(self.bench.runner.state(&thread()), usize::MAX).unwrap();
        let Some(state) = state.unwrap() else {
            return Vec::new();
        };
        let messages = state.values.get("messages");
        let items = messages.and_then(Value::as_list).into_iter();
        let items = items.flat_map(|items| items.iter());
        let messages = items.map(|item| from_value::<Message>(item).unwrap());
        messages
            .map(|message| (message.id.clone().unwrap().to_string(), message))
            .collect()
    }

    /// Does one thing to the thread.
    fn disturb(&mut self) {
        match self.dice.roll(12) {
            0..3 => self.run(Update::new().set("messages", "go"), "new input"),
            3..5 => self.run(Input::Continue, "continued"),
            5..8 => self.answer(),
            8..10 => self.trim(),
            10 => self.import(),
            _ => self.go_back(),
        }
        let messages: Vec<Message> = self
            .messages()
            .into_iter()
            .map(|(_, message)| message)
            .collect();
        if broken_thread(&messages) {
            self.tally.count("threads that no provider takes");
        }
    }

    /// Runs, and lets the run end by itself, or in one of the ways in which runs are ended.
    fn run(&mut self, input: impl Into<Input>, kind: &str) {
        self.run_at(input.into(), kind, RunOptions::default());
    }

    fn run_at(&mut self, input: Input, kind: &str, mut options: RunOptions) {
        self.tally.count(kind);
        let mut polls = usize::MAX;
        let events = self.dice.roll(40);
        match self.dice.roll(8) {
            0 | 1 => polls = self.dice.roll(80),
            2 | 3 => {
                let (cancel, heard) = (options.cancel.clone(), AtomicUsize::new(0));
                let tally = self.tally.clone();
                options.listener = Some(Arc::new(move |event: &Event| {
                    listen(&tally, event);
                    if heard.fetch_add(1, Ordering::Relaxed) == events {
                        cancel.cancel();
                    }
                }));
            }
            4 => options.max_steps = Some(1 + self.dice.roll(4) as u64),
            _ => {
                let tally = self.tally.clone();
                options.listener = Some(Arc::new(move |event: &Event| listen(&tally, event)));
            }
        }
        let work = self.bench.run_if(input, options);
        match poll(work, polls) {
            None => self.tally.count("dropped"),
            Some(Err(_)) => self.tally.count("refused"),
            Some(Ok(outcome)) => {
                self.tally.count(outcome.exit.name());
                self.remember(&outcome);
            }
        }
    }

    fn remember(&mut self, outcome: &Outcome) {
        let kind = |payload: &Value| payload.get("kind")?.as_str().map(str::to_owned);
        let asked = outcome.interrupts.iter();
        self.open = asked
            .map(|asked| (asked.id.to_string(), kind(&asked.payload)))
            .collect();
    }

    /// Answers some of the questions, or all.
    fn answer(&mut self) {
        let mut answers = Vec::new();
        for (id, kind) in self.open.clone() {
            let answer: &[&str] = match kind.as_deref() {
                Some("unknown_outcome") => &["retry", "skip", "fail"],
                Some("approval") => &["allow", "deny"],
                _ => &["this one", ""],
            };
            if self.dice.roll(5) > 0 {
                answers.push((id, self.dice.pick(answer)));
            }
        }
        if answers.is_empty() {
            return self.run(Input::Continue, "continued");
        }
        self.run(Resume::by_id(answers).lenient(), "answered");
    }

    /// Takes messages out, as a client may.
    fn trim(&mut self) {
        let messages = self.messages();
        if messages.is_empty() {
            return;
        }
        let mut ops = Vec::new();
        for (id, message) in &messages {
            let often = match message.role {
                Role::Ai | Role::Tool => 3,
                Role::Human | Role::System => 6,
            };
            if self.dice.roll(often) == 0 {
                ops.push(Op::Remove(id.as_str().into()));
            }
        }
        self.update(Update::new().ops("messages", ops), "trimmed");
    }

    /// Puts messages in, as a client or another program may.
    fn import(&mut self) {
        let foreign: Vec<Json> = (0..=self.dice.roll(6))
            .map(|_| foreign(&mut self.dice))
            .collect();
        let messages = Value::from(Json::from(foreign));
        let update = match self.dice.roll(3) {
            0 => Update::new().overwrite("messages", messages),
            _ => Update::new().set("messages", messages),
        };
        self.update(update, "imported");
    }

    fn update(&mut self, update: Update, kind: &str) {
        let by = [
            UpdateAs::LastRan,
            UpdateAs::Start,
            UpdateAs::from("agent"),
            UpdateAs::from("act"),
        ];
        let by = self.dice.pick(&by);
        let thread = thread();
        let work = self.bench.runner.update(&thread, by, update);
        match poll(work, usize::MAX).unwrap() {
            Ok(_) => self.tally.count(kind),
            Err(_) => self.tally.count(format!("{kind}: refused")),
        }
    }

    /// Goes on from some checkpoint before.
    fn go_back(&mut self) {
        let thread = thread();
        let work = self.bench.runner.history(&thread, None);
        let Ok(history) = poll(work, usize::MAX).unwrap() else {
            return;
        };
        let at = match history.len() {
            0 => None,
            count => Some(history[self.dice.roll(count)].id),
        };
        let options = RunOptions {
            at,
            ..RunOptions::default()
        };
        self.run_at(Input::Continue, "gone back", options);
    }

    /// Whatever became of the thread, the user can go on.
    fn goes_on(&self) {
        self.wild.tame.store(true, Ordering::Relaxed);
        let input = Update::new().set("messages", "are you there?");
        let work = self.bench.run_if(input, RunOptions::default());
        let outcome = poll(work, usize::MAX).unwrap().unwrap();
        assert_eq!(outcome.exit, Exit::Done);
        let messages = self.messages();
        let last: Vec<String> = messages
            .iter()
            .rev()
            .map(|(_, message)| message.content.text())
            .take(2)
            .collect();
        assert_eq!(last[0], "done");
    }
}

fn listen(tally: &Tally, event: &Event) {
    if let EventKind::Custom { kind, data, .. } = &event.kind
        && **kind == *NOTE
        && let Some(text) = data.get("text").and_then(Value::as_str)
        && text.contains("left out of the request")
    {
        tally.count("notes of what is left out");
    }
}

fn thread() -> ThreadKey {
    ThreadKey::local("t")
}

/// Polls so many times, and drops what is not done then.
fn poll<T>(work: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..polls.min(1_000_000) {
        if let Poll::Ready(result) = work.as_mut().poll(&mut cx) {
            return Some(result);
        }
    }
    assert!(polls < 1_000_000, "it hangs");
    None
}

/// What must have happened, and how often at least, for this test to have tested something.
const LEAST: [(&str, usize); 28] = [
    ("requests", 1_000),
    ("replies with calls", 500),
    ("replies without calls", 200),
    ("new input", 200),
    ("continued", 200),
    ("answered", 50),
    ("trimmed", 100),
    ("imported", 50),
    ("gone back", 50),
    ("dropped", 100),
    ("requests trimmed", 100),
    ("done", 100),
    ("cancelled", 50),
    ("failed", 50),
    ("step_limit", 20),
    ("interrupted", 50),
    ("threads that no provider takes", 300),
    ("notes of what is left out", 50),
    ("results filled in", 100),
    ("calls cancelled", 20),
    ("calls refused", 100),
    ("panics", 20),
    ("results without output", 20),
    ("Ai messages", 1_000),
    ("Tool messages", 1_000),
    ("Human images", 25),
    ("Ai images", 50),
    ("Tool images", 8),
];

#[test]
fn a_thread_that_is_disturbed_sends_its_model_what_a_provider_takes() {
    let tally = Tally::default();
    for seed in 0..150 {
        let mut scene = Scene::new(seed, &tally);
        for _ in 0..16 {
            scene.disturb();
            let broken = scene.wild.broken.lock().unwrap().clone();
            assert!(broken.is_empty(), "seed {seed}: {}", broken.join("\n"));
        }
        scene.goes_on();
        let broken = scene.wild.broken.lock().unwrap().clone();
        assert!(broken.is_empty(), "seed {seed}: {}", broken.join("\n"));
    }
    let counted = format!("{:#?}", tally.0.lock().unwrap());
    println!("{counted}");
    for (kind, least) in LEAST {
        assert!(tally.of(kind) >= least, "too few {kind}: {counted}");
    }
}
