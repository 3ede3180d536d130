//! Tools that work on the thread's files.

mod ls;
mod read_file;
mod write_file;

#[cfg(test)]
mod tests;

pub(crate) use ls::Ls;
pub(crate) use read_file::ReadFile;
pub(crate) use write_file::{DEFAULT_MOST_BYTES, WriteFile};

/// Cuts a text to `most` characters, closing words included; 0 for never.
///
/// `hint` says what to do to see the rest.
fn cut(text: String, most: usize, hint: &str) -> String {
    let total = text.chars().count();
    if most == 0 || total <= most {
        return text;
    }
    let closing = |shown: usize| {
        format!("\n... [truncated: showing first {shown} of {total} chars. {hint}] ...")
    };
    // The number shown has at most as many digits as the total.
    let room = most.saturating_sub(closing(total).chars().count());
    let shown: String = text.chars().take(room).collect();
    format!("{shown}{}", closing(room))
}
