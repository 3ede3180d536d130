#![allow(clippy::unwrap_used)]

use std::path::Path;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::fixture::Fixture;
use crate::output::ToolOutput;
use crate::schema::{ArgSchema, Args};
use crate::spec::{Source, ToolSpec};

const CONFIG: &str = "\
models:
  - {name: default, use: tine.models.scripted:ScriptedModel, supports_vision: true}
memory: {enabled: true}
tools:
  - name: web_search
    group: web
    use: tine.community.local:web_search_tool
    path: corpus
    max_result: 3
  - name: web_fetch
    group: web
    use: deerflow.community.jina_ai.tools:web_fetch_tool
  - name: web_search
    group: web
    use: tine.community.local:web_search_tool
    path: other
  - name: look_up
    group: web
    use: deerflow.community.tavily.tools:web_search_tool
    api_key: $UNSET
  - name: ls
    group: file:read
    use: deerflow.sandbox.tools:ls_tool
  - name: save
    group: file:write
    use: deerflow.sandbox.tools:write_file_tool
  - name: bash
    group: bash
    use: deerflow.sandbox.tools:bash_tool
  - name: sneaky
    group: web
    use: deerflow.sandbox.tools:bash_tool
sandbox:
  use: deerflow.sandbox.local:LocalSandboxProvider
";

fn config(text: &str) -> Config {
    Config::parse(text, Path::new("config.yaml")).unwrap()
}

fn all(text: &str) -> Result<(Toolbox, AssemblyReport), AssemblyError> {
    assemble(&config(text), &Extensions::default(), &Scene::default())
}

struct Echo(ToolSpec);

impl Echo {
    fn named(source: Source, name: &str) -> Arc<dyn Tool> {
        let args = ArgSchema::literal(r#"{"type": "object"}"#);
        Arc::new(Self(ToolSpec::new(source, name, "Says it back.", args)))
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(
            serde_json::Value::Object(args).to_string(),
        ))
    }
}

#[test]
fn every_decision_is_a_line_of_the_report() {
    let (toolbox, report) = all(CONFIG).unwrap();
    insta::assert_snapshot!(report);
    assert_eq!(
        toolbox.names().collect::<Vec<_>>(),
        [
            "web_search",
            "ls",
            "save",
            "present_files",
            "ask_clarification"
        ]
    );
}

#[test]
fn the_report_is_data_too() {
    let (_, report) = all("tools: []").unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["tools"], json!(["present_files", "ask_clarification"]));
    let about: Vec<&Decision> = report.about("present_files").collect();
    assert_eq!(
        serde_json::to_value(about).unwrap(),
        json!([{"step": "builtin", "tool": "present_files", "verdict": "kept", "reason": "always"}])
    );
}

#[test]
fn a_scene_takes_groups_and_lists() {
    let check = |scene: Scene, expected: &[&str]| {
        let (toolbox, _) = assemble(&config(CONFIG), &Extensions::default(), &scene).unwrap();
        assert_eq!(toolbox.names().collect::<Vec<_>>(), expected, "{scene:?}");
    };
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let built_in = ["present_files", "ask_clarification"];
    check(
        Scene {
            groups: Some(vec![]),
            ..Scene::default()
        },
        &built_in,
    );
    check(
        Scene {
            groups: Some(names(&["web"])),
            ..Scene::default()
        },
        &["web_search", "present_files", "ask_clarification"],
    );
    check(
        Scene {
            allow: Some(names(&["save", "ls", "none"])),
            ..Scene::default()
        },
        &["ls", "save"],
    );
    check(
        Scene {
            groups: Some(vec![]),
            deny: names(&["ask_clarification"]),
            ..Scene::default()
        },
        &["present_files"],
    );
    check(
        Scene {
            groups: Some(vec![]),
            non_interactive: true,
            ..Scene::default()
        },
        &["present_files"],
    );
}

#[test]
fn a_missing_name_on_an_allow_list_is_said() {
    let scene = Scene {
        allow: Some(vec!["present_file".to_owned()]),
        ..Scene::default()
    };
    let (_, report) = assemble(&config(""), &Extensions::default(), &scene).unwrap();
    let said: Vec<&Decision> = report.about("present_file").collect();
    insta::assert_snapshot!(said[0].reason, @"allowed, but there is no such tool; did you mean `present_files`?");
}

