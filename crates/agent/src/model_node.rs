//! `type: model`: asks a model.

use crate::cut_off::{self, Said};
use crate::history;
use crate::middleware::{Middleware, ModelCall, ModelNext};
use async_trait::async_trait;
use std::sync::Arc;
use tine_engine::run::{Call, Effects};
use tine_engine::{
    ErrorClass, Message, Node, NodeCx, NodeError, Output, Update, Value, from_value, to_value,
};
use tine_graphfile::{CxFacts, ModelSpec, ReturnsSpec, Scene, Template};
use tine_models::{CallSite, Model, ModelRequest, Params, ResponseSchema, ToolChoice, ToolSchema};
use tine_tools::assemble::Toolbox;

pub(crate) struct ModelNode {
    spec: ModelSpec,
    model: Arc<dyn Model>,
    tools: Vec<ToolSchema>,
    chain: Arc<[Arc<dyn Middleware>]>,
}

impl ModelNode {
    pub(crate) fn new(
        spec: ModelSpec,
        model: Arc<dyn Model>,
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
            chain,
        }
    }

    /// The request, and the turn that the prompt adds to the conversation.
    fn request(&self, cx: &NodeCx) -> Result<(ModelRequest, Option<Message>), NodeError> {
        let spec = &self.spec;
        let facts = CxFacts::new(cx);
        let scene = Scene::new(&facts, &spec.info.channels);
        let render = |template: &Option<Template>| match template {
            Some(template) => template.render(&scene).map(Some).map_err(expression),
            None => Ok(None),
        };
        let mut messages = match &spec.messages {
            Some(channel) => conversation(cx, channel)?,
            None => Vec::new(),
        };
        let asks = !spec.prompt_once || cx.visits() <= 1;
        let turn = if asks {
            render(&spec.prompt)?.map(|text| Message::human(text).with_id(cx.new_id()))
        } else {
            None
        };
        messages.extend(turn.clone());
        let params = serde_json::from_value::<Params>(spec.params.to_json());
        let request = ModelRequest {
            system: render(&spec.system)?.map(Into::into),
            messages: history::valid(messages),
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
        Ok((request, turn))
    }

    async fn ask(&self, cx: &NodeCx, mut request: ModelRequest) -> Result<Message, NodeError> {
        for middleware in self.chain.iter() {
            middleware.before_model(cx, &mut request).await?;
        }
        cut_off::drop_kept(cx).await?;
        let said = Said::default();
        said.keep(cx);
        let next = ModelNext {
            said: &said,
            chain: &self.chain,
            model: &*self.model,
            stream: self.spec.stream,
        };
        let call = ModelCall {
            cx: cx.clone(),
            request,
        };
        let reply = next
            .run(call)
            .await
            .map_err(tine_models::ModelError::into_node_error)?;
        // What comes of a whole reply is recorded as a whole.
        said.forget();
        let mut message = reply.into_message();
        for middleware in self.chain.iter().rev() {
            middleware.after_model(cx, &mut message).await?;
        }
        Ok(message)
    }
}

#[async_trait]
impl Node for ModelNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let (request, turn) = self.request(&cx)?;
        // A paid reply is not asked for again because a router failed after it. Another request is another call.
        let call = Call::new("model", &fingerprint(&request)?).keyed_by_input();
        let reply = cx.call(&call, Effects::ReadOnly, |cx| async move {
            let message = self.ask(&cx, request).await?;
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

    /// Leaves what the model was saying when its run was cancelled, for people saw it.
    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        let (Some(channel), Some(said)) = (&self.spec.messages, cut_off::kept(&cx)) else {
            return Ok(Update::new());
        };
        // A prompt that can not be rendered any more is no reason to refuse the input.
        let turn = self.request(&cx).ok().and_then(|(_, turn)| turn);
        let said = said.with_id(cx.new_id());
        let written: Vec<Value> = turn
            .iter()
            .chain([&said])
            .map(to_value)
            .collect::<Result<_, _>>()?;
        Ok(Update::new().set(channel.as_str(), written))
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

/// The conversation that a channel holds.
fn conversation(cx: &NodeCx, channel: &str) -> Result<Vec<Message>, NodeError> {
    let Some(value) = cx.value(channel) else {
        return Ok(Vec::new());
    };
    let items = value.as_list().cloned().unwrap_or_default();
    items.iter().map(|item| read(channel, item)).collect()
}

/// The last message of the conversation that a channel holds; the others are not looked at.
pub(crate) fn last_message(cx: &NodeCx, channel: &str) -> Result<Option<Message>, NodeError> {
    let value = cx.value(channel);
    let items = value.as_ref().and_then(Value::as_list);
    let last = items.and_then(|items| items.last());
    last.map(|item| read(channel, item)).transpose()
}

fn read(channel: &str, item: &Value) -> Result<Message, NodeError> {
    Message::from_value(item).map_err(|error| {
        NodeError::new(
            ErrorClass::Internal,
            format!("channel `{channel}` holds what is no message: {error}"),
        )
    })
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
        .map_err(|error| invalid(format!("{error} in {text:?}")))?;
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
