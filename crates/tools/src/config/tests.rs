#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

const GOOD: &str = "\
config_version: 34
memory: {enabled: true}
title: null
tool_groups:
  - name: web
models:
  - name: default
    use: tine.models.scripted:ScriptedModel
    script: ../graphs/a.script.yaml
    supports_vision: true
tools:
  - name: web_search
    group: web
    use: tine.community.local:web_search_tool
    path: ../corpus
    max_results: 3
    api_key: $SEARCH_KEY
    nested: {a: [$SEARCH_KEY, x$SEARCH_KEY]}
sandbox:
  use: deerflow.sandbox.local:LocalSandboxProvider
tool_search:
  enabled: auto
";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("conf/config.yaml"))
}

fn good() -> Config {
    parse(GOOD).unwrap()
}

fn env() -> BTreeMap<String, String> {
    BTreeMap::from([("SEARCH_KEY".to_owned(), "s3cret".to_owned())])
}

#[test]
fn the_parts_that_assembly_needs_are_read() {
    let config = good();
    let tool = &config.tools()[0];
    assert_eq!(
        (tool.name.as_str(), tool.group.as_str()),
        ("web_search", "web")
    );
    assert_eq!(tool.use_path, "tine.community.local:web_search_tool");
    assert_eq!(tool.settings.place().to_string(), "conf/config.yaml:12:5");
    assert_eq!(
        tool.settings.place_of("path").to_string(),
        "conf/config.yaml:15:5"
    );
    assert_eq!(config.tool_groups(), ["web"]);
    assert_eq!(config.deferral(), Deferral::Auto);
    assert!(!config.sandbox().unwrap().allow_host_bash);
    let model = config.model("default").unwrap();
    assert_eq!(model.use_path, "tine.models.scripted:ScriptedModel");
    assert_eq!(
        model.settings.with(&env()).flag("supports_vision").unwrap(),
        Some(true)
    );
}

#[test]
fn settings_are_typed_and_look_up_variables_when_read() {
    let config = good();
    let env = env();
    let values = config.tools()[0].settings.with(&env);
    assert_eq!(values.whole("max_results").unwrap(), Some(3));
    assert_eq!(values.whole("absent").unwrap(), None);
    assert_eq!(values.text("api_key").unwrap().as_deref(), Some("s3cret"));
    assert_eq!(
        values.value("nested").unwrap().unwrap(),
        serde_json::json!({"a": ["s3cret", "x$SEARCH_KEY"]})
    );
    assert_eq!(
        values.path("path").unwrap().unwrap(),
        Path::new("conf/../corpus")
    );
    let none = BTreeMap::new();
    let error = config.tools()[0]
        .settings
        .with(&none)
        .text("api_key")
        .unwrap_err();
    insta::assert_snapshot!(error, @"conf/config.yaml:17:5: `api_key` of tools.web_search is $SEARCH_KEY, and there is no environment variable SEARCH_KEY: set it, or write the value in its place");
    let secret = values.flag("api_key").unwrap_err().to_string();
    assert!(!secret.contains("s3cret"), "{secret}");
    insta::assert_snapshot!(values.text("max_results").unwrap_err(), @"conf/config.yaml:16:5: `max_results` of tools.web_search must be a text, not the number 3");
}

