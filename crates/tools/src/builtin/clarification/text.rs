use super::form::FormField;
use super::options::Options;

/// Writes a question as plain text, for terminals and for messages.
pub(super) fn write(
    kind: &str,
    question: &str,
    context: Option<&str>,
    options: &Options,
    fields: &[FormField],
) -> String {
    let icon = icon(kind);
    let mut text = match context {
        Some(context) => format!("{icon} {context}\n\n{question}"),
        None => format!("{icon} {question}"),
    };
    if !fields.is_empty() {
        text.push('\n');
        for (index, field) in fields.iter().enumerate() {
            text.push_str(&format!("\n  {}. {}", index + 1, field.label()));
            if field.required() {
                text.push_str(" (required)");
            }
            let choices = field.options();
            if !choices.is_empty() {
                text.push_str(&format!(" — options: {}", choices.join(" / ")));
            }
            if field.takes_several() {
                text.push_str(" (multiple allowed)");
            }
        }
        text.push_str("\n\nPlease reply with a value for each field.");
    } else if !options.list.is_empty() {
        text.push('\n');
        for (index, option) in options.list.iter().enumerate() {
            text.push_str(&format!("\n  {}. {}", index + 1, option.line()));
        }
        if options.left_out > 0 {
            text.push_str(&format!("\n  … and {} more", options.left_out));
        }
    }
    text
}

fn icon(kind: &str) -> &'static str {
    match kind {
        "ambiguous_requirement" => "🤔",
        "approach_choice" => "🔀",
        "risk_confirmation" => "⚠️",
        "suggestion" => "💡",
        _ => "❓",
    }
}
