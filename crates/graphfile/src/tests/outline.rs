//! What is drawn, stored and compared of a file.

use serde_json::json;

use super::{check_file, registry};
use crate::*;

const SMALL: &str = r#"schema: graph/v1
name: small
revision: 2
types:
  Answer: { type: object, required: [text], properties: { text: { type: string } } }
state:
  count: { type: integer, reduce: add }
  answer: { type: optional<Answer> }
input: [count]
output: [answer]
defaults:
  model: { model: default, timeout: 5s }
limits: { max_steps: 9, max_visits: { one: 3 } }
start: one
nodes:
  one:
    type: model
    prompt: "Count to {{ state.count }}."
    returns: { into: answer, type: Answer }
    then:
      - when: state.count < 3 && has(state.answer)
        goto: [two, three]
      - else: end
  two: { type: set, set: { count: 1 }, then: join }
  three:
    type: tool
    tool: hand_off
    routes: { hand_off: one }
    then: join
  join: { type: set, set: { count: 1 }, wait_for: [two, three], then: end }
"#;

fn outline(text: &str) -> Outline {
    let (outline, diagnostics) = check("small.yaml", text, &NoSources, &registry());
    outline.unwrap_or_else(|| panic!("{}", diagnostics.render()))
}

#[test]
fn a_graph_is_drawn_with_every_edge() {
    insta::assert_snapshot!(mermaid(&outline(SMALL)), @r#"
    flowchart TD
      start([start])
      n0("one<br/><small>model</small>")
      n1["two<br/><small>set</small>"]
      n2[["three<br/><small>tool</small>"]]
      n3["join<br/><small>set</small>"]
      finish([end])
      start --> n0
      n0 -- "state.count #60; 3 #38;#38; has(state.answer)" --> n1
      n0 -- "state.count #60; 3 #38;#38; has(state.answer)" --> n2
      n0 -- "else" --> finish
      n1 -- "waits for all" --> n3
      n2 -- "waits for all" --> n3
      n3 --> finish
      n2 -. "hand_off" .-> n0
      linkStyle 1,2,3 stroke-dasharray:8 4
    "#);
}

#[test]
fn the_structure_is_what_threads_depend_on() {
    let hash = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        outline(&SMALL.replace(from, to)).structure
    };
    let same = outline(SMALL).structure;
    assert_eq!(same.len(), 32);
    for (from, to) in [
        ("Count to", "Please count to"),
        ("state.count < 3", "state.count < 4"),
        ("revision: 2", "revision: 3"),
        ("timeout: 5s", "timeout: 6s"),
        ("count: 1 }, then: join", "count: 2 }, then: join"),
    ] {
        assert_eq!(hash(from, to), same, "{from} -> {to}");
    }
    for (from, to) in [
        ("type: integer, reduce: add", "type: number, reduce: add"),
        ("type: integer, reduce: add", "type: integer, reduce: max"),
        (
            "text: { type: string }",
            "text: { type: string, minLength: 2 }",
        ),
        ("hand_off: one", "hand_off: two"),
        ("wait_for: [two, three], ", ""),
        ("[two, three]\n", "two\n"),
    ] {
        let (outline, _) = check("t.yaml", &SMALL.replace(from, to), &NoSources, &registry());
        // A change that makes the file wrong changes it enough.
        assert!(
            outline.is_none_or(|outline| outline.structure != same),
            "{from} -> {to}"
        );
    }
}

#[test]
fn what_the_file_says_is_kept() {
    let outline = outline(SMALL);
    assert_eq!((outline.name.as_str(), outline.revision), ("small", 2));
    assert_eq!(outline.width, Some(2));
    assert_eq!(outline.limits.max_steps, 9);
    assert_eq!(
        outline.definition.get("state").unwrap().to_json()["count"]["reduce"],
        json!("add")
    );
    assert_eq!(
        outline.nodes.keys().collect::<Vec<_>>(),
        ["one", "two", "three", "join"]
    );
}

#[test]
fn prompt_files_are_written_into_the_definition() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/valid/prompt_file.yaml");
    let (outline, diagnostics) = check_file(&path);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render());
    let definition = outline.unwrap().definition.to_json();
    assert_eq!(
        definition["nodes"]["write"]["prompt"],
        json!("Write about {{ state.topic }}.\n")
    );
}

/// Gives a definition back as a file would be read, and checks that nothing of it is lost on the way.
fn read_back(outline: &crate::Outline) {
    let text = format!("{:#}", outline.definition.to_json());
    let (again, diagnostics) = check("definition", &text, &NoSources, &registry());
    let again = again.unwrap_or_else(|| panic!("{}", diagnostics.render()));
    assert_eq!(again.structure, outline.structure);
    assert_eq!(again.definition, outline.definition);
    assert_eq!(again.edges.len(), outline.edges.len());
}

