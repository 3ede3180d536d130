//! `type: model`: asks a model.

use crate::cut_off::{self, Said};
use crate::events;
use crate::history::{self, LeftOut};
use crate::middleware::{Meter, Middleware, ModelCall, ModelNext};
use crate::output::cut;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;
use tine_engine::checkpoint::CallState;
use tine_engine::message::{MessageError, Role};
use tine_engine::run::{Call, Effects};
use tine_engine::{
    ErrorClass, Message, Node, NodeCx, NodeError, Output, Spend, Update, Value, from_value,
    to_value,
};
use tine_graphfile::{CxFacts, ModelSpec, ReturnsSpec, Scene, Template};
use tine_models::{
    CallSite, Model, ModelRequest, Params, Pricing, ResponseSchema, ToolChoice, ToolSchema,
};
use tine_tools::assemble::Toolbox;

pub(crate) struct ModelNode {
    spec: ModelSpec,
    model: Arc<dyn Model>,
    pricing: Option<Pricing>,
    tools: Vec<ToolSchema>,
    chain: Arc<[Arc<dyn Middleware>]>,
}

impl ModelNode {
    pub(crate) fn new(
        spec: ModelSpec,
        model: Arc<dyn Model>,
        pricing: Option<Pricing>,
        tools: &Toolbox,
        chain: Arc<[Arc<dyn Middleware>]>,
    ) -> Self {
        let schema = |tool: &tine_tools::assemble::BoundTool| ToolSchema {
            name: tool.name().into(),
            description: tool.spec().description.as_str().into(),
            parameters: tool.spec().args.value().clone(),
        };
        Self {
            tools: tools.iter().map(schema).collect(),
            spec,
            model,
            pricing,
            chain,
        }
    }

    /// What the model is asked.
    fn prepare(&self, cx: &NodeCx) -> Result<Prepared, NodeError> {
        let spec = &self.spec;
        let facts = CxFacts::new(cx);
        let scene = Scene::new(&facts, &spec.info.channels);
        let render = |template: &Option<Template>| match template {
            Some(template) => template.render(&scene).map(Some).map_err(expression),
            None => Ok(None),
        };
        let mut entries = match &spec.messages {
            Some(channel) => conversation(cx, channel),
            None => Vec::new(),
        };
        let known = entries.len();
        let asks = !spec.prompt_once || cx.visits() <= 1;
        let turn = if asks {
            let text = render(&spec.prompt)?.filter(|text| !text.trim().is_empty());
            text.map(|text| Message::human(text).with_id(cx.new_id()))
        } else {
            None
        };
        entries.extend(turn.clone().map(Ok));
        // Each run tells it once: its first request all of it, later ones what came with or since the last reply.
        let new = if cx.visits() <= 1 {
            0
        } else {
            entries[..known].iter().rposition(is_reply).unwrap_or(0)
        };
        let history = history::valid(entries);
        let params = serde_json::from_value::<Params>(spec.params.to_json());
        let mut request = ModelRequest {
            system: render(&spec.system)?.map(Into::into),
            messages: history.messages,
            tools: self.tools.clone(),
            tool_choice: match &spec.tool_choice {
                tine_graphfile::ToolChoice::Auto => ToolChoice::Auto,
                tine_graphfile::ToolChoice::None => ToolChoice::None,
                tine_graphfile::ToolChoice::Required => ToolChoice::Required,
                tine_graphfile::ToolChoice::Tool(name) => ToolChoice::Tool(name.as_str().into()),
            },
            params: params.map_err(|error| {
                NodeError::new(ErrorClass::Internal, format!("`params`: {error}"))
            })?,
            response_schema: spec
                .returns
                .as_ref()
                .filter(|returns| !returns.shape.is_text())
                .map(|returns| ResponseSchema {
                    name: returns.into.as_str().into(),
                    schema: returns.shape.schema(),
                }),
            site: CallSite {
                node: cx.node().clone(),
                visit: cx.visits(),
            },
        };
        history::instruct(&mut request, history.instructions);
        if request.system.is_none() && request.messages.is_empty() {
            return Err(self.nothing_to_ask());
        }
        Ok(Prepared {
            request,
            turn,
            left_out: history.left_out.since(new),
        })
    }

    /// No provider takes a request without any message.
    fn nothing_to_ask(&self) -> NodeError {
        let channel = match &self.spec.messages {
            Some(channel) => format!("`{channel}` holds no message with content, and "),
            None => String::new(),
        };
        NodeError::new(
            ErrorClass::Internal,
            format!(
                "there is nothing to ask the model: {channel}the node has no `system` and no `prompt` that says something"
            ),
        )
    }

