//! What a model may call.

use super::{Judge, Rule, is_function_name, kind, shown};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The most tools of a request.
const MOST_TOOLS: usize = 128;

impl Judge {
    pub(super) fn tools(&mut self, body: &Map<String, Value>) {
        let mut names = BTreeSet::new();
        match body.get("tools") {
            None => {
                for key in ["tool_choice", "parallel_tool_calls"] {
                    if body.contains_key(key) {
                        self.breaks(Rule::NoTools, key, "there are no tools");
                    }
                }
                return;
            }
            Some(Value::Array(tools)) if (1..=MOST_TOOLS).contains(&tools.len()) => {
                for (nth, tool) in tools.iter().enumerate() {
                    let place = format!("tools[{nth}]");
                    if let Some(name) = self.tool(&place, tool)
                        && !names.insert(name)
                    {
                        let place = format!("{place}.function.name");
                        self.breaks(Rule::SameTool, place, format!("`{name}` once more"));
                    }
                }
            }
            Some(Value::Array(tools)) => {
                let found = format!("{} tools", tools.len());
                self.breaks(Rule::Tools, "tools", found);
            }
            Some(other) => {
                let found = format!("not a list of tools, but {}", kind(other));
                self.breaks(Rule::Tools, "tools", found);
            }
        }
        self.choice(body, &names);
    }

    /// Looks at one tool, and gives its name.
    fn tool<'a>(&mut self, place: &str, tool: &'a Value) -> Option<&'a str> {
        let function = tool.get("function").and_then(Value::as_object);
        let (Some("function"), Some(function)) = (tool["type"].as_str(), function) else {
            let found = format!("no function: {}", shown(Some(tool)));
            self.breaks(Rule::Tools, place, found);
            return None;
        };
        let place = format!("{place}.function");
        if let Some(described) = function.get("description")
            && !described.is_string()
        {
            let found = format!("no description, but {}", kind(described));
            self.breaks(Rule::Tools, format!("{place}.description"), found);
        }
        if let Some(schema) = function.get("parameters") {
            let place = format!("{place}.parameters");
            let is_object = schema["type"] == "object" && schema["properties"].is_object();
            if !is_object {
                let found = format!("no schema of an object: {}", shown(Some(schema)));
                self.breaks(Rule::Parameters, &place, found);
            }
            self.items(&place, schema);
        }
        let given = function.get("name");
        let name = given.and_then(Value::as_str);
        let name = name.filter(|name| is_function_name(name));
        if name.is_none() {
            let found = format!("no name of a function: {}", shown(given));
            self.breaks(Rule::FunctionName, format!("{place}.name"), found);
        }
        name
    }

    /// A schema of a list says what its items are, wherever it stands.
    fn items(&mut self, place: &str, schema: &Value) {
        let Some(entries) = schema.as_object() else {
            return;
        };
        if entries.get("type").is_some_and(|kind| kind == "array") && !entries.contains_key("items")
        {
            self.breaks(Rule::Parameters, place, "a list without `items`");
        }
        for (key, value) in entries {
            let place = format!("{place}.{key}");
            match (&**key, value) {
                ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.items(&format!("{place}.{name}"), schema);
                    }
                }
                ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    for (nth, schema) in schemas.iter().enumerate() {
                        self.items(&format!("{place}[{nth}]"), schema);
                    }
                }
                ("items" | "additionalProperties" | "not", schema) => self.items(&place, schema),
                _ => {}
            }
        }
    }

    fn choice(&mut self, body: &Map<String, Value>, names: &BTreeSet<&str>) {
        let Some(choice) = body.get("tool_choice") else {
            return;
        };
        if let Some("none" | "auto" | "required") = choice.as_str() {
            return;
        }
        let name = choice["function"]["name"].as_str();
        match (choice["type"].as_str(), name) {
            (Some("function"), Some(name)) if names.contains(name) => {}
            (Some("function"), Some(name)) => {
                let found = format!("there is no tool `{name}`");
                self.breaks(Rule::ChosenTool, "tool_choice", found);
            }
            _ => {
                let found = format!("no choice: {}", shown(Some(choice)));
                self.breaks(Rule::ToolChoice, "tool_choice", found);
            }
        }
    }
}