#[test]
fn a_debug_print_shows_no_values() {
    let config = parse("models: [{name: a, use: b, api_key: s3cret}]").unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn sections_without_effect_are_noted_unless_null() {
    insta::assert_snapshot!(good().notes().join("\n"), @"conf/config.yaml:2:1: the section `memory` has no effect: tine does not support it yet");
}

#[test]
fn keys_of_a_section_that_nothing_reads_are_noted() {
    let mut config = parse(
        "sandbox:\n  use: a:b\n  alow_host_bash: true\n  image: x\ntool_search: {enabled: true, x: 1}\nsubagents: {y: 1}",
    )
    .unwrap();
    config.set("skill_evolution.enable", "true").unwrap();
    insta::assert_snapshot!(config.notes().join("\n"), @"
    conf/config.yaml:3:3: `alow_host_bash` of sandbox has no effect: tine does not support it yet; did you mean `allow_host_bash`?
    conf/config.yaml:4:3: `image` of sandbox has no effect: tine does not support it yet
    conf/config.yaml:5:30: `x` of tool_search has no effect: tine does not support it yet
    setting skill_evolution.enable: `enable` of skill_evolution has no effect: tine does not support it yet; did you mean `enabled`?
    ");
}

#[test]
fn the_limits_of_uploads_are_deerflows_unless_they_are_set() {
    let env = BTreeMap::from([("MOST".to_owned(), "7".to_owned())]);
    let check = |text: &str, expected: [usize; 3]| {
        let uploads = parse(text).unwrap().uploads(&env).unwrap();
        let found = [
            uploads.max_files,
            uploads.max_file_size,
            uploads.max_total_size,
        ];
        assert_eq!(found, expected, "{text}");
    };
    check("", [10, 52_428_800, 104_857_600]);
    check("uploads:", [10, 52_428_800, 104_857_600]);
    check(
        "uploads: {max_files: 3, max_file_size: 1024}",
        [3, 1024, 104_857_600],
    );
    check("uploads: {max_total_size: 0}", [10, 52_428_800, 0]);
    let wrong = parse("uploads:\n  max_files: many").unwrap();
    insta::assert_snapshot!(wrong.uploads(&env).unwrap_err(), @r#"conf/config.yaml:2:3: `max_files` of uploads must be a whole number of 0 or more, not the string "many""#);
    let notes = parse("uploads: {auto_convert_documents: true, max_size: 3}").unwrap();
    insta::assert_snapshot!(notes.notes().join("\n"), @"
    conf/config.yaml:1:11: `auto_convert_documents` of uploads has no effect: tine does not support it yet
    conf/config.yaml:1:41: `max_size` of uploads has no effect: tine does not support it yet
    ");
}

#[test]
fn an_empty_file_is_an_empty_configuration() {
    for text in ["", "# only a comment\n", "---\n", "tools:\nmodels:\n"] {
        assert!(parse(text).unwrap().tools().is_empty(), "{text:?}");
    }
}

#[test]
fn anchors_and_merge_keys_work() {
    let config = parse(
        "\
tools:
  - &a {name: x, group: g, use: u, max_results: 2}
  - {<<: *a, name: y}
",
    )
    .unwrap();
    assert_eq!(config.tools()[1].name, "y");
    assert_eq!(
        config.tools()[1].settings.raw("max_results"),
        Some(&Value::from(2))
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        "tools: [",
        "tools:\n\t- name: x\n",
        "a: b: c",
        "- tools",
        "tool: []",
        "colours: []",
        "tools: {}",
        "tools: [x]",
        "tools:\n  - group: web\n    use: a:b",
        "tools:\n  - name: x\n    use: a:b",
        "tools:\n  - name: x\n    group: [web]\n    use: a:b",
        "models:\n  - name: m",
        "tools: []\nmodels: []\ntools: []",
        "tools:\n  - name: x\n    name: y\n",
        "sandbox: {allow_host_bash: true}",
        "sandbox: {use: a:b, allow_host_bash: 'yes'}",
        "tool_search: {enabled: maybe}",
        "sandbox: {use: a:b, allow_host_bash: $ALLOW}",
        "tools:\n  - name: !secret x\n",
        "tools:\n  - name: x\n    group: g\n    use: u\n    n: .nan\n",
        "---\ntools: []\n---\ntools: []",
        "tools: []\n---\n",
        "config_version: [{name: x}]",
    ];
    let lines: Vec<String> = cases
        .iter()
        .map(|text| match parse(text) {
            Ok(_) => format!("accepted: {text}"),
            Err(error) => error.to_string(),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    conf/config.yaml:2:1: not valid YAML: did not find expected node content
    conf/config.yaml:2:1: not valid YAML: found character that cannot start any token; the line is indented with a tab: use spaces
    conf/config.yaml:1:5: not valid YAML: mapping values are not allowed in this context
    conf/config.yaml:1:1: a configuration must be a mapping of sections, not a list of 1
    conf/config.yaml:1:1: unknown section `tool`; did you mean `tools`?
    conf/config.yaml:1:1: unknown section `colours`
    conf/config.yaml:1:1: `tools` must be a list, not an object
    conf/config.yaml:1:9: entry 1 of tools must be a mapping, not the string "x"
    conf/config.yaml:2:5: entry 1 of tools needs `name`
    conf/config.yaml:2:5: tools.x needs `group`
    conf/config.yaml:3:5: `group` of tools.x must be a text, not a list of 1
    conf/config.yaml:2:5: models.m needs `use`
    conf/config.yaml:3:1: `tools` is given twice; it stands first on line 1
    conf/config.yaml:3:5: `name` is given twice; it stands first on line 2
    conf/config.yaml:1:1: sandbox needs `use`
    conf/config.yaml:1:21: `allow_host_bash` of sandbox must be true or false, not the string "yes"
    conf/config.yaml:1:15: `enabled` of tool_search must be true, false or auto, not the string "maybe"
    conf/config.yaml:1:21: `allow_host_bash` of sandbox must be written out, because it decides what is assembled, not $ALLOW
    conf/config.yaml:2:5: `tools.0.name` must be a plain value, not !secret
    conf/config.yaml:5:5: `tools.0.n` must be a finite number, not .nan
    conf/config.yaml:3:1: a second YAML document begins here: put all sections into one
    conf/config.yaml:2:1: a second YAML document begins here: put all sections into one
    conf/config.yaml:1:1: `config_version` must be a number, not a list of 1
    "#);
}

#[test]
fn a_value_can_be_set_on_top_of_the_file() {
    let mut config = good();
    config.set("tools.web_search.path", "here").unwrap();
    config.set("tools.web_search.max_results", "7").unwrap();
    config.set("tools.web_search.use", "a.b:c").unwrap();
    config.set("tools.web_search.nested.b.c", "1").unwrap();
    config.set("models.default.script", "\"5\"").unwrap();
    config.set("sandbox.allow_host_bash", "true").unwrap();
    config.set("skill_evolution.enabled", "true").unwrap();
    let env = env();
    let tool = &config.tools()[0];
    let values = tool.settings.with(&env);
    assert_eq!(values.path("path").unwrap().unwrap(), Path::new("here"));
    assert_eq!(values.whole("max_results").unwrap(), Some(7));
    assert_eq!(tool.use_path, "a.b:c");
    assert_eq!(tool.settings.raw("nested").unwrap()["b"]["c"], 1);
    assert_eq!(config.models()[0].settings.raw("script").unwrap(), "5");
    assert!(config.sandbox().unwrap().allow_host_bash);
    assert!(config.skill_evolution());
    config.set("tools.web_search.path", "").unwrap();
    assert_eq!(config.tools()[0].settings.raw("path"), None);
}

#[test]
fn a_value_that_has_no_place_is_refused() {
    let mut config = good();
    let lines: Vec<String> = [
        ("", "x"),
        ("tools", "x"),
        ("tools..path", "x"),
        ("tools.web_search", "x"),
        ("tools.web_serch.path", "x"),
        ("tools.bash.path", "x"),
        ("tools.web_search.name", "x"),
        ("tools.web_search.use", "5"),
        ("tools.web_search.max_results.deep", "5"),
        ("models.gpt.script", "x"),
        ("sandbox", "x"),
        ("sandbox.allow_host_bash", "maybe"),
        ("memory.enabled", "true"),
        ("tool.web_search.path", "x"),
        ("colour", "x"),
    ]
    .iter()
    .map(|(path, value)| config.set(path, value).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    cannot set ``: write it as section.key or section.name.key
    cannot set `tools`: name the entry and its key, as in tools.web_search.path
    cannot set `tools..path`: write it as section.key or section.name.key
    cannot set `tools.web_search`: name the entry and its key, as in tools.web_search.path
    cannot set `tools.web_serch.path`: there is no tool `web_serch` in the configuration; did you mean `web_search`?
    cannot set `tools.bash.path`: there is no tool `bash` in the configuration; there are web_search
    cannot set `tools.web_search.name`: a tool is renamed in the file
    cannot set `tools.web_search.use`: its value must be a text
    cannot set `tools.web_search.max_results.deep`: `max_results` is not a mapping there
    cannot set `models.gpt.script`: there is no model `gpt` in the configuration; there are default
    cannot set `sandbox`: name a key of the section, as in sandbox.allow_host_bash
    setting sandbox.allow_host_bash: `allow_host_bash` of sandbox must be true or false, not the string "maybe"
    cannot set `memory.enabled`: the section `memory` cannot be set from outside the file
    cannot set `tool.web_search.path`: there is no section `tool`; did you mean `tools`?
    cannot set `colour`: there is no section `colour`; there are tools, models, sandbox, skill_evolution, subagents, tool_search, uploads
    "#);
    assert!(!config.sandbox().unwrap().allow_host_bash);
}

#[test]
fn deerflows_own_example_is_accepted() {
    #[expect(clippy::disallowed_methods, reason = "a test asks for optional files")]
    let Ok(samples) = std::env::var("TINE_SAMPLES") else {
        eprintln!("skipped: TINE_SAMPLES names no folder of sample files");
        return;
    };
    let path = Path::new(&samples).join("deerflow/config.example.yaml");
    let config = Config::load(&path).unwrap();
    assert_eq!(config.tools().len(), 10);
    assert_eq!(config.tools()[0].name, "web_search");
}
