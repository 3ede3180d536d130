//! `ask_clarification`: the model asks the user and waits.

mod fields;
mod form;
mod options;
mod text;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tine_engine::Update;

pub use form::{FieldKind, Form, FormField};

use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::{ToolCommand, ToolOutput};
use crate::schema::{ArgSchema, Args, ArgumentErrors, ArgumentProblem};
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

/// The label under which a graph may take the asking over.
const ROUTE: &str = "clarify";

/// The channel in which such a graph finds the question, if it declares it.
const CHANNEL: &str = "clarification";

/// The option of a run in which nobody is to be asked.
const DISABLED: &str = "disable_clarification";

/// What the model is told.
const ARGS: &str = r#"{
  "type": "object",
  "properties": {
    "question": {"type": "string", "description": "The question, specific and easy to answer."},
    "clarification_type": {"type": "string", "enum": ["missing_info", "ambiguous_requirement", "approach_choice", "risk_confirmation", "suggestion"], "description": "Why you ask."},
    "context": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "What the user needs to know to answer."},
    "options": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": null, "description": "Answers to choose from."},
    "fields": {"anyOf": [{"type": "array", "items": {
      "type": "object",
      "properties": {
        "name": {"type": "string"},
        "label": {"type": "string"},
        "type": {"type": "string", "enum": ["text", "textarea", "number", "select", "multi_select", "checkbox", "date"]},
        "required": {"type": "boolean"},
        "options": {"type": "array", "items": {"type": "string"}},
        "placeholder": {"type": "string"},
        "default": {"description": "What the field holds if the user leaves it as it is."}
      },
      "required": ["name"]
    }}, {"type": "null"}], "default": null, "description": "A form, when several values are needed at once."}
  },
  "required": ["question", "clarification_type"]
}"#;

/// What is taken: models send options and fields in many shapes, and a
/// question should reach the user in all of them.
const ACCEPTED: &str = r#"{
  "type": "object",
  "properties": {"question": {"type": "string", "minLength": 1}},
  "required": ["question"]
}"#;

/// Asks the user a question; the answer is the call's result.
pub(crate) struct AskClarification {
    spec: ToolSpec,
    accepted: ArgSchema,
}

impl AskClarification {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec::new(
            Source::Builtin,
            "ask_clarification",
            "Asks the user and waits for the answer. Use it before you work, when something needed is missing, the request can be read in several ways, there are several good approaches, or the next step cannot be undone.",
            ArgSchema::literal(ARGS),
        );
        Self {
            spec: spec
                .effect(Effect::ReadOnly)
                .optional_route(ROUTE)
                .may_write(CHANNEL),
            accepted: ArgSchema::literal(ACCEPTED),
        }
    }
}

#[async_trait]
impl Tool for AskClarification {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn accepts(&self) -> &ArgSchema {
        &self.accepted
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let question = args.get("question").and_then(Value::as_str);
        if question.is_none_or(|question| question.trim().is_empty()) {
            return Err(ToolError::Arguments(ArgumentErrors {
                tool: self.spec.name.clone(),
                problems: vec![ArgumentProblem {
                    argument: "question".to_owned(),
                    text: "must not be empty".to_owned(),
                }],
            }));
        }
        // An error, so that nobody takes the text for the user's answer.
        if cx.flag(DISABLED) {
            return Err(ToolError::failed(
                "questions are switched off in this run: decide for yourself what is most likely meant, go on, and say in your final answer what you assumed",
            ));
        }
        if cx.maps_route(ROUTE) {
            let mut update = Update::new();
            if cx.declares(CHANNEL) {
                update = update.set(CHANNEL, brief(cx.call_id(), &args));
            }
            return Ok(ToolOutput::Command(ToolCommand {
                update,
                route: Some(ROUTE.to_owned()),
                reply: None,
            }));
        }
        let asked = payload(cx.call_id(), &args);
        for note in &asked.notes {
            cx.note(note);
        }
        let Some(form) = asked.form else {
            let answer = cx.ask(asked.payload).await?;
            return Ok(ToolOutput::text(answer_text(answer)));
        };
        // Hosts check an answer before it comes here; where one does not, a
        // wrong one is asked for again.
        let mut payload = asked.payload.clone();
        loop {
            let answer = cx.ask(payload).await?;
            match form.accept(&answer) {
                Ok(Value::String(words)) => return Ok(ToolOutput::text(words)),
                Ok(values) => return Ok(ToolOutput::text(values.to_string())),
                Err(problem) => {
                    payload = asked.payload.clone();
                    payload["problem"] = json!(problem);
                }
            }
        }
    }
}

