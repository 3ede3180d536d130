//! The records every file knows.

use std::sync::{Arc, LazyLock};

use super::{Field, ObjectType, Others, Type};

pub(super) const NAMES: [&str; 4] = ["message", "promoted_tools", "branch_error", "file"];

pub(super) fn find(name: &str) -> Option<&'static Type> {
    match name {
        "message" => Some(&MESSAGE),
        "promoted_tools" => Some(&PROMOTED_TOOLS),
        "branch_error" => Some(&BRANCH_ERROR),
        "file" => Some(&FILE),
        "tool_call" => Some(&TOOL_CALL),
        _ => None,
    }
}

pub(crate) fn record(fields: &[(&str, Type, bool)], others: Others) -> Type {
    let fields = fields.iter().map(|(name, kind, required)| {
        let field = Field {
            kind: kind.clone(),
            required: *required,
            default: None,
            description: None,
        };
        ((*name).to_owned(), field)
    });
    Type::Object(Arc::new(ObjectType {
        fields: fields.collect(),
        others,
    }))
}

static TOOL_CALL: LazyLock<Type> = LazyLock::new(|| {
    let fields = [
        ("name", Type::text(), true),
        ("args", Type::Any, true),
        ("id", Type::text(), true),
        ("type", Type::text(), false),
    ];
    record(&fields, Others::Unsaid)
});

/// A message in the form it is stored, and the short form `{role, content}` of input.
static MESSAGE: LazyLock<Type> = LazyLock::new(|| {
    let fields = [
        ("type", Type::text(), false),
        ("role", Type::text(), false),
        ("content", Type::Any, false),
        ("id", Type::text(), false),
        ("name", Type::text(), false),
        (
            "tool_calls",
            Type::list(Type::Named("tool_call".into())),
            false,
        ),
        ("invalid_tool_calls", Type::list(Type::Any), false),
        ("tool_call_id", Type::text(), false),
        ("status", Type::text(), false),
        ("artifact", Type::Any, false),
        ("usage_metadata", Type::Any, false),
        ("response_metadata", Type::Any, false),
        ("additional_kwargs", Type::Any, false),
    ];
    record(&fields, Others::Unsaid)
});

static PROMOTED_TOOLS: LazyLock<Type> = LazyLock::new(|| {
    let fields = [
        ("catalog_hash", Type::text(), true),
        ("names", Type::list(Type::text()), true),
    ];
    record(&fields, Others::Unsaid)
});

static BRANCH_ERROR: LazyLock<Type> = LazyLock::new(|| {
    let fields = [
        ("key", Type::text(), true),
        ("class", Type::text(), true),
        ("message", Type::text(), true),
        ("item", Type::Any, false),
    ];
    record(&fields, Others::Unsaid)
});

static FILE: LazyLock<Type> = LazyLock::new(|| {
    let fields = [
        ("path", Type::text(), true),
        ("name", Type::text(), false),
        ("mime_type", Type::text(), false),
        ("size", Type::integer(), false),
    ];
    record(&fields, Others::Unsaid)
});
