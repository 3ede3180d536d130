//! Replies by rules: what a [`ScriptedModel`](crate::ScriptedModel) says. See [the chapter on scripts](crate#scripts).

mod error;
mod filters;
mod names;
mod spec;
mod template;
#[cfg(test)]
mod tests;

pub use error::ScriptError;
pub use spec::{CallSpec, RuleSpec, ScriptSpec};

use crate::request::ModelRequest;
use minijinja::value::Value;
use std::fmt;
use std::sync::Arc;
use template::{Template, Templates};
use tine_engine::message::Role;

/// The format of scripts that this program reads.
pub const SCHEMA: &str = "script/v1";

/// A checked script.
pub struct Script {
    name: Arc<str>,
    templates: Templates,
    names: Vec<(String, Template)>,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    node: Option<String>,
    visit: Option<u64>,
    when: Option<Template>,
    content: Option<Template>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    name: Template,
    args: Template,
}

/// What a script says to one request.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptReply {
    /// The text.
    pub content: String,
    /// Names and arguments of the tools it calls.
    pub calls: Vec<(Arc<str>, tine_engine::Value)>,
    /// The number of the rule that said it, counted from 1.
    pub rule: usize,
}

impl Script {
    /// Reads and checks YAML or JSON. `name` is what messages call the script: its path.
    ///
    /// # Errors
    /// If the text can not be read, or [`Script::new`] refuses what it says.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        Self::new(name, &ScriptSpec::parse(name, text)?)
    }

    /// Checks a script.
    ///
    /// # Errors
    /// If the schema is another one, a rule replies nothing or is never reached, a template is not well formed, or a template uses a name
    /// that is not there.
    pub fn new(name: &str, spec: &ScriptSpec) -> Result<Self, ScriptError> {
        let name: Arc<str> = name.into();
        if spec.schema != SCHEMA {
            return Err(ScriptError::Schema {
                script: name,
                found: spec.schema.clone(),
            });
        }
        let mut templates = Templates::new(name.clone(), &names::GIVEN);
        let mut lets = Vec::with_capacity(spec.names.len());
        for (key, value) in &spec.names {
            let place = format!("let.{key}");
            let template = templates.data(&place, value)?;
            if !templates.define(key) {
                return Err(invalid(&name, place, "the name is taken"));
            }
            lets.push((key.clone(), template));
        }
        for (at, rule) in spec.rules.iter().enumerate() {
            let earlier = spec.rules.iter().take(at);
            if let Some(first) = earlier.into_iter().position(|first| first.covers(rule)) {
                let message = format!(
                    "the rule never replies, because rule {} fits all its requests; \
                     put it first, or give it other conditions",
                    first + 1
                );
                return Err(invalid(&name, format!("rule {}", at + 1), message));
            }
        }
        let rules = spec.rules.iter().enumerate();
        let rules = rules.map(|(at, rule)| Rule::new(&name, at, rule, &mut templates));
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            names: lets,
            templates,
            name,
        })
    }

    /// The name: its path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the reply of the first rule that fits the request.
    ///
    /// # Errors
    /// If no rule fits, or a template that is needed fails.
    pub fn reply(&self, request: &ModelRequest) -> Result<ScriptReply, ScriptError> {
        let mut named = names::given(request, self.templates.uses("messages"));
        for (name, template) in &self.names {
            let value = self
                .templates
                .eval(template, &Value::from_pairs(named.clone()))?;
            named.insert(name.clone(), value);
        }
        let names = Value::from_pairs(named);
        let mut refused = Vec::with_capacity(self.rules.len());
        for (at, rule) in self.rules.iter().enumerate() {
            match self.misfit(at, rule, request, &names)? {
                Some(why) => refused.push(why),
                None => return self.say(at, rule, &names),
            }
        }
        Err(ScriptError::NoRule {
            script: self.name.clone(),
            seen: describe(request),
            rules: refused,
        })
    }

    /// Why a rule does not fit; `None` if it does.
    fn misfit(
        &self,
        at: usize,
        rule: &Rule,
        request: &ModelRequest,
        names: &Value,
    ) -> Result<Option<String>, ScriptError> {
        if let Some(node) = rule
            .node
            .as_ref()
            .filter(|node| **node != *request.site.node)
        {
            return Ok(Some(format!("is for node `{node}`")));
        }
        if let Some(visit) = rule.visit.filter(|visit| *visit != request.site.visit) {
            return Ok(Some(format!("is for visit {visit}")));
        }
        let Some(when) = &rule.when else {
            return Ok(None);
        };
        let truth = self.templates.eval(when, names)?;
        match bool::try_from(truth.clone()) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some("its `when` is false".to_owned())),
            Err(_) => Err(ScriptError::NotBoolean {
                script: self.name.clone(),
                place: format!("rule {}, when", at + 1),
                found: format!("a {}", truth.kind()),
            }),
        }
    }

    fn say(&self, at: usize, rule: &Rule, names: &Value) -> Result<ScriptReply, ScriptError> {
        let eval = |template| self.templates.eval(template, names);
        let content = rule.content.as_ref().map(eval).transpose()?;
        let calls = rule.calls.iter().enumerate().map(|(nth, call)| {
            let wrong = |message| invalid(&self.name, place(at, nth, "args"), message);
            let args = tine_engine::to_value(&eval(&call.args)?)
                .map_err(|error| wrong(error.to_string()))?;
            if args.as_map().is_none() {
                return Err(wrong(format!("arguments are a map, not {}", args.kind())));
            }
            Ok((eval(&call.name)?.to_string().into(), args))
        });
        Ok(ScriptReply {
            content: content.map(|text| text.to_string()).unwrap_or_default(),
            calls: calls.collect::<Result<_, _>>()?,
            rule: at + 1,
        })
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Script")
            .field("name", &self.name)
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}

