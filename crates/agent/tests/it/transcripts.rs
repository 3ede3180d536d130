//! Threads that hold what no provider takes, as other programs, trims and cancels leave them: what the model is sent,
//! what people are told, and that the thread keeps what it has.

use crate::fixture::{Bench, Say, call, react, sketch};
use crate::rules::broken;
use serde_json::{Value as Json, json};
use tine_engine::command::Op;
use tine_engine::message::ToolCall;
use tine_engine::run::UpdateAs;
use tine_engine::value::Value;
use tine_engine::{Exit, Message, Outcome, ThreadKey, Update, from_value};

fn user(text: &str) -> Json {
    json!({"role": "user", "content": text})
}

fn ai(text: &str, ids: &[&str]) -> Json {
    let calls: Vec<Json> = ids
        .iter()
        .map(|id| json!({"id": id, "name": "probe", "args": {"say": id}}))
        .collect();
    json!({"type": "ai", "content": text, "tool_calls": calls})
}

fn result(id: &str, text: &str) -> Json {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

fn kept(outcome: &Outcome) -> Vec<Message> {
    from_value(&outcome.values["messages"]).unwrap()
}

/// Sends these messages as one input, and compares what the model is sent and what people are told.
async fn check(messages: Vec<Json>, sent: &str, told: &[&str]) {
    let bench = Bench::new(&react("", ""), vec![Say::Text("done")]);
    let given = messages.len();
    let (outcome, notes) = bench
        .hear(Update::new().set("messages", Value::from(Json::from(messages.clone()))))
        .await;
    assert_eq!(outcome.exit, Exit::Done);
    {
        let requests = bench.requests.lock().unwrap();
        assert_eq!(sketch(&requests[0].messages), sent);
        assert_eq!(broken(&requests[0]), Vec::<String>::new());
    }
    let told: Vec<String> = told
        .iter()
        .map(|told| format!("of the conversation left out of the request: {told}"))
        .collect();
    let notes: Vec<&str> = notes
        .iter()
        .map(|note| &note[note.find("of the").unwrap()..])
        .collect();
    assert_eq!(notes, told);
    // The thread keeps all of it, as it came.
    let kept = kept(&outcome);
    assert_eq!(kept.len(), given + 1);
    for (kept, given) in kept.iter().zip(&messages) {
        let given = Message::from_value(&given.clone().into()).unwrap();
        assert_eq!(
            Message {
                id: given.id.clone(),
                ..kept.clone()
            },
            given
        );
    }
}

#[tokio::test]
async fn a_call_without_a_result_is_given_one() {
    check(
        vec![
            user("go"),
            ai("", &["a", "b", "c"]),
            result("a", "1"),
            result("c", "3"),
            user("and?"),
        ],
        "human(go) ai()[a b c] a=1 b=unknown c=3 human(and?)",
        &[],
    )
    .await;
    check(
        vec![
            user("go"),
            ai("I look.", &["x1"]),
            user("stop"),
            user("hello?"),
        ],
        "human(go) ai(I look.)[x1] x1=unknown human(stop) human(hello?)",
        &[],
    )
    .await;
    let two = vec![
        user("go"),
        ai("", &["a"]),
        user("go on"),
        ai("", &["b", "c"]),
        result("b", "2"),
        user("well"),
    ];
    check(
        two,
        "human(go) ai()[a] a=unknown human(go on) ai()[b c] b=2 c=unknown human(well)",
        &[],
    )
    .await;
}

#[tokio::test]
async fn what_stands_between_a_call_and_its_result_comes_after_it() {
    check(
        vec![
            user("go"),
            ai("", &["a", "b"]),
            user("warning"),
            result("a", "1"),
            result("b", "2"),
        ],
        "human(go) ai()[a b] a=1 b=2 human(warning)",
        &[],
    )
    .await;
    check(
        vec![
            ai("", &["p", "q", "r"]),
            result("r", "3"),
            user("one"),
            result("p", "1"),
            user("two"),
            result("q", "2"),
        ],
        "ai()[p q r] p=1 q=2 r=3 human(one) human(two)",
        &[],
    )
    .await;
    check(
        vec![result("a", "1"), user("go"), ai("", &["a"]), user("so?")],
        "human(go) ai()[a] a=1 human(so?)",
        &[],
    )
    .await;
}

#[tokio::test]
async fn results_of_no_call_are_left_out_and_told() {
    let null = json!({"role": "tool", "tool_call_id": null, "content": "?"});
    check(
        vec![user("go"), result("nobody", "4"), null.clone(), user("so?")],
        "human(go) human(so?)",
        &["2 are results of no call"],
    )
    .await;
    check(
        vec![ai("", &["a"]), result("a", "1"), result("b", "2")],
        "ai()[a] a=1",
        &["1 is the result of no call"],
    )
    .await;
    check(
        vec![
            user("go"),
            ai("", &["a"]),
            result("a", "old"),
            null,
            user(""),
            result("a", "new"),
            ai("", &[]),
        ],
        "human(go) ai()[a] a=new",
        &["1 is the result of no call, 1 is an earlier result of its call, 2 say nothing"],
    )
    .await;
}

#[tokio::test]
async fn an_id_that_comes_again_is_another_call() {
    check(
        vec![
            ai("", &["call_0"]),
            result("call_0", "1"),
            ai("", &["call_0", "call_0"]),
            result("call_0", "2"),
            result("call_0", "3"),
        ],
        "ai()[call_0] call_0=1 ai()[call_0_2 call_0_3] call_0_2=2 call_0_3=3",
        &[],
    )
    .await;
    check(
        vec![ai("", &["", ""]), result("", "1"), user("so?")],
        "ai()[call_1 call_2] call_1=1 call_2=unknown human(so?)",
        &[],
    )
    .await;
}

#[tokio::test]
async fn instructions_within_a_conversation_stand_before_it() {
    let system = |text: &str| json!({"role": "system", "content": text});
    let messages = vec![
        system("Be kind."),
        user("go"),
        ai("", &["a"]),
        system("It is late."),
        result("a", "1"),
    ];
    let bench = Bench::new(
        &react("    system: You are a poet.", ""),
        vec![Say::Text("done")],
    );
    let input = Update::new().set("messages", Value::from(Json::from(messages)));
    let outcome = bench.invoke(input).await;
    assert_eq!(
        sketch(&kept(&outcome)),
        "system(be kind.) human(go) ai()[a] system(it is late.) a=1 ai(done)"
    );
    let requests = bench.requests.lock().unwrap();
    assert_eq!(sketch(&requests[0].messages), "human(go) ai()[a] a=1");
    assert_eq!(
        requests[0].system.as_deref(),
        Some("You are a poet.\n\nBe kind.\n\nIt is late.")
    );
}

#[tokio::test]
async fn what_is_left_out_is_told_once_a_run() {
    let lines = vec![
        Say::Calls(vec![call("probe", &json!({"say": "1"}))]),
        Say::Calls(vec![call("probe", &json!({"say": "2"}))]),
        Say::Text("done"),
        Say::Text("done"),
    ];
    let bench = Bench::new(&react("", ""), lines);
    let messages = Json::from(vec![user("go"), result("x", "1")]);
    let input = Update::new().set("messages", Value::from(messages));
    let (outcome, notes) = bench.hear(input).await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(bench.requests.lock().unwrap().len(), 3);
    let note = "1 entry of the conversation left out of the request: 1 is the result of no call";
    assert_eq!(notes, [note]);
    let (_, notes) = bench.hear(Update::new().set("messages", "again")).await;
    assert_eq!(notes, [note]);
}

#[tokio::test]
async fn what_comes_to_be_left_out_during_a_run_is_told_then() {
    let lines = vec![
        Say::Calls(vec![call("probe", &json!({"say": "1"}))]),
        Say::Text("done"),
    ];
    // A node between that writes what answers nothing.
    let graph = react("", "").replace("    then: agent\n", "    then: more\n")
        + "  more:\n    type: set\n    set:\n      messages:\n        - role: tool\n          tool_call_id: lost\n          \
           content: \"4\"\n    then: agent\n";
    let (outcome, notes) = Bench::new(&graph, lines)
        .hear(Update::new().set("messages", "go"))
        .await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(
        notes,
        ["1 entry of the conversation left out of the request: 1 is the result of no call"]
    );
}

#[tokio::test]
async fn a_trim_that_cuts_through_a_turn_leaves_a_thread_that_goes_on() {
    let calls = vec![
        call("probe", &json!({"say": "1"})),
        call("probe", &json!({"say": "2"})),
    ];
    // The ids of what is trimmed, by place.
    for (trimmed, sent, told) in [
        (
            vec![0],
            "ai()[c0.0 c0.1] c0.0=1 c0.1=2 ai(done) human(so?)",
            None,
        ),
        (
            vec![1],
            "human(go) ai(done) human(so?)",
            Some("2 are results of no call"),
        ),
        (
            vec![2],
            "human(go) ai()[c0.0 c0.1] c0.0=unknown c0.1=2 ai(done) human(so?)",
            None,
        ),
        (
            vec![0, 1, 2],
            "ai(done) human(so?)",
            Some("1 is the result of no call"),
        ),
        (vec![0, 1, 2, 3, 4], "human(so?)", None),
    ] {
        let lines = vec![
            Say::Calls(calls.clone()),
            Say::Text("done"),
            Say::Text("fine"),
        ];
        let bench = Bench::new(&react("", ""), lines);
        let outcome = bench.send("go").await;
        let messages = kept(&outcome);
        let ops = trimmed
            .iter()
            .map(|place| Op::Remove(messages[*place].id.clone().unwrap()));
        let trim = Update::new().ops("messages", ops);
        let thread = ThreadKey::local("t");
        let by = UpdateAs::Start;
        bench.runner.update(&thread, by, trim).await.unwrap();
        let (outcome, notes) = bench.hear(Update::new().set("messages", "so?")).await;
        assert_eq!(outcome.exit, Exit::Done);
        let requests = bench.requests.lock().unwrap();
        assert_eq!(sketch(&requests[2].messages), sent);
        assert_eq!(broken(&requests[2]), Vec::<String>::new());
        let notes: Vec<&str> = notes
            .iter()
            .filter_map(|note| Some(note.split_once("request: ")?.1))
            .collect();
        assert_eq!(notes, told.into_iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_conversation_of_nothing_is_not_sent() {
    let bench = Bench::new(&react("", ""), Vec::new());
    let outcome = bench.send(" ").await;
    assert_eq!(
        outcome.exit.error().map(ToString::to_string).as_deref(),
        Some(
            "node `agent` failed: there is nothing to ask the model: `messages` holds no message with content, \
             and the node has no `system` and no `prompt` that says something"
        )
    );
    assert!(bench.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn calls_of_one_reply_get_ids_of_their_own() {
    let call = |id: &str, say: &str| {
        tine_models::ReplyCall::Valid(ToolCall {
            name: "probe".into(),
            args: json!({"say": say}).into(),
            id: id.into(),
        })
    };
    let calls = vec![
        call("x", "1"),
        call("", "2"),
        call("x", "3"),
        call(" ", "4"),
    ];
    let lines = vec![
        Say::Reply(calls, tine_models::FinishReason::ToolCalls),
        Say::Text("done"),
    ];
    let bench = Bench::new(&react("", ""), lines);
    let outcome = bench.send("go").await;
    assert_eq!(outcome.exit, Exit::Done);
    let messages = kept(&outcome);
    let ids: std::collections::BTreeSet<_> = messages[1]
        .tool_calls
        .iter()
        .map(|call| call.id.trim().to_owned())
        .collect();
    assert!(
        ids.len() == 4 && !ids.contains("") && ids.contains("x"),
        "{ids:?}"
    );
    for (call, (result, say)) in messages[1]
        .tool_calls
        .iter()
        .zip(messages[2..].iter().zip(["1", "2", "3", "4"]))
    {
        assert_eq!(result.tool_call_id.as_ref(), Some(&call.id));
        assert_eq!(result.content.text(), say);
    }
}
