/// Finds the known name that a mistyped one most likely stands for.
///
/// Names are compared without regard to case; a name of which more than a third differs is no suggestion. Of equally
/// near names the first in alphabetical order is given.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let most = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The same as the end of a message: `; did you mean ...?`, or nothing.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known)
        .map(|candidate| format!("; did you mean `{candidate}`?"))
        .unwrap_or_default()
}