    async fn ask(
        &self,
        cx: &NodeCx,
        mut request: ModelRequest,
        said: &Said,
    ) -> Result<Message, NodeError> {
        for middleware in self.chain.iter() {
            middleware.before_model(cx, &mut request).await?;
        }
        cut_off::drop_kept(cx).await?;
        said.keep(cx);
        let meter = Meter::new(self.pricing.clone());
        let next = ModelNext {
            said,
            meter: &meter,
            chain: &self.chain,
            model: &*self.model,
            stream: self.spec.stream,
        };
        // Of a request nobody knows the tokens beforehand.
        let most = Spend::tokens(request.params.max_tokens.unwrap_or(0));
        let reserved = cx.reserve(most)?;
        let call = ModelCall {
            cx: cx.clone(),
            request,
        };
        let reply = next.run(call).await;
        match (meter.spent(), &reply) {
            // It was not done, as far as anybody heard.
            (spent, Err(_)) if spent.is_zero() => reserved.release(),
            (spent, _) => reserved.settle(spent).await?,
        }
        let reply = reply.map_err(tine_models::ModelError::into_node_error)?;
        if reply.finish.is_cut_off() {
            events::cut_off(cx, &reply.finish);
        }
        let cost = match (&self.pricing, &reply.usage) {
            (Some(prices), Some(usage)) => Some(Cost {
                currency: &prices.currency,
                micros: prices.cost_micros(usage),
            }),
            _ => None,
        };
        let mut message = reply.into_message();
        if let Some(cost) = cost {
            cost.note(&mut message);
        }
        for middleware in self.chain.iter().rev() {
            middleware.after_model(cx, &mut message).await?;
        }
        identify(cx, &mut message);
        Ok(message)
    }
}

/// A request, and what becomes of it beside the reply.
struct Prepared {
    request: ModelRequest,
    /// The turn that the prompt adds to the conversation.
    turn: Option<Message>,
    /// What people are to be told that it does not hold.
    left_out: LeftOut,
}

#[async_trait]
impl Node for ModelNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let Prepared {
            request,
            turn,
            left_out,
        } = self.prepare(&cx)?;
        // A paid reply is not asked for again because a router failed after it. Another request is another call.
        let call = asking(&request)?;
        let said = Said::default();
        let heard = said.clone();
        let reply = cx.call(&call, Effects::ReadOnly, |cx| async move {
            if !left_out.is_empty() {
                events::left_out(&cx, &left_out);
            }
            let message = self.ask(&cx, request, &heard).await?;
            // A reply that does not fit is not recorded, so that a retry asks anew.
            if let Some(returns) = &self.spec.returns {
                if self.spec.tools.is_empty() {
                    only_data(&message)?;
                }
                structured(returns, &message)?;
            }
            Ok(to_value(&message)?)
        });
        let message: Message = from_value(&reply.await?)?;
        // What came of it is recorded as a whole.
        said.forget();
        let message = message.with_id(cx.new_id());
        let mut update = Update::new();
        if let Some(returns) = &self.spec.returns {
            update = update.set(returns.into.as_str(), structured(returns, &message)?);
        }
        if let Some(channel) = &self.spec.messages {
            let written: Vec<Value> = turn
                .iter()
                .chain([&message])
                .map(to_value)
                .collect::<Result<_, _>>()?;
            update = update.set(channel.as_str(), written);
        }
        Ok(update.into())
    }

    /// Leaves what the model said, or was saying when its run was cancelled, for people saw it. None of its calls was
    /// made, so none is left.
    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        let Some(channel) = &self.spec.messages else {
            return Ok(Update::new());
        };
        // A prompt that can not be rendered any more is no reason to refuse the input.
        let prepared = self.prepare(&cx).ok();
        let whole = match &prepared {
            Some(prepared) => replied(&cx, &prepared.request)?,
            None => None,
        };
        let Some(said) = whole.or_else(|| cut_off::kept(&cx)) else {
            return Ok(Update::new());
        };
        let turn = prepared.and_then(|prepared| prepared.turn);
        let said = said.with_id(cx.new_id());
        let written: Vec<Value> = turn
            .iter()
            .chain([&said])
            .map(to_value)
            .collect::<Result<_, _>>()?;
        Ok(Update::new().set(channel.as_str(), written))
    }
}

/// The entry of a request in the journal. Another request is another call.
fn asking(request: &ModelRequest) -> Result<Call, NodeError> {
    Ok(Call::new("model", &fingerprint(request)?).keyed_by_input())
}