#[test]
fn of_two_tools_with_one_name_the_nearer_source_wins() {
    let mut extensions = Extensions::default();
    extensions.registry = extensions
        .registry
        .with_tool("host.tools:echo", Echo::named(Source::Config, "echo"));
    extensions.mcp = vec![
        Echo::named(Source::Mcp, "present_files"),
        Echo::named(Source::Mcp, "shared"),
        Echo::named(Source::Mcp, "bad name"),
    ];
    extensions.acp = vec![
        Echo::named(Source::Acp, "shared"),
        Echo::named(Source::Acp, "ls"),
    ];
    let text = "tools:\n  - {name: ls, group: g, use: 'host.tools:echo'}\n";
    let (toolbox, report) = assemble(&config(text), &extensions, &Scene::default()).unwrap();
    let ids: Vec<String> = toolbox
        .iter()
        .map(|tool| {
            format!(
                "{} = {:?} {}",
                tool.name(),
                tool.id().source,
                tool.id().name
            )
        })
        .collect();
    insta::assert_snapshot!(ids.join("\n"), @"
    ls = Config echo
    present_files = Builtin present_files
    ask_clarification = Builtin ask_clarification
    shared = Mcp shared
    ");
    let dropped: Vec<String> = report
        .decisions
        .iter()
        .filter(|d| d.verdict == Verdict::Dropped && d.step >= Step::External)
        .map(|d| format!("{}: {}", d.tool.as_deref().unwrap_or_default(), d.reason))
        .collect();
    insta::assert_snapshot!(dropped.join("\n"), @"
    bad name: MCP: models cannot call a tool of this name
    present_files: MCP: shadowed by the one of the same name from the built-in tools
    shared: ACP: shadowed by the one of the same name from MCP
    ls: ACP: shadowed by the one of the same name from config, config.yaml:2:5
    ");
}

#[test]
fn a_shell_needs_protection_or_permission() {
    let check = |sandbox: &str, expected: bool| {
        let text =
            format!("tools:\n  - {{name: sh, group: bash, use: 'host.tools:echo'}}\n{sandbox}\n");
        let mut extensions = Extensions::default();
        extensions.registry = extensions
            .registry
            .with_tool("host.tools:echo", Echo::named(Source::Config, "echo"));
        let (toolbox, _) = assemble(&config(&text), &extensions, &Scene::default()).unwrap();
        assert_eq!(toolbox.get("sh").is_some(), expected, "{sandbox}");
    };
    let local = "deerflow.sandbox.local:LocalSandboxProvider";
    check("", false);
    check(&format!("sandbox: {{use: '{local}'}}"), false);
    check(
        &format!("sandbox: {{use: '{local}', allow_host_bash: true}}"),
        true,
    );
    check(
        "sandbox: {use: 'my.deerflow.sandbox.local.x:LocalSandboxProvider'}",
        false,
    );
    check(
        "sandbox: {use: 'deerflow.community.aio_sandbox:AioSandboxProvider', allow_host_bash: true}",
        false,
    );
}

#[test]
fn what_cannot_be_assembled_is_told_with_its_place() {
    let mut lines = Vec::new();
    let tool = |rest: &str| format!("tools:\n  - name: web_search\n    group: web\n    {rest}\n");
    for text in [
        tool("use: tine.community.locl:web_search_tool"),
        tool("use: deerflow.community.tavly.tools:web_search_tool"),
        tool("use: nonsense"),
        tool("use: tine.community.local:web_search_tool"),
        tool("use: tine.community.local:web_search_tool\n    path: 5"),
        tool("use: tine.community.local:web_search_tool\n    path: $CORPUS"),
        tool("use: tine.community.local:web_search_tool\n    path: x\n    max_results: many"),
        tool("use: tine.community.local:web_search_tool\n    path: x\n    max_results: 0"),
        tool("use: tine.community.local:web_search_tool\n    path: x\n    max_results: 1000000"),
        "tools:\n  - {name: web search, group: g, use: u}".to_owned(),
        "tools:\n  - {name: '', group: g, use: u}".to_owned(),
        format!("tools:\n  - {{name: {}, group: g, use: u}}", "x".repeat(65)),
        "sandbox: {use: 'deerflow.sandbox.locl:LocalSandboxProvider'}".to_owned(),
    ] {
        lines.push(match all(&text) {
            Ok((_, report)) => format!("accepted: {report}"),
            Err(error) => error.to_string(),
        });
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    config.yaml:4:5: the tool `web_search` uses `tine.community.locl:web_search_tool`, which is not known; did you mean `tine.community.local:web_search_tool`?
    config.yaml:4:5: the tool `web_search` uses `deerflow.community.tavly.tools:web_search_tool`, which is not known; did you mean `deerflow.community.tavily.tools:web_search_tool`?
    config.yaml:4:5: the tool `web_search` uses `nonsense`, which is not known
    config.yaml:2:5: tools.web_search needs `path`
    config.yaml:5:5: `path` of tools.web_search must be a text, not the number 5
    config.yaml:5:5: `path` of tools.web_search is $CORPUS, and there is no environment variable CORPUS: set it, or write the value in its place
    config.yaml:6:5: `max_results` of tools.web_search must be a whole number of 0 or more, not the string "many"
    config.yaml:6:5: `max_results` of tools.web_search must be a whole number from 1 to 50, not the number 0
    config.yaml:6:5: `max_results` of tools.web_search must be a whole number from 1 to 50, not the number 1000000
    config.yaml:2:5: `web search` cannot be the name of a tool: use 1 to 64 of the characters A-Z a-z 0-9 _ -
    config.yaml:2:5: `` cannot be the name of a tool: use 1 to 64 of the characters A-Z a-z 0-9 _ -
    config.yaml:2:5: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` cannot be the name of a tool: use 1 to 64 of the characters A-Z a-z 0-9 _ -
    config.yaml:1:11: the sandbox uses `deerflow.sandbox.locl:LocalSandboxProvider`, which is not known; did you mean `deerflow.sandbox.local:LocalSandboxProvider`?
    "#);
}

#[tokio::test]
async fn a_tool_answers_to_the_name_the_configuration_gives() {
    let f = Fixture::new();
    let (toolbox, _) = all(CONFIG).unwrap();
    let save = toolbox.get("save").unwrap();
    assert_eq!(save.spec().group.as_deref(), Some("file:write"));
    assert_eq!(save.id().name, "write_file");
    assert!(toolbox.get("write_file").is_none());
    assert_eq!(toolbox.nearest("safe"), Some("save"));
    let error = save.call(&f.cx, json!({"path": 1})).await.unwrap_err();
    insta::assert_snapshot!(error, @"
    save was not run, because its arguments are wrong:
    - `content`: is missing and required: a string
    - `path`: expected a string, got the number 1
    ");
}

#[test]
fn relative_paths_are_taken_from_the_file_and_overrides_as_they_are() {
    let text = "tools:\n  - {name: web_search, group: web, use: 'tine.community.local:web_search_tool', path: corpus}";
    let mut config = Config::parse(text, Path::new("/srv/conf/config.yaml")).unwrap();
    let path = |config: &Config| {
        let env = BTreeMap::new();
        config.tools()[0]
            .settings
            .with(&env)
            .path("path")
            .unwrap()
            .unwrap()
    };
    assert_eq!(path(&config), Path::new("/srv/conf/corpus"));
    config.set("tools.web_search.path", "mine").unwrap();
    assert_eq!(path(&config), Path::new("mine"));
}

#[test]
fn deerflows_own_example_assembles() {
    #[expect(clippy::disallowed_methods, reason = "a test asks for optional files")]
    let Ok(samples) = std::env::var("TINE_SAMPLES") else {
        eprintln!("skipped: TINE_SAMPLES names no folder of sample files");
        return;
    };
    let config = Config::load(&Path::new(&samples).join("deerflow/config.example.yaml")).unwrap();
    let (toolbox, _) = assemble(&config, &Extensions::default(), &Scene::default()).unwrap();
    assert_eq!(
        toolbox.names().collect::<Vec<_>>(),
        [
            "ls",
            "read_file",
            "write_file",
            "present_files",
            "ask_clarification"
        ]
    );
}

#[tokio::test]
async fn the_configuration_that_ships_finds_what_it_is_asked_for() {
    let f = Fixture::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/config.yaml");
    let config = Config::load(&path).unwrap();
    assert_eq!(config.notes(), [""; 0]);
    let (toolbox, report) = assemble(&config, &Extensions::default(), &Scene::default()).unwrap();
    assert!(!report.decisions.iter().any(|d| d.step == Step::Names));
    let mut lines = Vec::new();
    for query in [
        "今天 AI 新闻",
        "搜今天 AI 新闻并存成 Markdown",
        "AI news today",
        "固态电池",
        "old batteries",
        "春茶",
        "tea",
        "night trains",
        "铁路信号",
        "人工智能",
        "深海采矿",
        "README",
    ] {
        let search = toolbox.get("web_search").unwrap();
        let output = search.call(&f.cx, json!({"query": query})).await.unwrap();
        let text = output.reply().unwrap_or_default().text();
        let hits: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let urls: Vec<&str> = hits
            .iter()
            .map(|hit| hit["url"].as_str().unwrap())
            .collect();
        lines.push(format!(
            "{query}: {}",
            urls.join(" ").replace("local:/", "")
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    今天 AI 新闻: ai-newsroom.txt ai-beichuan-model.md ai-chip-lab.md ai-audit-rules.md
    搜今天 AI 新闻并存成 Markdown: ai-newsroom.txt ai-beichuan-model.md ai-chip-lab.md ai-audit-rules.md
    AI news today: ai-chip-lab.md ai-newsroom.txt ai-audit-rules.md ai-beichuan-model.md
    固态电池: battery-solid-state.md
    old batteries: battery-recycling.md
    春茶: tea-spring.md
    tea: tea-cellar.md
    night trains: night-train.html battery-recycling.md
    铁路信号: rail-signals.md
    人工智能: ai-audit-rules.md ai-beichuan-model.md
    深海采矿: 
    README:
    ");
    assert_eq!(f.heard.notes.lock().unwrap().len(), 0);
}
