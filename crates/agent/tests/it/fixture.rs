//! A model that says what a test wants, tools that note what they did, and a graph around them.

use async_trait::async_trait;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tine_agent::Agent;
use tine_agent::events::{NOTE, TOOL_CALL};
use tine_engine::message::{Role, ToolCall};
use tine_engine::value::Value;
use tine_engine::{
    Checkpointer, Event, EventKind, Input, MemoryCheckpointer, Message, NodeError, Outcome,
    RunError, RunOptions, Runner, SimWorld, ThreadKey, Update, from_value,
};
use tine_graphfile::NoSources;
use tine_models::{
    Accumulator, Delta, DeltaSink, FinishReason, Model, ModelCx, ModelError, ModelReply,
    ModelRequest, ReplyCall, ToolCallDelta,
};
use tine_tools::paths::Home;
use tine_tools::schema::ArgSchema;
use tine_tools::{
    Args, Effect, Source, Tool, ToolCommand, ToolCx, ToolError, ToolOutput, ToolSpec,
};

/// What a model is to say: a text, or calls as `name(json)`; the arguments may be cut off.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Text(&'static str),
    Calls(Vec<(&'static str, String)>),
    /// These calls as they are, and why the reply ends.
    Reply(Vec<ReplyCall>, FinishReason),
    /// The same in a reply that reached its most tokens.
    CutOff(Vec<(&'static str, String)>),
}

pub(crate) fn call(name: &'static str, args: &Json) -> (&'static str, String) {
    (name, args.to_string())
}

/// Says one thing after the other, and keeps what it was asked.
#[derive(Debug)]
pub(crate) struct Parrot {
    lines: Vec<Say>,
    pub(crate) requests: Arc<Mutex<Vec<ModelRequest>>>,
}

#[async_trait]
impl Model for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    async fn stream(
        &self,
        _: &ModelCx,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let at = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        let mut deltas = match &self.lines[at] {
            Say::Reply(calls, finish) => {
                return Ok(ModelReply {
                    content: "".into(),
                    reasoning: None,
                    calls: calls.clone(),
                    usage: None,
                    finish: finish.clone(),
                    extra: Default::default(),
                    model: self.name().into(),
                });
            }
            Say::Text(text) => vec![Delta::Text((*text).to_owned())],
            Say::Calls(calls) | Say::CutOff(calls) => calls
                .iter()
                .zip(0..)
                .map(|((name, arguments), index)| {
                    Delta::ToolCall(ToolCallDelta {
                        index,
                        id: Some(format!("c{at}.{index}").into()),
                        name: Some((*name).into()),
                        arguments: arguments.clone(),
                        ..ToolCallDelta::default()
                    })
                })
                .collect(),
        };
        deltas.push(Delta::Finish(match &self.lines[at] {
            Say::CutOff(_) => FinishReason::Length,
            Say::Text(_) | Say::Calls(_) | Say::Reply(..) => FinishReason::Stop,
        }));
        let mut reply = Accumulator::new();
        for delta in deltas {
            sink.push(&delta);
            reply.push(&delta);
        }
        Ok(reply.finish(self.name(), request))
    }
}

/// What tools did, in order.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A tool that waits, notes, and does what its arguments say.
struct Probe {
    spec: ToolSpec,
    log: Log,
}

#[async_trait]
impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let text = |key: &str| {
            args.get(key)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let say = text("say");
        self.log.lock().unwrap().push(format!("{say} begins"));
        let millis = args.get("millis").and_then(Json::as_u64).unwrap_or(0);
        cx.world().sleep(Duration::from_millis(millis)).await;
        self.log.lock().unwrap().push(format!("{say} ends"));
        assert!(text("fail") != "panic", "a bug");
        if args.contains_key("fail") {
            return Err(ToolError::failed(text("fail")));
        }
        if args.contains_key("route") || args.contains_key("write") {
            let write = text("write");
            let update = if write.is_empty() {
                Update::new()
            } else {
                Update::new().set(write, "written")
            };
            let route = Some(text("route")).filter(|route| !route.is_empty());
            return Ok(ToolOutput::Command(ToolCommand {
                update,
                route,
                reply: Some(say.as_str().into()),
            }));
        }
        Ok(ToolOutput::text(say))
    }
}

const ARGS: &str = r#"{"type": "object", "properties": {"say": {"type": "string"}, "millis": {"type": "integer"},
    "fail": {"type": "string"}, "route": {"type": "string"}, "write": {"type": "string"}}, "required": ["say"],
    "additionalProperties": false}"#;

