use super::*;
use serde_json::json;

fn entry(name: &str, use_path: &str, settings: Value) -> ModelEntry {
    let Value::Object(settings) = settings else {
        panic!("settings are a map");
    };
    ModelEntry {
        name: name.to_owned(),
        use_path: use_path.to_owned(),
        settings,
    }
}

fn read(path: &str) -> std::io::Result<String> {
    match path {
        "good.yaml" => Ok("schema: script/v1\nrules: [{content: hi}]".to_owned()),
        "bad.yaml" => Ok("schema: script/v1\nrules: [{}]".to_owned()),
        _ => Err(std::io::Error::other("no such file")),
    }
}

fn get(entries: Vec<ModelEntry>, name: &str) -> String {
    let model = Models::from_entries(entries, read).and_then(|models| models.get(name));
    match model {
        Ok(model) => format!("model {}", model.name()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_model_is_found_by_its_name() {
    let entries = || {
        vec![
            entry(
                "a",
                SCRIPTED,
                json!({"script": "good.yaml", "model": "shown", "delay_ms": 5}),
            ),
            entry(
                "gpt",
                "langchain_openai:ChatOpenAI",
                json!({"model": "gpt-9", "api_key": "k", "temperature": 0}),
            ),
        ]
    };
    assert_eq!(get(entries(), "a"), "model shown");
    assert_eq!(
        get(entries(), "default"),
        "model shown",
        "the first is the default"
    );
    insta::assert_snapshot!(get(entries(), "gpt"), @"model `gpt`: `use: langchain_openai:ChatOpenAI` is known, but can not be used yet; what works is `use: tine.models.scripted:ScriptedModel`");
    insta::assert_snapshot!(get(entries(), "gbt"), @"there is no model `gbt` (configured: `a`, `gpt`); did you mean `gpt`?");
    insta::assert_snapshot!(get(entries(), "something"), @"there is no model `something` (configured: `a`, `gpt`)");
    insta::assert_snapshot!(get(Vec::new(), "default"), @"there is no model `default`: no model is configured; give config.yaml a `models:` section");
}

#[test]
fn a_wrong_entry_says_what_is_wrong() {
    let scripted = |settings| get(vec![entry("m", SCRIPTED, settings)], "m");
    let shown = [
        scripted(json!({})),
        scripted(json!({"script": "none.yaml"})),
        scripted(json!({"script": "bad.yaml"})),
        scripted(json!({"script": ["good.yaml"]})),
        scripted(json!({"script": "good.yaml", "delay_ms": -1})),
        scripted(json!({"script": "good.yaml", "delay": 1})),
        get(
            vec![entry("m", "tine.models.scripted:ScriptedMode", json!({}))],
            "m",
        ),
        get(
            vec![entry("m", "langchain_openai:ChatOpenIA", json!({}))],
            "m",
        ),
        get(vec![entry("m", "nothing:Known", json!({}))], "m"),
        get(
            vec![
                entry("m", SCRIPTED, json!({})),
                entry("m", SCRIPTED, json!({})),
            ],
            "m",
        ),
    ];
    insta::assert_snapshot!(shown.join("\n"), @"
    model `m` needs the setting `script`, such as `script: graphs/news_report.script.yaml`
    model `m`: none.yaml can not be read: no such file
    model `m`: script bad.yaml, rule 1: the rule replies nothing; give it `content` or `tool_calls`
    model `m`: `script` must be a text
    model `m`: `delay_ms` must be a number of milliseconds, 0 or more
    model `m` has no setting `delay`; its own are `script`, `delay_ms`
    model `m`: `use: tine.models.scripted:ScriptedMode` is not known; did you mean `tine.models.scripted:ScriptedModel`?
    model `m`: `use: langchain_openai:ChatOpenIA` is not known; did you mean `langchain_openai:ChatOpenAI`?
    model `m`: `use: nothing:Known` is not known; what works is `use: tine.models.scripted:ScriptedModel`
    two models are called `m`; a name must be given once
    ");
}

#[test]
fn a_model_made_in_code_stands_beside_the_configured_ones() {
    let script = Script::parse("s", "schema: script/v1\nrules: []").unwrap();
    let models = Models::from_entries([], read).unwrap();
    let models = models.with("mine", ScriptedModel::new("mine", script));
    assert_eq!(models.names().collect::<Vec<_>>(), ["mine"]);
    assert!(models.get("mine").is_ok());
}

#[test]
fn settings_are_never_shown() {
    let entries = vec![entry(
        "gpt",
        "langchain_openai:ChatOpenAI",
        json!({"api_key": "s3cret"}),
    )];
    let models = Models::from_entries(entries, read).unwrap();
    assert_eq!(format!("{models:?}"), r#"["gpt"]"#);
}
