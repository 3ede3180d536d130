//! Types of channels, answers and results: read from files, checked against values.

mod builtin;
mod check;
mod fit;
mod parse;
mod schema;
mod write;

pub(crate) use builtin::record;
pub use check::Mismatch;
pub(crate) use fit::fits;
pub(crate) use parse::parse;
pub(crate) use schema::{read_schema, read_types};

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use tine_engine::Value;

/// A type as the format knows them.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Anything.
    Any,
    /// No value at all: the items of an empty list.
    Never,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer(NumberLimits),
    /// Any number.
    Number(NumberLimits),
    /// A text.
    Text(Arc<TextLimits>),
    /// One of a few values.
    Enum(Arc<[Value]>),
    /// Values of one type, in order.
    List(Arc<ListType>),
    /// Values of one type under any keys.
    Map(Arc<Self>),
    /// A record.
    Object(Arc<ObjectType>),
    /// A value that may be missing or null.
    Optional(Arc<Self>),
    /// A type of the file, by name.
    Named(Arc<str>),
}

/// Bounds of a number, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NumberLimits {
    /// Least value.
    pub(crate) min: Option<f64>,
    /// Greatest value.
    pub(crate) max: Option<f64>,
}

/// Bounds of a text; lengths count characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextLimits {
    /// Least length.
    pub(crate) min: Option<usize>,
    /// Greatest length.
    pub(crate) max: Option<usize>,
    /// A pattern that some part of the text matches.
    pub(crate) pattern: Option<regex::Regex>,
}

/// A list's items and bounds.
#[derive(Clone, Debug)]
pub(crate) struct ListType {
    /// Type of the items.
    pub(crate) items: Type,
    /// Least number of items.
    pub(crate) min: Option<usize>,
    /// Greatest number of items.
    pub(crate) max: Option<usize>,
}

/// A record's fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectType {
    /// The fields, in the order of the file.
    pub(crate) fields: IndexMap<String, Field>,
    /// What other fields may hold; `None` if the type does not speak of others, which allows
    /// them in values but not by name in expressions.
    pub(crate) others: Others,
}

/// What a record says about fields it does not name.
#[derive(Clone, Debug, Default)]
pub(crate) enum Others {
    /// Nothing: values may have them, expressions may not name them.
    #[default]
    Unsaid,
    /// There are none.
    Forbidden,
    /// They are of this type.
    Typed(Type),
}

/// One field of a record.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Its type.
    pub(crate) kind: Type,
    /// Whether a value must have it.
    pub(crate) required: bool,
    /// What it is when a value leaves it out.
    pub(crate) default: Option<Value>,
    /// What it is for.
    pub(crate) description: Option<String>,
}

impl Type {
    pub(crate) fn integer() -> Self {
        Self::Integer(NumberLimits::default())
    }

    pub(crate) fn number() -> Self {
        Self::Number(NumberLimits::default())
    }

    pub(crate) fn text() -> Self {
        Self::Text(Arc::default())
    }

    pub(crate) fn list(items: Self) -> Self {
        Self::List(Arc::new(ListType {
            items,
            min: None,
            max: None,
        }))
    }

    pub(crate) fn map(values: Self) -> Self {
        Self::Map(Arc::new(values))
    }

    pub(crate) fn optional(inner: Self) -> Self {
        match inner {
            Self::Optional(_) | Self::Any | Self::Null => inner,
            inner => Self::Optional(Arc::new(inner)),
        }
    }

    pub(crate) fn is_optional(&self) -> bool {
        matches!(self, Self::Optional(_) | Self::Null)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Never => f.write_str("nothing"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("boolean"),
            Self::Integer(_) => f.write_str("integer"),
            Self::Number(_) => f.write_str("number"),
            Self::Text(_) => f.write_str("string"),
            Self::Enum(_) => f.write_str("enum"),
            Self::List(list) => write!(f, "list<{}>", list.items),
            Self::Map(values) => write!(f, "map<{values}>"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional<{inner}>"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// The named types of a file, beside the built-in ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    named: IndexMap<Arc<str>, Type>,
}

impl Types {
    /// Returns the type a name stands for; `Any` for a name that was reported as unknown.
    pub(crate) fn resolve<'t>(&'t self, kind: &'t Type) -> &'t Type {
        match kind {
            Type::Named(name) => match self.named.get(name) {
                Some(Type::Named(_)) | None => builtin::find(name).unwrap_or(&Type::Any),
                Some(named) => named,
            },
            kind => kind,
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(|name| &**name).chain(builtin::NAMES)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.contains_key(name) || builtin::find(name).is_some()
    }

    pub(crate) fn insert(&mut self, name: &str, kind: Type) {
        self.named.insert(name.into(), kind);
    }

    /// Returns the type without `optional` around it.
    pub(crate) fn plain<'t>(&'t self, kind: &'t Type) -> &'t Type {
        match self.resolve(kind) {
            Type::Optional(inner) => self.plain(inner),
            kind => kind,
        }
    }
}