/// A graph file with a model, probes and a thread.
pub(crate) struct Bench {
    pub(crate) runner: Runner,
    pub(crate) requests: Arc<Mutex<Vec<ModelRequest>>>,
    pub(crate) log: Log,
    _disk: tempfile::TempDir,
}

impl Bench {
    /// Loads `graph` over the tools `probe`, `alone` (nothing runs beside it), `effect` (not to be done twice), and
    /// the built-in `ask_clarification`.
    pub(crate) fn new(graph: &str, lines: Vec<Say>) -> Self {
        Self::with(graph, lines, |agent| agent)
    }

    /// The same, with more in the agent.
    pub(crate) fn with(graph: &str, lines: Vec<Say>, more: impl FnOnce(Agent) -> Agent) -> Self {
        let requests = Arc::default();
        let parrot = Arc::new(Parrot {
            lines,
            requests: Arc::clone(&requests),
        });
        Self::of(graph, parrot, requests, more)
    }

    /// The same with another model.
    pub(crate) fn of(
        graph: &str,
        model: Arc<dyn Model>,
        requests: Arc<Mutex<Vec<ModelRequest>>>,
        more: impl FnOnce(Agent) -> Agent,
    ) -> Self {
        let log = Log::default();
        let spec = |name: &str| {
            ToolSpec::new(
                Source::Config,
                name,
                "Notes and says.",
                ArgSchema::parse(ARGS).unwrap(),
            )
            .writes("notes")
            .optional_route("aside")
        };
        let probes = [
            spec("probe").effect(Effect::ReadOnly),
            spec("alone").effect(Effect::ReadOnly).alone(),
            spec("effect"),
        ];
        let tools = probes.map(|spec| {
            Arc::new(Probe {
                spec,
                log: log.clone(),
            }) as Arc<dyn Tool>
        });
        let (toolbox, _) = tine_tools::assemble::assemble(
            &tine_tools::config::Config::parse("tools: []", "config.yaml".as_ref()).unwrap(),
            &tine_tools::assemble::Extensions {
                mcp: tools.into(),
                ..Default::default()
            },
            &tine_tools::assemble::Scene::default(),
        )
        .unwrap();
        let disk = tempfile::tempdir().unwrap();
        let home = Home::open(disk.path()).unwrap();
        let folders = move |thread: &ThreadKey| home.thread(thread).map_err(NodeError::from);
        let agent = Agent::new(toolbox, folders).with_models([("default".to_owned(), model)]);
        let agent = more(agent);
        let (loaded, diagnostics) = tine_graphfile::load(
            "test.yaml",
            graph,
            &NoSources,
            &agent,
            &agent.registry(true),
        );
        let loaded = loaded.unwrap_or_else(|| panic!("{diagnostics:?}"));
        let runner = Runner::new(loaded.graph, SimWorld::new(0))
            .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
        Self {
            runner,
            requests,
            log,
            _disk: disk,
        }
    }

    /// The same over another store.
    pub(crate) fn over(mut self, store: impl Checkpointer + 'static) -> Self {
        self.runner = self.runner.with_checkpointer(Arc::new(store));
        self
    }

    pub(crate) async fn send(&self, text: &str) -> Outcome {
        self.invoke(Update::new().set("messages", text)).await
    }

    pub(crate) async fn invoke(&self, input: impl Into<Input>) -> Outcome {
        self.run(input, RunOptions::default()).await
    }

    /// Breaks the run off when a call of `tool` waits.
    pub(crate) async fn cut(&self, input: impl Into<Input>, tool: &'static str) -> Outcome {
        let mut options = RunOptions::default();
        let cancel = options.cancel.clone();
        options.listener = Some(Arc::new(move |event: &Event| {
            if let EventKind::Custom { kind, data, .. } = &event.kind
                && **kind == *TOOL_CALL
                && data.get("name") == Some(&tool.into())
            {
                cancel.cancel();
            }
        }));
        self.run(input, options).await
    }

    async fn run(&self, input: impl Into<Input>, options: RunOptions) -> Outcome {
        self.run_if(input, options).await.unwrap()
    }