/// What was replied to a request whose task did not come to its end, without calls; `None` if that was no text.
fn replied(cx: &NodeCx, request: &ModelRequest) -> Result<Option<Message>, NodeError> {
    let Some(CallState::Done(reply)) = cx.recorded(&asking(request)?) else {
        return Ok(None);
    };
    let mut message: Message = from_value(&reply)?;
    message.tool_calls.clear();
    message.invalid_tool_calls.clear();
    Ok((!message.content.is_empty()).then_some(message))
}

/// What a reply cost.
struct Cost<'a> {
    currency: &'a Arc<str>,
    micros: u64,
}

impl Cost<'_> {
    /// Writes it into the reply's message.
    fn note(&self, message: &mut Message) {
        let cost = Value::from_pairs([
            ("currency", Value::Text(self.currency.clone())),
            ("micros", self.micros.into()),
        ]);
        let known = message.response_metadata.take();
        let mut metadata = match known {
            Some(Value::Map(map)) => (*map).clone(),
            _ => tine_engine::value::Map::new(),
        };
        metadata.insert("cost".into(), cost);
        message.response_metadata = Some(metadata.into());
    }
}

/// What tells requests apart.
fn fingerprint(request: &ModelRequest) -> Result<Value, NodeError> {
    let system = request.system.clone().map_or(Value::Null, Value::Text);
    Ok(Value::from_pairs([
        ("system", system),
        ("messages", to_value(&request.messages)?),
        ("tools", to_value(&request.tools)?),
    ]))
}

/// The entries of the conversation that a channel holds.
fn conversation(cx: &NodeCx, channel: &str) -> Vec<Result<Message, MessageError>> {
    let value = cx.value(channel);
    let items = value.as_ref().and_then(Value::as_list);
    let entries = items.into_iter().flat_map(|items| items.iter());
    entries.map(Message::from_value).collect()
}

fn is_reply(entry: &Result<Message, MessageError>) -> bool {
    entry.as_ref().is_ok_and(|message| message.role == Role::Ai)
}

/// The last message of the conversation that a channel holds, unless that is none; the others are not looked at.
pub(crate) fn last_message(cx: &NodeCx, channel: &str) -> Option<Message> {
    let value = cx.value(channel);
    let items = value.as_ref().and_then(Value::as_list)?;
    Message::from_value(items.last()?).ok()
}

/// Gives each call of a reply an id of its own, so that it can be answered.
fn identify(cx: &NodeCx, message: &mut Message) {
    let mut taken = BTreeSet::new();
    let mut own = |id: Option<Arc<str>>| {
        let id = id
            .filter(|id| !id.trim().is_empty() && !taken.contains(id))
            .unwrap_or_else(|| cx.new_id().into());
        taken.insert(id.clone());
        id
    };
    for call in &mut message.tool_calls {
        call.id = own(Some(call.id.clone()));
    }
    for call in &mut message.invalid_tool_calls {
        call.id = Some(own(call.id.clone()));
    }
}

/// Refuses a reply without words that calls tools of which none were offered.
fn only_data(message: &Message) -> Result<(), NodeError> {
    match message.tool_calls.first() {
        Some(call) if message.content.text().is_empty() => Err(NodeError::new(
            ErrorClass::InvalidOutput,
            format!(
                "the model only called `{}`, and this node offers no tools",
                call.name
            ),
        )),
        _ => Ok(()),
    }
}

/// How many characters of a reply that does not fit are shown.
const SHOWN: usize = 200;

/// The data that a reply is to be.
fn structured(returns: &ReturnsSpec, message: &Message) -> Result<Value, NodeError> {
    let text = message.content.text();
    if returns.shape.is_text() {
        return Ok(text.into());
    }
    let invalid = |problem: String| {
        let name = returns.shape.name();
        NodeError::new(
            ErrorClass::InvalidOutput,
            format!("the model was to reply with a {name}: {problem}"),
        )
    };
    let json: Value = serde_json::from_str(unfenced(&text))
        .map_err(|error| invalid(format!("{error} in {:?}", cut(&text, SHOWN))))?;
    returns
        .shape
        .accept(json)
        .map_err(|error| invalid(error.to_string()))
}

/// The text without the code fence that models like to put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"));
    inner.map_or(text, |inner| {
        inner.strip_prefix("json").unwrap_or(inner).trim()
    })
}

fn expression(error: impl std::fmt::Display) -> NodeError {
    NodeError::new(ErrorClass::Expression, error.to_string())
}
