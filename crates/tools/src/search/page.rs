//! What the readers of each kind of file give.

/// What the text of a file gives.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) title: Option<String>,
    pub(super) url: Option<String>,
    pub(super) body: String,
    /// What could not be used, for people.
    pub(super) notes: Vec<String>,
}

/// Puts one paragraph on each line, words one space apart.
pub(super) fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for line in text.lines() {
        let mut words = line.split_whitespace().peekable();
        if words.peek().is_none() {
            continue;
        }
        if !tidy.is_empty() {
            tidy.push('\n');
        }
        for (index, word) in words.enumerate() {
            if index > 0 {
                tidy.push(' ');
            }
            tidy.push_str(word);
        }
    }
    tidy
}