#[test]
fn a_definition_stands_for_its_file() {
    read_back(&outline(SMALL));
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/valid");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "yaml") {
            let (outline, _) = check_file(&path);
            read_back(&outline.unwrap());
            read += 1;
        }
    }
    assert!(read > 3, "{read} files");
}

#[test]
fn a_prompt_file_that_the_defaults_name_is_written_into_each_node() {
    let text = "\
schema: graph/v1
name: t
state: { topic: { type: string }, text: { type: string } }
input: [topic]
defaults: { model: { model: default, prompt: { file: prompt.md } } }
start: one
nodes:
  one: { type: model, returns: { into: text }, then: two }
  two: { type: model, returns: { into: text }, then: end }
";
    struct Beside;
    impl crate::Sources for Beside {
        fn read(&self, _: &str) -> Result<String, String> {
            Ok("On {{ state.topic }}.".to_owned())
        }
    }
    let (outline, diagnostics) = check("t.yaml", text, &Beside, &registry());
    let outline = outline.unwrap_or_else(|| panic!("{}", diagnostics.render()));
    read_back(&outline);
}

#[test]
fn findings_are_told_to_programs_as_well() {
    let text = "schema: graph/v1\nname: t\nstate: { 中: { type: string } }\nstart: won\nnodes:\n  one: { type: set, set: {}, then: end }\n";
    let (_, diagnostics) = check("t.yaml", text, &NoSources, &registry());
    // Through the engine's value, whose keys are sorted whatever features serde_json is built with.
    let told = tine_engine::Value::from_json(diagnostics.to_json());
    insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap(), @r#"
    [
      {
        "code": "G106",
        "help": [],
        "labels": [
          {
            "column": 10,
            "end": 37,
            "file": "t.yaml",
            "line": 3,
            "primary": true,
            "start": 34,
            "text": "a name is small letters, digits and `_`, a letter first, 64 at most"
          }
        ],
        "level": "error",
        "title": "`中` is not a good name for a channel"
      },
      {
        "code": "G101",
        "help": [
          "the nodes are `one`"
        ],
        "labels": [
          {
            "column": 8,
            "end": 68,
            "file": "t.yaml",
            "line": 4,
            "primary": true,
            "start": 65,
            "text": "not declared under `nodes`"
          }
        ],
        "level": "error",
        "title": "no node named `won`"
      }
    ]
    "#);
}

#[test]
fn unknown_names_are_warnings_where_the_host_is_not_known() {
    let registry = Registry {
        offline: true,
        checkpointer: true,
        ..Registry::default()
    };
    let (outline, diagnostics) = check("small.yaml", SMALL, &NoSources, &registry);
    assert!(outline.is_some());
    let codes: Vec<_> = diagnostics
        .iter()
        .map(|found| (found.check.code, found.level))
        .collect();
    assert_eq!(codes, [("G104", Level::Warning), ("G104", Level::Warning)]);
}

#[test]
fn structured_output_is_told_as_a_schema() {
    struct Kinds;
    impl NodeKinds for Kinds {
        fn model(&self, spec: ModelSpec) -> Result<std::sync::Arc<dyn tine_engine::Node>, String> {
            let returns = spec.returns.unwrap();
            assert!(!returns.shape.is_text());
            assert_eq!(
                returns.shape.schema(),
                json!({
                    "$ref": "#/$defs/Answer",
                    "$defs": {"Answer": {
                        "type": "object", "required": ["text"],
                        "properties": {"text": {"type": "string"}},
                    }},
                })
            );
            Err("no models here".to_owned())
        }
        fn tools(&self, _: ToolsSpec) -> Result<std::sync::Arc<dyn tine_engine::Node>, String> {
            Err(String::new())
        }
        fn tool(&self, _: ToolSpec) -> Result<std::sync::Arc<dyn tine_engine::Node>, String> {
            Err(String::new())
        }
        fn call(&self, _: CallSpec) -> Result<std::sync::Arc<dyn tine_engine::Node>, String> {
            Err(String::new())
        }
    }
    let (graph, diagnostics) = load("small.yaml", SMALL, &NoSources, &Kinds, &registry());
    assert!(graph.is_none());
    insta::assert_snapshot!(diagnostics.render(), @r#"
    error[G108]: no models here
      --> small.yaml:16:3
       |
    16 |   one:
       |   ^^^ cannot be made
    "#);
}
