//! The kinds of nodes that graph files get from an agent.

use crate::agent::Agent;
use crate::call_node::CallNode;
use crate::middleware::{Approval, Clarification, ErrorReplies, Middleware};
use crate::model_node::ModelNode;
use crate::tool_node::ToolNode;
use crate::tools_node::ToolsNode;
use std::sync::Arc;
use tine_engine::Node;
use tine_graphfile::{CallSpec, ModelSpec, NodeKinds, OnToolError, ToolSpec, ToolsSpec};
use tine_tools::assemble::Toolbox;

impl Agent {
    /// The chain around the tool calls of one node, outermost first: what the host added, then errors, approvals and
    /// questions. Errors stand outside, so that they see what the others refuse.
    fn chain(&self, on_error: OnToolError, ask_before: &[String]) -> Arc<[Arc<dyn Middleware>]> {
        let mut chain = self.middleware.clone();
        if on_error == OnToolError::Reply {
            chain.push(Arc::new(ErrorReplies));
        }
        if !ask_before.is_empty() {
            chain.push(Arc::new(Approval::before(ask_before.iter().cloned())));
        }
        chain.push(Arc::new(Clarification));
        chain.into()
    }

    /// The tools of these names, or the name of one that is not there.
    fn select(&self, names: &[String]) -> Result<Toolbox, String> {
        if let Some(name) = names.iter().find(|name| self.toolbox.get(name).is_none()) {
            let near = self
                .toolbox
                .nearest(name)
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(format!("there is no tool `{name}`{near}"));
        }
        Ok(self
            .toolbox
            .filtered(|tool| names.iter().any(|name| name == tool.name())))
    }
}

impl NodeKinds for Agent {
    fn model(&self, spec: ModelSpec) -> Result<Arc<dyn Node>, String> {
        let Some(model) = self.models.get(&spec.model) else {
            return Err(format!("there is no model `{}`", spec.model));
        };
        let tools = self.select(&spec.tools)?;
        let pricing = self.pricing.get(&spec.model).cloned();
        Ok(Arc::new(ModelNode::new(
            spec,
            model.clone(),
            pricing,
            &tools,
            self.middleware.clone().into(),
        )))
    }

    fn tools(&self, spec: ToolsSpec) -> Result<Arc<dyn Node>, String> {
        let tools = self.select(&spec.tools)?;
        let chain = self.chain(spec.on_tool_error, &spec.ask_before);
        Ok(Arc::new(ToolsNode::new(spec, self.clone(), tools, chain)))
    }

    fn tool(&self, spec: ToolSpec) -> Result<Arc<dyn Node>, String> {
        let tools = self.select(std::slice::from_ref(&spec.tool))?;
        let chain = self.chain(OnToolError::Fail, &[]);
        Ok(Arc::new(ToolNode::new(spec, self.clone(), tools, chain)))
    }

    fn call(&self, spec: CallSpec) -> Result<Arc<dyn Node>, String> {
        let Some(function) = self.functions.get(&spec.function) else {
            return Err(format!("there is no function `{}`", spec.function));
        };
        Ok(Arc::new(CallNode::new(spec, function)))
    }
}
