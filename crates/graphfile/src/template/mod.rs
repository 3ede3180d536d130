//! Prompts: MiniJinja with few filters, strict about what is missing.

mod check;
mod shared;

pub(crate) use check::check;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::Value as Jinja;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use crate::expr::Scene;
use shared::to_jinja;

/// Instructions a template may take; a loop over a long conversation needs a few thousand.
const FUEL: u64 = 1_000_000;
const NAME: &str = "prompt";
const FILTERS: [&str; 7] = [
    "join", "length", "default", "tojson", "trim", "upper", "lower",
];

/// A compiled prompt.
#[derive(Clone)]
pub struct Template {
    inner: Arc<Inner>,
}

struct Inner {
    env: Environment<'static>,
    /// Where the text stands: the key of the file, or the path of another one.
    place: String,
    /// The channels it names; `None` if it looks at the state as a whole.
    channels: Option<Vec<String>>,
    /// Whether it names `run`.
    asks_run: bool,
}

/// Why a prompt could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}, line {line}: {problem}")]
#[non_exhaustive]
pub struct TemplateError {
    /// The key of the file, or the path of another one.
    pub place: String,
    /// Line of the prompt, counted from 1.
    pub line: usize,
    /// What went wrong.
    pub problem: String,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.inner.place).finish()
    }
}

impl Template {
    fn compile(place: &str, text: &str) -> Result<Self, Error> {
        let mut env = Environment::empty();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_fuel(Some(FUEL));
        env.set_debug(true);
        env.set_formatter(|out, state, value| match value.is_none() {
            true => Err(Error::new(
                ErrorKind::UndefinedError,
                "this has no value to print; ask with `if`, or give it one with `default`",
            )),
            false => minijinja::escape_formatter(out, state, value),
        });
        env.add_filter("join", minijinja::filters::join);
        env.add_filter("length", minijinja::filters::length);
        env.add_filter("default", default);
        env.add_filter("tojson", tojson);
        env.add_filter("trim", minijinja::filters::trim);
        env.add_filter("upper", minijinja::filters::upper);
        env.add_filter("lower", minijinja::filters::lower);
        env.add_test("defined", |value: &Jinja| {
            !value.is_undefined() && !value.is_none()
        });
        env.add_test("none", minijinja::tests::is_none);
        env.add_template_owned(NAME, text.to_owned())?;
        let names = env.get_template(NAME)?.undeclared_variables(true);
        let (mut channels, mut asks_run) = (Some(Vec::new()), false);
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_unstable();
        for name in &names {
            match name.split('.').collect::<Vec<_>>().as_slice() {
                ["state"] => channels = None,
                ["run", ..] => asks_run = true,
                ["state", channel, ..] => {
                    if let Some(channels) = &mut channels {
                        channels.push((*channel).to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(Self {
            inner: Arc::new(Inner {
                env,
                place: place.to_owned(),
                channels,
                asks_run,
            }),
        })
    }

    /// Renders the prompt.
    ///
    /// # Errors
    /// If it prints or looks into something that has no value, or runs too long.
    pub fn render(&self, scene: &Scene<'_>) -> Result<String, TemplateError> {
        let inner = &self.inner;
        // Only what the text names is handed over, and that by reference.
        let value = |name: &str| (name.to_owned(), to_jinja(scene.channel(name).as_ref()));
        let state: BTreeMap<String, Jinja> = match &inner.channels {
            Some(names) => names.iter().map(|name| value(name)).collect(),
            None => scene.channels().names().map(value).collect(),
        };
        let mut context = BTreeMap::from([("state", Jinja::from(state))]);
        if inner.asks_run {
            context.insert("run", to_jinja(Some(&scene.facts().run())));
        }
        inner
            .env
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|error| TemplateError {
                place: inner.place.clone(),
                line: error.line().unwrap_or(1),
                problem: describe(&error),
            })
    }
}

fn describe(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "the prompt takes too long to render".to_owned(),
        (ErrorKind::UndefinedError, Some(detail)) => detail.to_owned(),
        (ErrorKind::UndefinedError, None) => "a field that is not there is used".to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

/// Gives way to another value if there is none: missing or null.
fn default(value: &Jinja, other: Option<Jinja>) -> Jinja {
    match value.is_undefined() || value.is_none() {
        true => other.unwrap_or_else(|| Jinja::from("")),
        false => value.clone(),
    }
}

/// Writes JSON as it is, for a prompt is no web page.
fn tojson(value: &Jinja) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}