impl Rule {
    fn new(
        script: &Arc<str>,
        at: usize,
        spec: &RuleSpec,
        templates: &mut Templates,
    ) -> Result<Self, ScriptError> {
        let rule = format!("rule {}", at + 1);
        if spec.content.is_none() && spec.tool_calls.is_empty() {
            return Err(invalid(
                script,
                rule,
                "the rule replies nothing; give it `content` or `tool_calls`",
            ));
        }
        if spec.visit == Some(0) {
            return Err(invalid(
                script,
                format!("{rule}, visit"),
                "visits count from 1",
            ));
        }
        let when = spec.when.as_deref();
        let when = when.map(|source| templates.expression(&format!("{rule}, when"), source));
        let content = spec.content.as_deref();
        let content = content.map(|text| templates.text(&format!("{rule}, content"), text));
        let calls = spec.tool_calls.iter().enumerate().map(|(nth, call)| {
            let args = match &call.args {
                Some(args) => templates.data(&place(at, nth, "args"), args)?,
                None => Template::Map(Vec::new()),
            };
            let name = templates.text(&place(at, nth, "name"), &call.name)?;
            Ok(Call { name, args })
        });
        Ok(Self {
            node: spec.node.clone(),
            visit: spec.visit,
            calls: calls.collect::<Result<_, ScriptError>>()?,
            when: when.transpose()?,
            content: content.transpose()?,
        })
    }
}

fn place(rule: usize, call: usize, field: &str) -> String {
    format!("rule {}, tool_calls[{call}].{field}", rule + 1)
}

fn invalid(script: &Arc<str>, place: String, message: impl Into<String>) -> ScriptError {
    ScriptError::Invalid {
        script: script.clone(),
        place,
        message: message.into(),
    }
}

/// A request in a line.
fn describe(request: &ModelRequest) -> String {
    let last = match request.messages.last() {
        None => "no message".to_owned(),
        Some(message) => {
            let who = match (message.role, &message.name) {
                (Role::Human, _) => "of the user".to_owned(),
                (Role::Ai, _) => "of the model".to_owned(),
                (Role::System, _) => "of the system".to_owned(),
                (Role::Tool, Some(name)) => format!("of the tool `{name}`"),
                (Role::Tool, None) => "of a tool".to_owned(),
            };
            let text = message.content.text();
            let short: String = text.chars().take(80).collect();
            let dots = if short.len() < text.len() { "..." } else { "" };
            let count = request.messages.len();
            let s = if count == 1 { "" } else { "s" };
            format!("{count} message{s}, the last {who}: {short:?}{dots}")
        }
    };
    format!(
        "node `{}`, visit {}, {last}",
        request.site.node, request.site.visit
    )
}