/// Makes what a graph that asks by itself needs to know: the call to answer, and the question in plain parts.
fn brief(call_id: &str, args: &Args) -> tine_engine::Value {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    let mut parts = vec![
        ("call_id", call_id.into()),
        ("question", text("question").unwrap_or_default().into()),
        (
            "clarification_type",
            text("clarification_type").unwrap_or("missing_info").into(),
        ),
        (
            "options",
            options::read(args.get("options"), "option").labels().into(),
        ),
    ];
    if let Some(context) = text("context") {
        parts.push(("context", context.into()));
    }
    tine_engine::Value::from_pairs(parts)
}

/// What is asked.
struct Asked {
    payload: Value,
    form: Option<Form>,
    /// What was left out of it.
    notes: Vec<String>,
}

/// Makes what is shown to the user.
fn payload(call_id: &str, args: &Args) -> Asked {
    let question = args
        .get("question")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kind = match args.get("clarification_type") {
        Some(Value::String(kind)) => kind.clone(),
        None | Some(Value::Null) => "missing_info".to_owned(),
        Some(other) => other.to_string(),
    };
    let context = match args.get("context") {
        Some(Value::String(context)) if !context.trim().is_empty() => Some(context.as_str()),
        _ => None,
    };
    let options = options::read(args.get("options"), "option");
    let mut notes = Vec::new();
    let fields = fields::read(args.get("fields")).unwrap_or_else(|reason| {
        notes.push(format!(
            "ask_clarification: the form is left out, because {reason}"
        ));
        Vec::new()
    });
    if options.left_out > 0 {
        notes.push(format!(
            "ask_clarification: {} of the options are left out, because there are too many",
            options.left_out
        ));
    }

    let mut payload = Map::new();
    let mut put = |key: &str, value: Value| {
        payload.insert(key.to_owned(), value);
    };
    put("version", json!(if fields.is_empty() { 1 } else { 2 }));
    put("kind", json!("human_input_request"));
    put("source", json!("ask_clarification"));
    put("request_id", json!(format!("clarification:{call_id}")));
    put("tool_call_id", json!(call_id));
    put("clarification_type", json!(kind));
    put("question", json!(question));
    put(
        "text",
        json!(text::write(&kind, question, context, &options, &fields)),
    );
    if let Some(context) = context {
        put("context", json!(context));
    }
    let mode = match (fields.is_empty(), options.list.is_empty()) {
        (false, _) => "form",
        (true, false) => "choice_with_other",
        (true, true) => "free_text",
    };
    put("input_mode", json!(mode));
    if !fields.is_empty() {
        put("fields", json!(fields));
    } else if !options.list.is_empty() {
        put("options", json!(options.list));
    }
    Asked {
        payload: Value::Object(payload),
        form: (!fields.is_empty()).then(|| Form::new(fields)),
        notes,
    }
}

/// Takes the text of an answer: a plain one, or that of DeerFlow's front end.
fn answer_text(answer: Value) -> String {
    match answer {
        Value::String(text) => text,
        Value::Object(fields) => match fields.get("value") {
            Some(Value::String(text)) => text.clone(),
            _ => Value::Object(fields).to_string(),
        },
        other => other.to_string(),
    }
}
