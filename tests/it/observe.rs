//! What a run tells of itself: to a log, and of what it used.

use crate::command::{Desk, news_report, shipped};

const PRICES: &str = "pricing: { currency: EUR, input_per_million: 2.5, output_per_million: 10 }";

/// A configuration with one scripted model for each of these lines of settings.
fn config(desk: &Desk, models: &[&str]) -> String {
    let script = shipped("graphs/news_report.script.yaml");
    let mut text = "models:\n".to_owned();
    for (settings, at) in models.iter().zip(1..) {
        text.push_str(&format!(
            "  - name: m{at}\n    use: tine.models.scripted:ScriptedModel\n    script: {script}\n    {settings}\n"
        ));
    }
    let shipped = std::fs::read_to_string(shipped("config/config.yaml")).unwrap();
    let (_, rest) = shipped.split_once("\ntool_groups:").unwrap();
    let corpus = crate::command::shipped("graphs/corpus");
    let rest = rest.replace("../graphs/corpus", &corpus);
    desk.file("config.yaml", &format!("{text}tool_groups:{rest}"))
}

#[test]
fn a_thread_shows_what_it_used_and_cost() {
    let mut desk = Desk::new();
    let config = config(&desk, &[PRICES]);
    let graph = news_report();
    let run = [
        "run", &graph, "find tea", "--thread", "tea", "--config", &config,
    ];
    assert_eq!(desk.tine(&run).code, 0);
    desk.record(&["threads", "show", "tea"]);
    let used = |desk: &Desk| {
        let shown = desk.tine(&["threads", "show", "tea", "--json"]).outcome();
        shown["usage"].clone()
    };
    let once = used(&desk);
    assert_eq!(once["currency"], "EUR");
    assert_eq!(once["models"]["m1"]["replies"], 4);
    assert_eq!(once["models"]["m1"]["estimated"], true);
    let tokens = |usage: &serde_json::Value| usage["tokens"].as_u64().unwrap();
    let parts = ["input_tokens", "output_tokens"];
    let parts = parts.map(|part| once["models"]["m1"][part].as_u64().unwrap());
    assert_eq!(tokens(&once), parts[0] + parts[1]);
    let cost = parts[0] as f64 * 2.5 + parts[1] as f64 * 10.0;
    // Each reply is rounded by itself.
    assert!(
        (once["cost_micros"].as_f64().unwrap() - cost).abs() < 4.0,
        "{once}"
    );
    // Another run of the thread adds to it.
    let outcome = desk.tine(&[&run[..], &["--json"]].concat()).outcome();
    let spent = outcome["spent"]["tokens"].as_u64().unwrap();
    assert_eq!(tokens(&used(&desk)), tokens(&once) + spent);
    desk.assert("usage");
}

#[test]
fn prices_that_can_not_be_read_or_added_up_are_told() {
    let mut desk = Desk::new();
    let graph = news_report();
    config(&desk, &["pricing: { currency: EUR, input_per_milion: 1 }"]);
    let run = [
        "run",
        &graph,
        "find tea",
        "--thread",
        "tea",
        "--config",
        "config.yaml",
    ];
    assert_eq!(desk.record(&run).code, 2);
    let dollars = PRICES.replace("EUR", "USD");
    config(&desk, &[PRICES, &dollars]);
    let ran = desk.tine(&run);
    assert_eq!(ran.code, 0);
    insta::assert_snapshot!(ran.stderr, @"note: config.yaml: the models have prices in EUR and USD, so no costs are counted");
    let shown = desk.tine(&["threads", "show", "tea", "--json"]).outcome();
    assert_eq!(shown["usage"]["cost_micros"], 0);
    desk.assert("prices_wrong");
}

/// The log without its times: `LEVEL spans: message`.
fn log(stderr: &str) -> String {
    let time = regex::Regex::new(r"(?m)^\d{4}-\S+Z +|time\.\w+=\S+ ?|\x1b\[[0-9;]*m").unwrap();
    let id = regex::Regex::new(r"[0-9a-f]{8}-[0-9a-f-]{27}|call_[0-9a-f]{32}").unwrap();
    let text = time.replace_all(stderr, "");
    let text = id.replace_all(&text, "<id>");
    let lines = text.lines().map(str::trim_end);
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_log_tells_runs_models_and_tools_and_nothing_that_was_said() {
    let desk = Desk::new();
    let graph = news_report();
    let ran = desk.run(&[
        "run",
        &graph,
        "find tea",
        "--thread",
        "tea",
        "--log",
        "tine=info",
    ]);
    assert_eq!(ran.code, 0);
    assert!(!ran.stderr.contains("find tea"), "{}", ran.stderr);
    insta::assert_snapshot!(log(&ran.stderr), @"
    INFO run{graph=news_report thread=tea}:model{model=default node=agent visit=1 messages=1 tools=6 finish=tool_calls calls=1 input_tokens=1004 output_tokens=7}: tine::model: close
    INFO run{graph=news_report thread=tea}:tool{tool=web_search id=<id> end=success}: tine::tool: close
    INFO run{graph=news_report thread=tea}:model{model=default node=agent visit=2 messages=3 tools=6 finish=tool_calls calls=1 input_tokens=1097 output_tokens=130}: tine::model: close
    INFO run{graph=news_report thread=tea}:tool{tool=write_file id=<id> end=success}: tine::tool: close
    INFO run{graph=news_report thread=tea}:model{model=default node=agent visit=3 messages=5 tools=6 finish=tool_calls calls=1 input_tokens=1227 output_tokens=15}: tine::model: close
    INFO run{graph=news_report thread=tea}:tool{tool=present_files id=<id> end=success}: tine::tool: close
    INFO run{graph=news_report thread=tea}:model{model=default node=agent visit=4 messages=7 tools=6 finish=stop calls=0 input_tokens=1270 output_tokens=21}: tine::model: close
    INFO run{graph=news_report thread=tea run=<id> exit=done}: tine::run: the run ended exit=done questions=0 tokens=4771 cost_micros=0
    INFO run{graph=news_report thread=tea run=<id> exit=done}: tine::run: close
    ");
    let quiet = desk.run(&["run", &graph, "find tea"]);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn the_environment_sets_a_log_and_the_command_another() {
    let desk = Desk::new();
    let graph = news_report();
    let run = |log: &str, args: &[&str]| {
        let config = shipped("config/config.yaml");
        let args = [&["run", &graph, "find tea", "--config", &config], args].concat();
        crate::command::finish(desk.command(&args).env("TINE_LOG", log))
    };
    let spans = |ran: &crate::command::Ran, span: &str| ran.stderr.contains(span);
    let ran = run("tine::step=debug", &[]);
    assert!(
        spans(&ran, "step{number=1 tasks=agent}") && !spans(&ran, "tool{"),
        "{}",
        ran.stderr
    );
    let ran = run("tine::step=debug", &["--log", "tine::tool=info"]);
    assert!(
        spans(&ran, "tool{tool=web_search") && !spans(&ran, "step{"),
        "{}",
        ran.stderr
    );
    assert_eq!(run("", &[]).stderr, "");
    for (ran, name) in [
        (run("tine=loud", &[]), "TINE_LOG"),
        (run("", &["--log", "tine=loud"]), "--log"),
    ] {
        assert_eq!((ran.code, &*ran.stdout), (2, ""));
        assert!(
            spans(&ran, &format!("error: `{name}` is `tine=loud`")),
            "{}",
            ran.stderr
        );
    }
}
