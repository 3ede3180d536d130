//! The tools node.

use crate::fixture::{Bench, Say, ask, asking, call, conversation, react};
use serde_json::json;
use tine_engine::{Exit, Input, Resume, Update};

async fn check(calls: Vec<(&'static str, String)>, expected: &str, log: &[&str]) {
    let bench = Bench::new(&react("", ""), vec![Say::Calls(calls), Say::Text("done")]);
    let outcome = bench.send("go").await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(
        conversation(&outcome),
        format!("Human: go\n{expected}\nAi: done")
    );
    assert_eq!(bench.log(), log);
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_calls_whoever_ends_first() {
    let calls = vec![
        call("probe", &json!({"say": "slow", "millis": 20})),
        call("probe", &json!({"say": "quick", "millis": 10})),
    ];
    let expected = "Ai calls probe, probe\nTool Success: slow\nTool Success: quick";
    check(
        calls,
        expected,
        &["slow begins", "quick begins", "quick ends", "slow ends"],
    )
    .await;
}

#[tokio::test]
async fn nothing_runs_beside_a_tool_that_must_be_alone() {
    let calls = vec![
        call("probe", &json!({"say": "one", "millis": 20})),
        call("alone", &json!({"say": "two", "millis": 10})),
        call("probe", &json!({"say": "three", "millis": 10})),
    ];
    let expected =
        "Ai calls probe, alone, probe\nTool Success: one\nTool Success: two\nTool Success: three";
    let log = [
        "one begins",
        "one ends",
        "two begins",
        "two ends",
        "three begins",
        "three ends",
    ];
    check(calls, expected, &log).await;
}

#[tokio::test]
async fn an_error_is_a_message_and_the_run_goes_on() {
    let calls = vec![
        call("probe", &json!({"say": "a", "fail": "the disk is gone"})),
        call("probe", &json!({"say": "b"})),
    ];
    let expected = "Ai calls probe, probe\nTool Error: the disk is gone\nTool Success: b";
    check(
        calls,
        expected,
        &["a begins", "a ends", "b begins", "b ends"],
    )
    .await;
}

#[tokio::test]
async fn a_tool_that_panics_fails_its_own_call() {
    let calls = vec![
        call("effect", &json!({"say": "sent", "millis": 10})),
        call("probe", &json!({"say": "x", "fail": "panic"})),
    ];
    let bench = Bench::new(&react("", ""), vec![Say::Calls(calls), Say::Text("done")]);
    let outcome = bench.send("go").await;
    insta::assert_snapshot!(conversation(&outcome), @"
    Human: go
    Ai calls effect, probe
    Tool Success: sent
    Tool Error: the tool panicked: a bug
    Ai: done
    ");
    assert_eq!(
        bench.log(),
        ["sent begins", "x begins", "x ends", "sent ends"]
    );
}

#[tokio::test]
async fn a_call_of_nothing_names_what_there_is() {
    let expected = "Ai calls prob\nTool Error: There is no tool `prob`. Did you mean `probe`? \
                    The tools are: ask_clarification, probe, alone, effect.";
    check(vec![call("prob", &json!({}))], expected, &[]).await;
}

#[tokio::test]
async fn wrong_arguments_run_nothing() {
    let bench = Bench::new(
        &react("", ""),
        vec![
            Say::Calls(vec![
                call("probe", &json!({"say": 7})),
                ("probe", "{\"say\": \"cut".to_owned()),
            ]),
            Say::Text("done"),
        ],
    );
    let outcome = bench.send("go").await;
    assert!(bench.log().is_empty());
    insta::assert_snapshot!(conversation(&outcome), @r#"
    Human: go
    Ai calls probe
    Tool Error: probe was not run, because its arguments are wrong:
    - `say`: expected a string, got the number 7
    Tool Error: The call of `probe` was not made: the arguments are not valid JSON: EOF while parsing a string at line 1 column 12 of {"say": "cut. Send the call again with the arguments as one complete JSON object.
    Ai: done
    "#);
}

#[tokio::test]
async fn a_question_waits_for_the_other_calls_and_they_are_not_made_again() {
    for tool in ["probe", "effect"] {
        let calls = vec![
            ask("which?"),
            call(tool, &json!({"say": "work", "millis": 10})),
        ];
        let bench = Bench::new(&react("", ""), vec![Say::Calls(calls), Say::Text("done")]);
        let outcome = bench.send("go").await;
        assert_eq!(outcome.exit, Exit::Interrupted);
        assert_eq!(outcome.interrupts.len(), 1);
        assert_eq!(
            outcome.interrupts[0].payload.get("question"),
            Some(&"which?".into())
        );
        assert_eq!(bench.log(), ["work begins", "work ends"]);

        let outcome = bench.invoke(Resume::value("that one")).await;
        assert_eq!(outcome.exit, Exit::Done);
        let expected = format!(
            "Human: go\nAi calls ask_clarification, {tool}\nTool Success: that one\nTool Success: work\nAi: done"
        );
        assert_eq!(conversation(&outcome), expected);
        assert_eq!(bench.log(), ["work begins", "work ends"]);
    }
}

#[tokio::test]
async fn two_questions_of_one_message_are_answered_together() {
    let bench = Bench::new(
        &react("", ""),
        vec![
            Say::Calls(vec![ask("one?"), ask("two?")]),
            Say::Text("done"),
        ],
    );
    let outcome = bench.send("go").await;
    let questions: Vec<_> = outcome
        .interrupts
        .iter()
        .map(|asked| (asked.id, asked.payload.get("question").cloned()))
        .collect();
    assert_eq!(questions.len(), 2);
    let answers = questions.iter().map(|(id, question)| {
        (
            *id,
            format!("answer to {}", question.as_ref().unwrap().as_str().unwrap()),
        )
    });
    let outcome = bench.invoke(Resume::by_id(answers)).await;
    insta::assert_snapshot!(conversation(&outcome), @"
    Human: go
    Ai calls ask_clarification, ask_clarification
    Tool Success: answer to one?
    Tool Success: answer to two?
    Ai: done
    ");
}

#[tokio::test]
async fn a_graph_that_asks_is_left_one_question_of_a_message() {
    let wrong = call("ask_clarification", &json!({}));
    let calls = vec![
        wrong,
        ask("one?"),
        call("probe", &json!({"say": "work"})),
        ask("two?"),
    ];
    let bench = Bench::new(&asking(), vec![Say::Calls(calls), Say::Text("done")]);
    let outcome = bench.send("go").await;
    let asked: Vec<_> = outcome
        .interrupts
        .iter()
        .map(|asked| asked.payload.get("question"))
        .collect();
    assert_eq!(asked, [Some(&"one?".into())]);
    let outcome = bench.invoke(Resume::value("this")).await;
    insta::assert_snapshot!(conversation(&outcome), @"
    Human: go
    Ai calls ask_clarification, ask_clarification, probe, ask_clarification
    Tool Error: ask_clarification was not run, because its arguments are wrong:
    - `question`: is missing and required: a string
    Tool Success: work
    Tool Error: One question at a time: the user is asked another one first. Ask again after the answer.
    Tool: this
    Ai: done
    ");
    let requests = bench.requests.lock().unwrap();
    let told = requests[1].messages.iter().map(|said| said.content.text());
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
    go

    ask_clarification was not run, because its arguments are wrong:
    - `question`: is missing and required: a string
    this
    work
    One question at a time: the user is asked another one first. Ask again after the answer.
    ");
}

#[tokio::test]
async fn new_input_keeps_what_open_calls_came_to() {
    let calls = vec![ask("which?"), call("effect", &json!({"say": "sent"}))];
    let lines = vec![Say::Calls(calls), Say::Text("done")];
    let bench = Bench::new(&react("", ""), lines);
    assert_eq!(bench.send("go").await.exit, Exit::Interrupted);
    let outcome = bench.send("never mind").await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(bench.log(), ["sent begins", "sent ends"]);
    insta::assert_snapshot!(conversation(&outcome), @"
    Human: go
    Ai calls ask_clarification, effect
    Tool Error: Cancelled: the user went on with another message before this call was made.
    Tool Success: sent
    Human: never mind
    Ai: done
    ");
}

#[tokio::test]
async fn new_input_that_abandons_a_call_says_that_nobody_knows() {
    let calls = vec![call("effect", &json!({"say": "sent", "millis": 10}))];
    let bench = Bench::new(&react("", ""), vec![Say::Calls(calls), Say::Text("done")]);
    let go = Update::new().set("messages", "go");
    bench.cut(go, "effect").await;
    assert_eq!(bench.send("what did you do?").await.exit, Exit::Done);
    let requests = bench.requests.lock().unwrap();
    let told = requests[1].messages.iter().map(|said| said.content.text());
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
    go

    Cancelled: the user went on with another message. This call had begun, and it is not known whether it took place.
    what did you do?
    ");
}

#[tokio::test]
async fn a_label_leads_where_the_node_maps_it() {
    let graph = react("", "    routes: { aside: note }")
        + "  note:\n    type: set\n    set: { notes: aside }\n    then: agent\n";
    let routed = vec![call(
        "probe",
        &json!({"say": "off", "route": "aside", "write": "notes"}),
    )];
    let bench = Bench::new(&graph, vec![Say::Calls(routed), Say::Text("done")]);
    let outcome = bench.send("go").await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(
        outcome.values["notes"].to_canonical(),
        r#"["written","aside"]"#
    );
}

async fn check_failure(tools: &str, args: serde_json::Value, expected: &str) {
    let bench = Bench::new(
        &react("", tools),
        vec![Say::Calls(vec![call("probe", &args)])],
    );
    let outcome = bench.send("go").await;
    assert_eq!(
        outcome.exit.error().map(ToString::to_string).as_deref(),
        Some(expected)
    );
}

#[tokio::test]
async fn what_a_manifest_does_not_say_is_an_error_that_names_tool_and_node() {
    check_failure(
        "",
        json!({"say": "x", "route": "aside"}),
        "node `act` failed: tool `probe` takes the route `aside`, and node `act` does not map it; \
         add `routes: { aside: <node> }` to the node",
    )
    .await;
    check_failure(
        "",
        json!({"say": "x", "route": "elsewhere"}),
        "node `act` failed: tool `probe` in node `act` takes the route `elsewhere`, which its manifest does not name",
    )
    .await;
    check_failure(
        "",
        json!({"say": "x", "write": "messages"}),
        "node `act` failed: tool `probe` in node `act` writes `messages`, which its manifest does not name",
    )
    .await;
}

#[tokio::test]
async fn a_result_that_can_not_be_used_is_not_recorded() {
    let args = json!({"say": "x", "write": "messages"});
    let bench = Bench::new(&react("", ""), vec![Say::Calls(vec![call("probe", &args)])]);
    assert_eq!(bench.send("go").await.exit.name(), "failed");
    assert_eq!(bench.invoke(Input::Continue).await.exit.name(), "failed");
    let twice = ["x begins", "x ends", "x begins", "x ends"];
    assert_eq!(bench.log(), twice);
}

#[tokio::test]
async fn a_node_may_fail_with_its_tool() {
    check_failure(
        "    on_tool_error: fail",
        json!({"say": "x", "fail": "no"}),
        "node `act` failed: tool `probe`: no",
    )
    .await;
}
