use tine_engine::text::nearest;

/// The nearest known name as the end of a message: `; did you mean ...?`, or nothing.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known)
        .map(|candidate| format!("; did you mean `{candidate}`?"))
        .unwrap_or_default()
}
