//! The channels of a file: types, reducers, defaults.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_yaml::Value as Yaml;
use tine_engine::channel::{
    Add, Append, Dedupe, Extreme, Last, Merge, Messages, Newest, Promoted, Same, Upsert,
};
use tine_engine::{ChannelSpec, Check, Reducer, Value};

use crate::diag::{Diagnostic, G004, G102, G104, G106, G205, G207};
use crate::graph::Keep;
use crate::host::Registry;
use crate::report::{Report, nearest, one_of};
use crate::spec::{ChannelKeys, decode};
use crate::syntax::At;
use crate::types::{Type, Types, parse};
use crate::value::from_yaml;

const REDUCERS: [&str; 12] = [
    "last", "newest", "same", "append", "dedupe", "upsert", "merge", "add", "max", "min",
    "messages", "promoted",
];

/// A channel as the file declares it.
#[derive(Clone, Debug)]
pub(crate) struct ChannelPlan {
    pub(crate) kind: Type,
    pub(crate) reduce: Reduce,
    pub(crate) keep: Keep,
    pub(crate) default: Option<Value>,
}

/// A reducer with its options.
#[derive(Clone, Debug)]
pub(crate) enum Reduce {
    Last,
    Newest,
    Same,
    Append,
    Dedupe { by: Option<String> },
    Upsert(UpsertKeys),
    Merge,
    Add,
    Max,
    Min,
    Messages,
    Promoted,
    Custom(Arc<dyn Reducer>),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpsertKeys {
    key: String,
    #[serde(rename = "move")]
    moves: Option<MoveTo>,
    max: Option<usize>,
    #[serde(rename = "final")]
    finals: Option<FinalKeys>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MoveTo {
    End,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct FinalKeys {
    field: String,
    values: Vec<Yaml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DedupeKeys {
    by: Option<String>,
}

impl Reduce {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Last => "last",
            Self::Newest => "newest",
            Self::Same => "same",
            Self::Append => "append",
            Self::Dedupe { .. } => "dedupe",
            Self::Upsert(_) => "upsert",
            Self::Merge => "merge",
            Self::Add => "add",
            Self::Max => "max",
            Self::Min => "min",
            Self::Messages => "messages",
            Self::Promoted => "promoted",
            Self::Custom(reducer) => reducer.name(),
        }
    }

    /// Tells whether a second write in one step is a conflict.
    pub(crate) fn single_write(&self) -> bool {
        match self {
            Self::Last => true,
            Self::Custom(reducer) => reducer.single_write(),
            _ => false,
        }
    }

    /// Tells whether a write is one item or a list of items.
    pub(crate) fn takes_items(&self) -> bool {
        matches!(
            self,
            Self::Append | Self::Dedupe { .. } | Self::Upsert(_) | Self::Messages
        )
    }

    /// Tells whether null may be written whatever the type is.
    fn null_keeps(&self) -> bool {
        matches!(self, Self::Newest | Self::Same)
    }

    /// Tells whether such a channel has a value before the first write.
    pub(crate) fn has_empty(&self) -> bool {
        self.takes_items() || matches!(self, Self::Merge | Self::Add)
    }

    fn build(&self) -> Arc<dyn Reducer> {
        match self {
            Self::Last => Arc::new(Last),
            Self::Newest => Arc::new(Newest),
            Self::Same => Arc::new(Same),
            Self::Append => Arc::new(Append),
            Self::Dedupe { by: None } => Arc::new(Dedupe::default()),
            Self::Dedupe { by: Some(field) } => Arc::new(Dedupe::by(field.as_str())),
            Self::Upsert(keys) => {
                let mut upsert = Upsert::by(keys.key.as_str());
                upsert.move_to_end = keys.moves.is_some();
                upsert.max = keys.max;
                upsert.final_when = keys.finals.as_ref().map(|finals| {
                    (
                        finals.field.as_str().into(),
                        finals.values.iter().map(from_yaml).collect(),
                    )
                });
                Arc::new(upsert)
            }
            Self::Merge => Arc::new(Merge),
            Self::Add => Arc::new(Add),
            Self::Max => Arc::new(Extreme::Max),
            Self::Min => Arc::new(Extreme::Min),
            Self::Messages => Arc::new(Messages),
            Self::Promoted => Arc::new(Promoted),
            Self::Custom(reducer) => Arc::clone(reducer),
        }
    }
}

impl ChannelPlan {
    /// Returns the type a write of `yaml` has to be of.
    pub(crate) fn write_type(&self, types: &Types, yaml: &Yaml) -> Type {
        match types.plain(&self.kind) {
            Type::List(list) if self.reduce.takes_items() && !yaml.is_sequence() => {
                let text = yaml.as_str().unwrap_or_default();
                // What an expression gives is known later: it may be an item or a list of them.
                if text.starts_with("${") {
                    Type::Any
                } else {
                    list.items.clone()
                }
            }
            _ if self.reduce.null_keeps() => Type::optional(self.kind.clone()),
            _ => self.kind.clone(),
        }
    }

    pub(crate) fn spec(&self, types: &Arc<Types>) -> ChannelSpec {
        ChannelSpec {
            reducer: self.reduce.build(),
            keep: match self.keep {
                Keep::Thread => tine_engine::Keep::Thread,
                Keep::Run => tine_engine::Keep::Run,
                Keep::Step => tine_engine::Keep::Step,
            },
            default: self.default.clone(),
            check: Some(Arc::new(WriteCheck {
                plan: self.clone(),
                types: Arc::clone(types),
            })),
            type_name: self.kind.to_string().into(),
        }
    }
}

/// Checks every write against the type of its channel.
struct WriteCheck {
    plan: ChannelPlan,
    types: Arc<Types>,
}

impl Check for WriteCheck {
    fn check(&self, write: &Value) -> Result<(), String> {
        let (kind, types) = (&self.plan.kind, &self.types);
        let checked = match (&self.plan.reduce, types.plain(kind), write) {
            // Messages have a form of their own, which the reducer checks as it brings them into it.
            (Reduce::Messages | Reduce::Custom(_), ..) => Ok(()),
            (reduce, _, Value::Null) if reduce.null_keeps() => Ok(()),
            (reduce, Type::List(list), item)
                if reduce.takes_items() && item.as_list().is_none() =>
            {
                types.check(&list.items, item)
            }
            // An update of a merged record need not have all its fields.
            (Reduce::Merge, Type::Object(object), Value::Map(entries)) => entries
                .iter()
                .try_for_each(|(key, value)| match object.fields.get(&**key) {
                    Some(field) => types.check(&field.kind, value),
                    None => Ok(()),
                }),
            _ => types.check(kind, write),
        };
        checked.map_err(|wrong| wrong.to_string())
    }
}

/// Reads `state`.
pub(super) fn read_channels(
    report: &mut Report<'_>,
    sources: &IndexMap<String, Yaml>,
    types: &Types,
    registry: &Registry,
) -> IndexMap<String, ChannelPlan> {
    let at = At::root().key("state");
    let mut channels = IndexMap::new();
    for (name, yaml) in sources {
        let place = at.key(name);
        check_name(report, &place, "channel", name, &["state", "run"]);
        let keys = match yaml {
            // `name: string` is what one writes first; it is one edit away from right.
            Yaml::String(text) => {
                let finding = Diagnostic::new(&G004, format!("channel `{name}` is no mapping"))
                    .at(report.value(&place), "expected the keys of a channel")
                    .help(format!("write `{name}: {{ type: {text} }}`"));
                report.push(finding);
                None
            }
            yaml => decode::<ChannelKeys>(report, &place, yaml, &[]),
        };
        let Some(keys) = keys else {
            // Known by name, so that its uses are not reported as well.
            let (kind, reduce) = (Type::Any, Reduce::Newest);
            let plan = ChannelPlan {
                kind,
                reduce,
                keep: Keep::Thread,
                default: None,
            };
            channels.insert(name.clone(), plan);
            continue;
        };
        let kind = read_type(report, &place.key("type"), &keys.kind, types);
        let reduce = match &keys.reduce {
            Some(reduce) => read_reduce(report, &place.key("reduce"), reduce, registry),
            None => Some(Reduce::Last),
        };
        if let Some(reduce) = &reduce {
            check_fit(report, &place, name, reduce, &kind, types);
        }
        let default = keys.default.as_ref().map(from_yaml);
        if let Some(default) = &default
            && let Err(wrong) = types.check(&kind, default)
        {
            let title = format!("the default of `{name}` does not fit its type");
            let finding = Diagnostic::new(&G205, title)
                .at(report.brief(&place.key("default")), wrong.to_string());
            report.push(finding);
        }
        // Nothing is known of the writes of a reducer that is not known.
        let (kind, reduce) = match reduce {
            Some(reduce) => (kind, reduce),
            None => (Type::Any, Reduce::Newest),
        };
        channels.insert(
            name.clone(),
            ChannelPlan {
                kind,
                reduce,
                keep: keys.keep,
                default,
            },
        );
    }
    channels
}

/// Reads a type expression; what is wrong is reported and becomes `any`.
pub(super) fn read_type(report: &mut Report<'_>, at: &At, text: &str, types: &Types) -> Type {
    match parse(text, types) {
        Ok(kind) => kind,
        Err(wrong) => {
            let span = report.index.inside(at, wrong.start, wrong.end);
            let finding = Diagnostic::new(&G102, wrong.title)
                .at(span, wrong.label)
                .help_if(wrong.help);
            report.push(finding);
            Type::Any
        }
    }
}

fn read_reduce(
    report: &mut Report<'_>,
    at: &At,
    yaml: &Yaml,
    registry: &Registry,
) -> Option<Reduce> {
    let (name, options) = match yaml {
        Yaml::String(name) => (name.as_str(), None),
        Yaml::Mapping(entries) if entries.len() == 1 => {
            let (name, options) = entries.iter().next()?;
            (name.as_str().unwrap_or_default(), Some(options))
        }
        _ => {
            let finding = Diagnostic::new(&G004, "expected a reducer")
                .at(report.brief(at), "a name, or a name with options")
                .help("for example `append`, or `{ dedupe: { by: id } }`");
            report.push(finding);
            return None;
        }
    };
    let place = if options.is_some() {
        at.key(name)
    } else {
        at.clone()
    };
    Some(match (name, options) {
        ("last", None) => Reduce::Last,
        ("newest", None) => Reduce::Newest,
        ("same", None) => Reduce::Same,
        ("append", None) => Reduce::Append,
        ("dedupe", None) => Reduce::Dedupe { by: None },
        ("dedupe", Some(options)) => Reduce::Dedupe {
            by: decode::<DedupeKeys>(report, &place, options, &[])?.by,
        },
        ("upsert", Some(options)) => Reduce::Upsert(decode(report, &place, options, &[])?),
        ("merge", None) => Reduce::Merge,
        ("add", None) => Reduce::Add,
        ("max", None) => Reduce::Max,
        ("min", None) => Reduce::Min,
        ("messages", None) => Reduce::Messages,
        ("promoted", None) => Reduce::Promoted,
        ("upsert", None) => {
            let finding = Diagnostic::new(&G207, "`upsert` does not know its key")
                .at(report.value(at), "replaces objects by a field of them")
                .help("name the field: `{ upsert: { key: id } }`");
            report.push(finding);
            return None;
        }
        ("custom", Some(Yaml::String(name))) => match registry.reducers.get(name) {
            Some(reducer) => Reduce::Custom(Arc::clone(reducer)),
            None => {
                let known: Vec<&str> = registry.reducers.keys().map(String::as_str).collect();
                let near = nearest(name, known);
                let finding = Diagnostic::new(&G104, format!("no custom reducer named `{name}`"))
                    .at(report.value(&place), "the host has none of this name")
                    .help_if(near.map(|near| format!("did you mean `{near}`?")));
                report.push(finding);
                return None;
            }
        },
        (name, Some(_)) if REDUCERS.contains(&name) => {
            let finding = Diagnostic::new(&G207, format!("`{name}` has no options"))
                .at(report.key(&place), "takes none")
                .help(format!("write `reduce: {name}`"));
            report.push(finding);
            return None;
        }
        (name, _) => {
            let span = if options.is_some() {
                report.key(&place)
            } else {
                report.value(at)
            };
            let finding = Diagnostic::new(&G207, format!("no reducer named `{name}`"))
                .at(span, "unknown reducer")
                .help(match nearest(name, REDUCERS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the reducers are {}", one_of(&REDUCERS)),
                });
            report.push(finding);
            return None;
        }
    })
}

fn check_fit(
    report: &mut Report<'_>,
    at: &At,
    name: &str,
    reduce: &Reduce,
    kind: &Type,
    types: &Types,
) {
    let plain = types.plain(kind);
    let is_message = |kind: &Type| matches!(kind, Type::Named(name) if &**name == "message");
    let is_record = |kind: &Type| {
        matches!(
            types.plain(kind),
            Type::Object(_) | Type::Map(_) | Type::Any
        )
    };
    let (fits, wants) = match reduce {
        Reduce::Last | Reduce::Newest | Reduce::Same | Reduce::Custom(_) => (true, ""),
        Reduce::Append | Reduce::Dedupe { by: None } => (matches!(plain, Type::List(_)), "a list"),
        Reduce::Dedupe { by: Some(_) } | Reduce::Upsert(_) => {
            let fits = matches!(plain, Type::List(list) if is_record(&list.items));
            (fits, "a list of records")
        }
        Reduce::Merge => (is_record(kind), "a map or record"),
        Reduce::Add => (
            matches!(plain, Type::Integer(_) | Type::Number(_)),
            "an integer or number",
        ),
        Reduce::Max | Reduce::Min => {
            let fits = matches!(plain, Type::Integer(_) | Type::Number(_) | Type::Text(_));
            (fits, "an integer, number or string")
        }
        Reduce::Messages => {
            let fits = matches!(plain, Type::List(list) if is_message(&list.items));
            (fits, "`list<message>`")
        }
        Reduce::Promoted => {
            let inner = match kind {
                Type::Optional(inner) => inner,
                kind => kind,
            };
            let fits = matches!(inner, Type::Named(name) if &**name == "promoted_tools");
            (fits, "`optional<promoted_tools>`")
        }
    };
    if !fits && !matches!(kind, Type::Any) {
        let title = format!("`{}` does not fit channel `{name}`", reduce.name());
        let finding = Diagnostic::new(&G207, title)
            .at(report.brief(&at.key("reduce")), format!("needs {wants}"))
            .context(report.value(&at.key("type")), format!("this is {kind}"));
        report.push(finding);
    }
}

/// Checks that a name can be used in expressions, file names and checkpoints.
pub(super) fn check_name(
    report: &mut Report<'_>,
    at: &At,
    what: &str,
    name: &str,
    reserved: &[&str],
) {
    let formed = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let (title, label) = if reserved.contains(&name) {
        (
            format!("`{name}` cannot be the name of a {what}"),
            "this name has a meaning of its own",
        )
    } else if !formed || name.len() > 64 {
        let label = "a name is small letters, digits and `_`, a letter first, 64 at most";
        (format!("`{name}` is not a good name for a {what}"), label)
    } else {
        return;
    };
    let finding = Diagnostic::new(&G106, title).at(report.key(at), label);
    report.push(finding);
}
