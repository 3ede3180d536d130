use super::fields::Field;

/// Writes a question as plain text, for terminals and for messages.
pub(super) fn write(
    kind: &str,
    question: &str,
    context: Option<&str>,
    options: &[String],
    fields: &[Field],
) -> String {
    let icon = icon(kind);
    let mut text = match context {
        Some(context) => format!("{icon} {context}\n\n{question}"),
        None => format!("{icon} {question}"),
    };
    if !fields.is_empty() {
        text.push('\n');
        for (index, field) in fields.iter().enumerate() {
            text.push_str(&format!("\n  {}. {}", index + 1, field.label));
            if field.required {
                text.push_str(" (required)");
            }
            if !field.choices.is_empty() {
                text.push_str(&format!(" — options: {}", field.choices.join(" / ")));
            }
            if field.kind == "multi_select" {
                text.push_str(" (multiple allowed)");
            }
        }
        text.push_str("\n\nPlease reply with a value for each field.");
    } else if !options.is_empty() {
        text.push('\n');
        for (index, option) in options.iter().enumerate() {
            text.push_str(&format!("\n  {}. {option}", index + 1));
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
