//! `type: tool`: calls one tool, without a model.

use crate::agent::Agent;
use crate::middleware::{Clarification, Middleware};
use crate::output;
use crate::tool_call::Caller;
use async_trait::async_trait;
use std::sync::Arc;
use tine_engine::message::{Content, ToolCall};
use tine_engine::{ErrorClass, Interrupt, Node, NodeCx, NodeError, Output, Update, Value};
use tine_graphfile::{CxFacts, Scene, ToolSpec};
use tine_tools::assemble::Toolbox;

pub(crate) struct ToolNode {
    spec: ToolSpec,
    caller: Caller,
}

impl ToolNode {
    pub(crate) fn new(
        spec: ToolSpec,
        agent: Agent,
        tools: Toolbox,
        chain: Arc<[Arc<dyn Middleware>]>,
    ) -> Self {
        let caller = Caller::new(agent, tools, &spec.info, chain);
        Self { spec, caller }
    }

    fn args(&self, cx: &NodeCx) -> Result<Value, NodeError> {
        let facts = CxFacts::new(cx);
        let scene = Scene::new(&facts, &self.spec.info.channels);
        self.spec
            .args
            .eval(&scene)
            .map_err(|error| NodeError::new(ErrorClass::Expression, error.to_string()))
    }
}

#[async_trait]
impl Node for ToolNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let args = self.args(&cx)?;
        let call = ToolCall {
            name: self.spec.tool.as_str().into(),
            args,
            id: cx.new_id().into(),
        };
        let folders = self.caller.agent.folders.of(cx.thread())?;
        let planned = self.caller.plan(&cx, &folders, call, 0).await?;
        let reply = self.caller.make(&cx, &planned).await;
        let reply = reply.map_err(|error| error.into_node_error(&self.spec.tool))?;
        let mut update = Update::new();
        if let Some(channel) = &self.spec.into {
            update = update.set(channel.as_str(), plain(reply.output.reply()));
        }
        let mut commands = Vec::new();
        if let Some(tool) = planned.request.tool {
            commands.extend(output::command(
                cx.node(),
                tool,
                &self.spec.info.routes,
                reply.output,
            )?);
        }
        Ok(Output { update, commands })
    }

    fn check_answer(&self, question: &Interrupt, answer: &Value) -> Result<(), String> {
        Clarification::check_answer(question, answer)
    }
}

/// The result without a model: JSON that came as text is the JSON.
fn plain(content: Option<Content>) -> Value {
    match content {
        None => Value::Null,
        Some(Content::Blocks(blocks)) => blocks.into(),
        Some(Content::Text(text)) => serde_json::from_str(&text)
            .ok()
            .filter(|json: &Value| json.as_list().is_some() || json.as_map().is_some())
            .unwrap_or(Value::Text(text)),
    }
}