    /// Runs, and gives the notes that were heard beside the outcome.
    pub(crate) async fn hear(&self, input: impl Into<Input>) -> (Outcome, Vec<String>) {
        let notes = Log::default();
        let heard = notes.clone();
        let listener = move |event: &Event| {
            if let EventKind::Custom { kind, data, .. } = &event.kind
                && **kind == *NOTE
            {
                let text = data.get("text").and_then(Value::as_str);
                heard.lock().unwrap().extend(text.map(str::to_owned));
            }
        };
        let options = RunOptions {
            listener: Some(Arc::new(listener)),
            ..RunOptions::default()
        };
        let outcome = self.run(input, options).await;
        let notes = notes.lock().unwrap().clone();
        (outcome, notes)
    }

    /// Runs, if the thread takes that.
    pub(crate) async fn run_if(
        &self,
        input: impl Into<Input>,
        options: RunOptions,
    ) -> Result<Outcome, RunError> {
        let thread = ThreadKey::local("t");
        self.runner.invoke(&thread, input, options).await
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

/// The conversation in short: one line a message.
pub(crate) fn conversation(outcome: &Outcome) -> String {
    let messages: Vec<Message> = from_value(&outcome.values["messages"]).unwrap();
    let line = |message: &Message| {
        let text = message.content.text();
        let calls: Vec<String> = message
            .tool_calls
            .iter()
            .map(|call: &ToolCall| call.name.to_string())
            .collect();
        let status = message
            .status
            .map(|status| format!(" {status:?}"))
            .unwrap_or_default();
        match calls.as_slice() {
            [] => format!("{:?}{status}: {text}", message.role),
            calls => format!("{:?} calls {}", message.role, calls.join(", ")),
        }
    };
    messages.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Messages in short, all of them on one line: the ids of calls and the ids and texts of results in brackets.
pub(crate) fn sketch(messages: &[Message]) -> String {
    let one = |message: &Message| {
        let text = message.content.text();
        let calls = message.tool_calls.iter().map(|call| &*call.id);
        let invalid = message.invalid_tool_calls.iter();
        let invalid = invalid.map(|call| call.id.as_deref().unwrap_or("-"));
        let ids: Vec<&str> = calls.chain(invalid).collect();
        match message.role {
            Role::Ai if ids.is_empty() => format!("ai({text})"),
            Role::Ai => format!("ai({text})[{}]", ids.join(" ")),
            Role::Tool => {
                let id = message.tool_call_id.as_deref().unwrap_or("-");
                let text = match text.starts_with("The result of this call was never recorded") {
                    true => "unknown",
                    false => &text,
                };
                format!("{id}={text}")
            }
            role => format!("{role:?}({text})").to_lowercase(),
        }
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A graph that asks by a node of its own, as `graphs/react.yaml` does.
pub(crate) fn asking() -> String {
    let ask_user = "  ask_user:
    type: interrupt
    payload: \"${state.clarification}\"
    resume: string
    set:
      messages:
        - role: tool
          tool_call_id: \"${state.clarification.call_id}\"
          content: \"${resume}\"
      clarification: null
    then: agent
";
    let types = "types:
  Clarification:
    type: object
    required: [call_id, question]
    properties:
      call_id: { type: string }
      question: { type: string }
state:
  clarification: { type: optional<Clarification> }
";
    react("", "    routes: { clarify: ask_user }").replace("state:\n", types) + ask_user
}

/// The kinds of the questions a run waits for.
pub(crate) fn questions(outcome: &Outcome) -> Vec<String> {
    let kind = |payload: &Value| Some(payload.get("kind")?.as_str()?.to_owned());
    let payloads = outcome.interrupts.iter().map(|asked| &asked.payload);
    payloads.filter_map(kind).collect()
}

/// A model node and a tools node, with more keys for either.
pub(crate) fn react(model: &str, tools: &str) -> String {
    format!(
        "schema: graph/v1
name: bench
state:
  messages: {{ type: list<message>, reduce: messages }}
  notes: {{ type: list<string>, reduce: append }}
input: [messages]
start: agent
nodes:
  agent:
    type: model
    model: default
    tools: [probe, alone, effect, ask_clarification]
{model}
    then:
      - when: has_tool_calls(last(state.messages))
        goto: act
      - else: end
  act:
    type: tools
    tools: [probe, alone, effect, ask_clarification]
{tools}
    then: agent
"
    )
}

pub(crate) fn ask(question: &str) -> (&'static str, String) {
    call(
        "ask_clarification",
        &json!({"question": question, "clarification_type": "missing_info"}),
    )
}

pub(crate) fn text(value: &str) -> Value {
    value.into()
}
