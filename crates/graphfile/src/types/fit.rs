//! Whether values of one type may go where another is wanted.

use super::{Others, Type, Types};

/// Tells whether a value of type `from` can be of type `to`.
///
/// Bounds and patterns are left to the check of the value itself; an optional value fits where a
/// plain one is wanted, for whether it is there shows when it is used.
pub(crate) fn fits(types: &Types, from: &Type, to: &Type) -> bool {
    fits_within(types, from, to, 0)
}

fn fits_within(types: &Types, from: &Type, to: &Type, depth: usize) -> bool {
    if let (Type::Named(a), Type::Named(b)) = (from, to)
        && a == b
    {
        return true;
    }
    // Types that contain each other through lists would be compared without end.
    if depth > 16 {
        return true;
    }
    let fits = |from: &Type, to: &Type| fits_within(types, from, to, depth + 1);
    match (types.resolve(from), types.resolve(to)) {
        (Type::Any | Type::Never, _) | (_, Type::Any) => true,
        (Type::Null, Type::Optional(_) | Type::Null) => true,
        (Type::Optional(from), Type::Optional(to)) => fits(from, to),
        (Type::Optional(from), to) => fits(from, to),
        (from, Type::Optional(to)) => fits(from, to),
        (Type::Bool, Type::Bool) => true,
        (Type::Integer(_), Type::Integer(_) | Type::Number(_)) => true,
        (Type::Number(_), Type::Number(_)) => true,
        (Type::Text(_), Type::Text(_)) => true,
        (Type::Enum(from), Type::Enum(to)) => from.iter().any(|value| to.contains(value)),
        (Type::Enum(values), to) => values.iter().all(|value| types.check(to, value).is_ok()),
        // Whether a text is one of the values shows at run time.
        (from, Type::Enum(values)) => values.iter().any(|value| types.check(from, value).is_ok()),
        (Type::List(from), Type::List(to)) => fits(&from.items, &to.items),
        (Type::Map(from), Type::Map(to)) => fits(from, to),
        (Type::Map(_), Type::Object(_)) => true,
        (Type::Object(from), Type::Map(to)) => {
            from.fields.values().all(|field| fits(&field.kind, to))
        }
        (Type::Object(from), Type::Object(to)) => {
            let known = to
                .fields
                .iter()
                .all(|(name, wanted)| match from.fields.get(name) {
                    Some(given) => fits(&given.kind, &wanted.kind),
                    None => {
                        !wanted.required
                            || wanted.default.is_some()
                            || !matches!(from.others, Others::Forbidden)
                    }
                });
            let extra = from
                .fields
                .keys()
                .find(|name| !to.fields.contains_key(*name));
            known && (extra.is_none() || !matches!(to.others, Others::Forbidden))
        }
        _ => false,
    }
}
