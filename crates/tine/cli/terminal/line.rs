//! Text that fits a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Takes out of a text what would steer a terminal: models and tools wrote it.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
        .collect()
}

/// Puts a text on one line, cut to this many columns; what is left out shows as `…`.
///
/// A wide character takes two columns and is never cut in half.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    // Of a long text only the start can show.
    let start: String = text.chars().take(columns.saturating_mul(4)).collect();
    let shortened = start.len() < text.len();
    let flat = clean(&start)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if flat.width() <= columns && !shortened {
        return flat;
    }
    let room = columns.saturating_sub(1);
    let mut line = String::new();
    let mut used = 0;
    for c in flat.chars() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        line.push(c);
    }
    line.push('…');
    line
}

/// How many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Quotes a word for a shell, if it needs to be.
pub(crate) fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '=' | '@');
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", clean(word).replace('\'', r"'\''"))
    }
}
