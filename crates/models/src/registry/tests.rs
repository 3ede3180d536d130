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
                OPENAI,
                json!({"model": "gpt-9", "api_key": "k", "temperature": 0}),
            ),
            entry(
                "claude",
                "langchain_anthropic:ChatAnthropic",
                json!({"model": "c"}),
            ),
        ]
    };
    assert_eq!(get(entries(), "a"), "model shown");
    assert_eq!(
        get(entries(), "default"),
        "model shown",
        "the first is the default"
    );
    assert_eq!(get(entries(), "gpt"), "model gpt-9");
    insta::assert_snapshot!(get(entries(), "claude"), @"model `claude`: `use: langchain_anthropic:ChatAnthropic` is known, but can not be used yet; what works is `use: langchain_openai:ChatOpenAI`, which most endpoints speak, or `use: tine.models.scripted:ScriptedModel`");
    insta::assert_snapshot!(get(entries(), "gbt"), @"there is no model `gbt` (configured: `a`, `gpt`, `claude`); did you mean `gpt`?");
    insta::assert_snapshot!(get(entries(), "something"), @"there is no model `something` (configured: `a`, `gpt`, `claude`)");
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
    model `m`: `use: nothing:Known` is not known; what works is `use: langchain_openai:ChatOpenAI` or `use: tine.models.scripted:ScriptedModel`
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
    let entry = entry("gpt", OPENAI, json!({"model": "m", "api_key": "s3cret"}));
    assert_eq!(
        format!("{entry:?}"),
        r#"ModelEntry { name: "gpt", use_path: "langchain_openai:ChatOpenAI", settings: ["model", "api_key"] }"#
    );
    let model = Models::from_entries([entry], read)
        .unwrap()
        .get("gpt")
        .unwrap();
    assert_eq!(
        format!("{model:?}"),
        r#"OpenAi { alias: "gpt", model: "m", endpoint: "https://api.openai.com/v1", .. }"#
    );
}

/// What an entry of `ChatOpenAI` comes to.
fn openai(settings: Value) -> String {
    get(vec![entry("m", OPENAI, settings)], "m")
}

#[test]
fn the_settings_of_an_endpoint_are_those_of_deerflow() {
    // Entries of its example configuration, with all that they say.
    for settings in [
        json!({"display_name": "GPT-4", "model": "gpt-4", "api_key": "k", "request_timeout": 600.0, "max_retries": 2,
            "max_tokens": 4096, "context_window": 128_000, "temperature": 0.7, "supports_vision": true}),
        json!({"model": "MiniMax-M3", "api_key": "k", "base_url": "https://api.minimax.io/v1", "temperature": 1,
            "supports_thinking": true, "when_thinking_enabled": {"extra_body": {"thinking": {"type": "adaptive"}}},
            "when_thinking_disabled": {"extra_body": {"thinking": {"type": "disabled"}}},
            "pricing": {"currency": "CNY"}, "stream_chunk_timeout": 240}),
        json!({"model": "local", "base_url": "http://127.0.0.1:8080/v1"}),
        json!({"model_name": "local", "openai_api_base": "https://llm.example/v1/", "api_key": null}),
        json!({"model": "m", "api_key": "k", "use_responses_api": false, "n": 1, "organization": "o",
            "default_headers": {"X-Title": "tine", "X-Count": 3}, "default_query": {"api-version": "1"}, "stop": ["a"]}),
    ] {
        let made = openai(settings.clone());
        assert!(made.starts_with("model "), "{settings}: {made}");
    }
}

#[test]
fn a_wrong_setting_of_an_endpoint_is_told() {
    let with = |more: Value| {
        let mut settings = json!({"model": "m", "api_key": "s3cret"});
        for (key, value) in more.as_object().cloned().unwrap() {
            settings[key] = value;
        }
        openai(settings)
    };
    let shown = [
        openai(json!({"api_key": "k"})),
        openai(json!({"model": "gpt"})),
        openai(json!({"model": "gpt", "api_key": " "})),
        get(
            vec![entry(
                "d",
                "langchain_deepseek:ChatDeepSeek",
                json!({"model": "deepseek-chat"}),
            )],
            "d",
        ),
        with(json!({"temprature": 1})),
        with(json!({"temperature": "hot"})),
        with(json!({"base_url": "api.openai.com"})),
        with(json!({"api_base": "ftp://x"})),
        with(json!({"base_url": "http://x", "api_base": "http://y"})),
        with(json!({"timeout": 0})),
        with(json!({"timeout": 5, "request_timeout": 5})),
        with(json!({"max_retries": -1})),
        with(json!({"api_key": "a\nb"})),
        with(json!({"default_headers": {"bad name": "x"}})),
        with(json!({"streaming": "yes"})),
        with(json!({"use_responses_api": true})),
        with(json!({"n": 2})),
        with(json!({"logprobs": true})),
        with(json!({"reasoning_effort": "high", "supports_reasoning_effort": false})),
        with(json!({"extra_body": []})),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}
