//! Strings that are templates, and data that holds them.

use super::error::ScriptError;
use super::filters;
use crate::suggestion::suggestion;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use std::collections::BTreeSet;
use std::error::Error as _;
use std::sync::Arc;

/// The work that one template may do: about 200,000 instructions, or 13 MB of text.
const FUEL: u64 = 200_000;

/// What an expression is assigned to.
const VALUE: &str = "value";

/// All templates of a script.
pub(super) struct Templates {
    script: Arc<str>,
    env: Environment<'static>,
    /// The names that a template may use.
    known: BTreeSet<String>,
    /// The names that any template does use.
    used: BTreeSet<String>,
}

/// A template, or data with templates in it.
#[derive(Debug)]
pub(super) enum Template {
    Data(Value),
    /// A string that is one `{{ expression }}`: keeps the type of its value. A template that assigns it to [`VALUE`]
    /// stands in the environment under the place, because an expression cannot be kept beside what compiled it.
    Expression {
        place: String,
        source: String,
    },
    /// Every other string with something to fill in; its text stands in the environment under the place.
    Text {
        place: String,
    },
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Templates {
    pub(super) fn new(script: Arc<str>, known: &[&str]) -> Self {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_syntax(syntax());
        env.set_fuel(Some(FUEL));
        filters::add_to(&mut env);
        // It would print the whole request into a reply.
        env.remove_global("debug");
        let known = known.iter().map(|&name| name.to_owned());
        let known = known.chain(env.globals().map(|(name, _)| name.to_owned()));
        Self {
            known: known.collect(),
            used: BTreeSet::new(),
            script,
            env,
        }
    }

    /// Makes a name known to the templates that follow; false if it is known already.
    pub(super) fn define(&mut self, name: &str) -> bool {
        self.known.insert(name.to_owned())
    }

    pub(super) fn uses(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// Reads data whose strings are templates.
    pub(super) fn data(
        &mut self,
        place: &str,
        data: &serde_json::Value,
    ) -> Result<Template, ScriptError> {
        match data {
            serde_json::Value::String(text) => match one_expression(text) {
                Some(source) if self.env.compile_expression_owned(source.to_owned()).is_ok() => {
                    self.expression(place, source)
                }
                _ => self.text(place, text),
            },
            serde_json::Value::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(at, item)| self.data(&format!("{place}[{at}]"), item));
                Ok(Template::List(items.collect::<Result<_, _>>()?))
            }
            serde_json::Value::Object(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    Ok((key.clone(), self.data(&format!("{place}.{key}"), value)?))
                });
                Ok(Template::Map(entries.collect::<Result<_, _>>()?))
            }
            plain => Ok(Template::Data(Value::from(Serde(plain)))),
        }
    }

    /// Reads a string that gives text, whatever it is made of.
    pub(super) fn text(&mut self, place: &str, text: &str) -> Result<Template, ScriptError> {
        if !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
            return Ok(Template::Data(text.into()));
        }
        self.env
            .add_template_owned(place.to_owned(), text.to_owned())
            .map_err(|error| self.failed(place, &error))?;
        let template = self.env.get_template(place);
        let names = template
            .map_err(|error| self.failed(place, &error))?
            .undeclared_variables(false);
        self.check_names(place, names)?;
        Ok(Template::Text {
            place: place.to_owned(),
        })
    }

    /// Reads an expression.
    pub(super) fn expression(
        &mut self,
        place: &str,
        source: &str,
    ) -> Result<Template, ScriptError> {
        let names = self
            .env
            .compile_expression_owned(source.to_owned())
            .map_err(|error| self.failed(place, &error))?
            .undeclared_variables(false);
        self.check_names(place, names)?;
        self.env
            .add_template_owned(
                place.to_owned(),
                format!("{{% set {VALUE} = ({source}) %}}"),
            )
            .map_err(|error| self.failed(place, &error))?;
        Ok(Template::Expression {
            place: place.to_owned(),
            source: source.to_owned(),
        })
    }

    fn check_names(
        &mut self,
        place: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), ScriptError> {
        let names: BTreeSet<String> = names.into_iter().collect();
        if let Some(name) = names.iter().find(|name| !self.known.contains(*name)) {
            let known = self.known.iter().map(String::as_str);
            return Err(ScriptError::Template {
                script: self.script.clone(),
                place: place.to_owned(),
                message: format!("there is no `{name}` here{}", suggestion(name, known)),
            });
        }
        self.used.extend(names);
        Ok(())
    }

    /// Fills a template in.
    pub(super) fn eval(&self, template: &Template, names: &Value) -> Result<Value, ScriptError> {
        match template {
            Template::Data(value) => Ok(value.clone()),
            Template::Expression { place, source } => {
                let value = self
                    .env
                    .get_template(place)
                    .and_then(|template| template.render_captured(names.clone()))
                    .map(|captured| captured.state().lookup(VALUE).unwrap_or_default())
                    .map_err(|error| self.failed(place, &error))?;
                if value.kind() == ValueKind::Undefined {
                    return Err(ScriptError::Template {
                        script: self.script.clone(),
                        place: place.clone(),
                        message: format!("`{}` is undefined", source.trim()),
                    });
                }
                Ok(value)
            }
            Template::Text { place } => self
                .env
                .get_template(place)
                .and_then(|template| template.render(names.clone()))
                .map(Value::from)
                .map_err(|error| self.failed(place, &error)),
            Template::List(items) => {
                let items = items.iter().map(|item| self.eval(item, names));
                Ok(Value::from(items.collect::<Result<Vec<_>, _>>()?))
            }
            Template::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), self.eval(value, names)?)));
                Ok(Value::from_pairs(
                    entries.collect::<Result<Vec<_>, ScriptError>>()?,
                ))
            }
        }
    }

    fn failed(&self, place: &str, error: &minijinja::Error) -> ScriptError {
        ScriptError::Template {
            script: self.script.clone(),
            place: place.to_owned(),
            message: explain(error),
        }
    }
}

/// A block tag alone on its line leaves no line behind, and a text ends as it is written.
fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default()
}

/// What stands in a string that is `{{ ... }}` and nothing else. It may still be two expressions.
fn one_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    // `{{-` and `-}}` are about the space around, not minus signs.
    let dashed = inner.starts_with(['-', '+']) || inner.ends_with(['-', '+']);
    (!dashed).then_some(inner)
}

/// An error of minijinja with its line and causes, without the name of the template.
fn explain(error: &minijinja::Error) -> String {
    let mut message = error.kind().to_string();
    if let Some(detail) = error.detail() {
        message = format!("{message}: {detail}");
    }
    if let Some(line) = error.line().filter(|line| *line > 1) {
        message = format!("{message} (line {line} of the template)");
    }
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    message
}
