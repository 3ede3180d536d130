//! Text that fits a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Takes out of a text what would steer a terminal: models and tools wrote it.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
        .collect()
}

/// A path or a name as one word of a line.
pub(crate) fn clean_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}

/// A number of bytes, as people read it.
pub(crate) fn size_of(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
    let kib = bytes as f64 / 1024.0;
    match kib {
        ..1024.0 => format!("{kib:.1} KB"),
        ..1_048_576.0 => format!("{:.1} MB", kib / 1024.0),
        _ => format!("{:.1} GB", kib / 1_048_576.0),
    }
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

/// Breaks a line where it does not fit, between words or wide characters; what follows is indented like the line.
pub(crate) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    // An indent that leaves no room for a few words helps nobody.
    let indent = match columns < indent + 8 {
        true => String::new(),
        false => " ".repeat(indent),
    };
    let room = columns.saturating_sub(indent.len()).max(1);
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.width() > room {
        let mut used = 0;
        // Where it may be broken at last, and where it must be.
        let (mut between, mut full) = (None, rest.len());
        let mut last = ' ';
        for (at, c) in rest.char_indices() {
            let wide = c.width().unwrap_or(0);
            let may_break =
                at > 0 && (last == ' ' || (wide == 2 && last.width() == Some(2) && !closes(c)));
            if may_break {
                between = Some(at);
            }
            if used + wide > room && at > 0 && c != ' ' {
                full = at;
                break;
            }
            used += wide;
            last = c;
        }
        let (line, left) = rest.split_at(between.unwrap_or(full));
        if left.is_empty() {
            break;
        }
        lines.push(format!("{indent}{}", line.trim_end()));
        rest = left;
    }
    lines.push(format!("{indent}{rest}"));
    lines
}

/// Whether a character belongs to what stands before it.
fn closes(c: char) -> bool {
    "，。、；：？！）》」』”’…".contains(c)
}

/// Quotes a word for a shell, if it needs to be.
pub(crate) fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '=' | '@');
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(|c| c.is_control() && c != '\n') {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // What would steer the terminal is written out, as shells read it.
    let mut text = String::new();
    for c in word.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            '\u{80}'..='\u{9f}' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if c.is_control() => text.push_str(&format!("\\{:03o}", u32::from(c))),
            c => text.push(c),
        }
    }
    format!("$'{text}'")
}

/// A command of `tine threads` on a thread, that can be pasted as it is.
pub(crate) fn thread_command(command: &str, thread: &str) -> String {
    let name = quoted(thread);
    match thread.starts_with('-') {
        true => format!("tine threads {command} -- {name}"),
        false => format!("tine threads {command} {name}"),
    }
}

/// The command that goes on with a thread, with these options and words.
///
/// It can be pasted as it is, whatever the thread is called.
pub(crate) fn resume_command(thread: &str, options: &str, words: &str) -> String {
    let name = quoted(thread);
    let parts = match thread.starts_with('-') {
        // Else it would be taken for an option.
        true => [options, "--", &name, words],
        false => [&name, options, "", words],
    };
    let mut command = "tine resume".to_owned();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        command.push(' ');
        command.push_str(part);
    }
    command
}
