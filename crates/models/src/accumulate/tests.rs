use super::*;
use proptest::prelude::*;

fn call(index: u32, id: &str, name: &str, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        index,
        id: Some(id.into()),
        name: Some(name.into()),
        arguments: arguments.to_owned(),
        ..ToolCallDelta::default()
    })
}

fn fold(deltas: &[Delta]) -> ModelReply {
    let mut reply = Accumulator::new();
    for delta in deltas {
        reply.push(delta);
    }
    reply.finish("m", &ModelRequest::default())
}

fn show(call: &ReplyCall) -> String {
    match call {
        ReplyCall::Valid(call) => format!("{} {} {}", call.id, call.name, call.args),
        ReplyCall::Invalid(call) => format!(
            "{} {} invalid {:?}: {}",
            call.id.as_deref().unwrap_or("-"),
            call.name.as_deref().unwrap_or("-"),
            call.args.as_deref().unwrap_or("-"),
            call.error.as_deref().unwrap_or("-"),
        ),
    }
}

fn check(deltas: &[Delta], expected: &[&str]) {
    let reply = fold(deltas);
    assert_eq!(reply.calls.iter().map(show).collect::<Vec<_>>(), expected);
}

const STOP: Delta = Delta::Finish(FinishReason::ToolCalls);
const LENGTH: Delta = Delta::Finish(FinishReason::Length);

#[test]
fn arguments_append_and_a_repeated_name_does_not_double() {
    check(
        &[
            call(0, "a", "ls", ""),
            call(0, "a", "ls", r#"{"path":"#),
            call(0, "", "", r#""/x"}"#),
            STOP,
        ],
        &[r#"a ls {"path":"/x"}"#],
    );
}

#[test]
fn the_first_id_counts() {
    check(
        &[call(0, "a", "ls", "{"), call(0, "b", "ls", "}"), STOP],
        &["a ls {}"],
    );
}

#[test]
fn a_new_id_under_the_same_index_is_a_new_call() {
    check(
        &[
            call(0, "a", "ls", r#"{"path":"/a"}"#),
            call(0, "b", "ls", r#"{"path":"/b"}"#),
            STOP,
        ],
        &[r#"a ls {"path":"/a"}"#, r#"b ls {"path":"/b"}"#],
    );
    check(
        &[call(0, "a", "now", ""), call(0, "b", "now", ""), STOP],
        &["a now {}", "b now {}"],
    );
    check(
        &[
            call(0, "a", "now", ""),
            call(0, "b", "at", "{"),
            call(0, "", "", r#""p":1}"#),
            call(1, "c", "ls", "{}"),
            STOP,
        ],
        &["a now {}", r#"b at {"p":1}"#, "c ls {}"],
    );
    // The id of one that came without comes later; an id of a piece without a name means nothing.
    check(
        &[call(0, "", "ls", ""), call(0, "a", "ls", "{}"), STOP],
        &["a ls {}"],
    );
    check(
        &[call(0, "a", "ls", ""), call(0, "b", "", "{}"), STOP],
        &["a ls {}"],
    );
}

#[test]
fn interleaved_calls_are_told_apart_by_their_index() {
    check(
        &[
            call(1, "b", "read", r#"{"n"#),
            call(0, "a", "ls", r#"{""#),
            call(1, "b", "read", r#"":1}"#),
            call(0, "a", "ls", r#"p":2}"#),
            STOP,
        ],
        &[r#"a ls {"p":2}"#, r#"b read {"n":1}"#],
    );
}

#[test]
fn no_arguments_are_an_empty_object() {
    check(&[call(0, "a", "ls", ""), STOP], &["a ls {}"]);
    check(&[call(0, "a", "ls", " \n"), STOP], &["a ls {}"]);
    check(&[call(0, "a", "ls", "null"), STOP], &["a ls {}"]);
    check(
        &[call(0, "a", "ls", "null"), LENGTH],
        &[r#"a ls invalid "null": the reply was cut off (length), so none of its calls counts"#],
    );
}

#[test]
fn line_breaks_and_tabs_in_strings_are_taken_as_they_are() {
    check(
        &[
            call(
                0,
                "a",
                "write",
                "{\n\t\"text\": \"one\n\ttwo \\\"\r\n\\\\\",\n\"n\": 1}",
            ),
            STOP,
        ],
        &[r#"a write {"n":1,"text":"one\n\ttwo \"\r\n\\"}"#],
    );
    check(
        &[call(0, "a", "write", "{\"text\": \"one\ntwo\""), STOP],
        &[
            "a write invalid \"{\\\"text\\\": \\\"one\\ntwo\\\"\": the arguments are not valid JSON: control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0 of {\"text\": \"one\ntwo\"",
        ],
    );
}

#[test]
fn what_is_no_object_is_invalid_and_keeps_its_text() {
    check(
        &[call(0, "a", "ls", "[1]"), STOP],
        &[r#"a ls invalid "[1]": the arguments are a list, and must be a JSON object: [1]"#],
    );
    check(
        &[call(0, "a", "ls", "path=/x"), STOP],
        &[
            r#"a ls invalid "path=/x": the arguments are not valid JSON: expected value at line 1 column 1 of path=/x"#,
        ],
    );
}

#[test]
fn a_call_without_a_name_or_with_two_is_invalid() {
    check(
        &[call(0, "a", "", "{}"), STOP],
        &[r#"a - invalid "{}": the call names no tool"#],
    );
    check(
        &[call(0, "a", "web_", "{"), call(0, "a", "search", "}"), STOP],
        &[r#"a web_ invalid "{}": the call names two tools, `web_` and `search`"#],
    );
}

#[test]
fn a_reply_that_was_cut_off_has_no_call_that_counts() {
    let calls = [
        call(0, "a", "ls", r#"{"path":"a.txt","content":"half"}"#),
        call(1, "b", "ls", r#"{"path": "/mn"#),
        call(2, "c", "ls", ""),
        call(3, "d", "", "{}"),
    ];
    let check_cut = |last: Option<Delta>, why: &str| {
        let deltas: Vec<Delta> = calls.iter().cloned().chain(last).collect();
        let why = format!("the reply was cut off ({why}), so none of its calls counts");
        check(
            &deltas,
            &[
                &format!(r#"a ls invalid "{{\"path\":\"a.txt\",\"content\":\"half\"}}": {why}"#),
                &format!(r#"b ls invalid "{{\"path\": \"/mn": {why}"#),
                &format!(r#"c ls invalid "": {why}"#),
                &format!(r#"d - invalid "{{}}": {why}"#),
            ],
        );
    };
    check_cut(Some(LENGTH), "length");
    check_cut(
        Some(Delta::Finish(FinishReason::ContentFilter)),
        "content_filter",
    );
    check_cut(None, "incomplete");
    // A reason of the provider's own says nothing about what is missing.
    let other = Delta::Finish(FinishReason::Other("eos_token".into()));
    check(&[call(0, "a", "ls", "{}"), other], &["a ls {}"]);
}

#[test]
fn what_stands_behind_the_object_is_named_with_its_place() {
    let extra = |at: usize, text: &str| {
        format!(
            "a ls invalid {text:?}: the arguments are not valid JSON: extra data at character {at} of {text}"
        )
    };
    for (at, text) in [
        (7, r#"{"a":1}{"a":1}"#),
        (9, r#"{"天":1}  {"#),
        (2, "{}]"),
        (5, "null x"),
    ] {
        check(&[call(0, "a", "ls", text), STOP], &[&extra(at, text)]);
    }
    // The same in two pieces of one call.
    let twice = || call(0, "a", "ls", r#"{"a":1}"#);
    check(&[twice(), twice(), STOP], &[&extra(7, r#"{"a":1}{"a":1}"#)]);
    let long = format!(r#"{{"a":1}}{}"#, "天".repeat(2000));
    let ReplyCall::Invalid(shown) = &fold(&[call(0, "a", "ls", &long), STOP]).calls[0] else {
        panic!("a call with extra data");
    };
    let error = shown.error.as_deref().unwrap();
    assert!(error.ends_with("天… (2007 characters in all)"), "{error}");
    assert!(error.chars().count() < 600, "{error}");
    assert_eq!(shown.args.as_deref(), Some(&*long), "the call keeps it all");
}

#[test]
fn calls_without_ids_are_told_apart_by_what_is_whole() {
    check(
        &[
            call(0, "", "f", "{}"),
            call(0, "", "g", r#"{"a":"#),
            call(0, "", "", "1}"),
            call(0, "", "g", r#"{"a":2}"#),
            STOP,
        ],
        &[
            &format!("{} f {{}}", ModelRequest::default().call_id(0)),
            &format!(r#"{} g {{"a":1}}"#, ModelRequest::default().call_id(1)),
            &format!(r#"{} g {{"a":2}}"#, ModelRequest::default().call_id(2)),
        ],
    );
    // The name comes late, or only the id does.
    check(
        &[
            call(0, "x", "", r#"{"a""#),
            call(0, "", "f", ""),
            call(0, "", "", ":1}"),
            STOP,
        ],
        &[r#"x f {"a":1}"#],
    );
}

#[test]
fn what_the_provider_adds_is_kept_and_pieces_of_it_are_joined() {
    let extra = |key: &str, value: serde_json::Value| Delta::Extra {
        key: key.into(),
        value,
    };
    use serde_json::json;
    let thought =
        |index: u32, text: &str| json!([{"type": "reasoning.text", "index": index, "text": text}]);
    let signed = json!([{"type": "reasoning.text", "index": 0, "text": "", "signature": "s"}]);
    let reply = fold(&[
        extra("reasoning_details", thought(0, "a")),
        extra("reasoning_details", thought(0, "b")),
        extra("reasoning_details", signed),
        extra("reasoning_details", thought(1, "c")),
        extra("annotations", json!([{"url": "x"}])),
        extra("annotations", json!([{"url": "x"}])),
        extra("cost", json!(1)),
        extra("cost", json!(2)),
        Delta::ToolCall(ToolCallDelta {
            id: Some("c1".into()),
            name: Some("ls".into()),
            extra: json!({"extra_content": {"google": {"thought_signature": "t"}}})
                .as_object()
                .cloned()
                .unwrap(),
            ..ToolCallDelta::default()
        }),
        STOP,
    ]);
    assert_eq!(
        serde_json::Value::from(reply.extra),
        json!({
            "reasoning_details": [
                {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
                {"type": "reasoning.text", "index": 1, "text": "c"},
            ],
            "annotations": [{"url": "x"}, {"url": "x"}],
            "cost": 2,
            "tool_call_extras": {"c1": {"extra_content": {"google": {"thought_signature": "t"}}}},
        })
    );
}

#[test]
fn calls_without_an_id_of_their_own_get_one() {
    let reply = fold(&[
        call(0, "", "ls", ""),
        call(1, "x", "ls", ""),
        call(2, "x", "ls", ""),
        STOP,
    ]);
    let request = ModelRequest::default();
    let ids: Vec<_> = reply
        .calls
        .iter()
        .map(|call| match call {
            ReplyCall::Valid(call) => call.id.clone(),
            ReplyCall::Invalid(call) => call.id.clone().unwrap(),
        })
        .collect();
    assert_eq!(ids, [request.call_id(0), "x".into(), request.call_id(2)]);
}

#[test]
fn texts_append_and_usage_is_replaced() {
    let usage = |output_tokens| {
        Delta::Usage(Usage {
            input_tokens: 3,
            output_tokens,
            ..Usage::default()
        })
    };
    let reply = fold(&[
        Delta::Model("m-2025".into()),
        Delta::Reasoning("h".into()),
        usage(1),
        Delta::Text("a".into()),
        Delta::Reasoning("m".into()),
        Delta::Text("b".into()),
        usage(2),
        Delta::Finish(FinishReason::Stop),
    ]);
    assert_eq!(reply.content.text(), "ab");
    assert_eq!(reply.reasoning.as_deref(), Some("hm"));
    assert_eq!(reply.usage.map(|usage| usage.total_tokens()), Some(5));
    assert_eq!(
        (&*reply.model, reply.finish),
        ("m-2025", FinishReason::Stop)
    );
}

/// A recorded sequence: texts, calls with whole arguments, an end or none.
fn recorded() -> impl Strategy<Value = Vec<Delta>> {
    let delta = prop_oneof![
        "[a-z 今天\\n]{0,12}".prop_map(Delta::Text),
        "[a-z 今天]{0,6}".prop_map(Delta::Reasoning),
        (0_u32..4, "[{}\":0-9今a-z]{0,16}")
            .prop_map(|(index, arguments)| { call(index, &format!("c{index}"), "ls", &arguments) }),
        (0_u32..4).prop_map(|index| call(index, &format!("c{index}"), "ls", r#"{"q":"今天"}"#)),
    ];
    let end = prop_oneof![Just(None), Just(Some(STOP)), Just(Some(LENGTH)),];
    (proptest::collection::vec(delta, 0..8), end).prop_map(|(mut deltas, end)| {
        deltas.extend(end);
        deltas
    })
}

/// Cuts a text where `cuts` say, between characters.
fn cut(text: &str, cuts: &mut impl Iterator<Item = bool>) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in text.chars() {
        if cuts.next().unwrap_or(false) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn rechunked(deltas: &[Delta], cuts: &[bool]) -> Vec<Delta> {
    let mut cuts = cuts.iter().copied().cycle();
    let mut pieces = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Text(text) => pieces.extend(cut(text, &mut cuts).into_iter().map(Delta::Text)),
            Delta::Reasoning(text) => {
                pieces.extend(cut(text, &mut cuts).into_iter().map(Delta::Reasoning));
            }
            Delta::ToolCall(delta) => {
                for (part, arguments) in cut(&delta.arguments, &mut cuts).into_iter().enumerate() {
                    // Some providers repeat id and name in every piece, some send them once.
                    let repeat = part == 0 || cuts.next().unwrap_or(false);
                    pieces.push(Delta::ToolCall(ToolCallDelta {
                        index: delta.index,
                        id: delta.id.clone().filter(|_| repeat),
                        name: delta.name.clone().filter(|_| repeat),
                        arguments,
                        ..ToolCallDelta::default()
                    }));
                }
            }
            other => pieces.push(other.clone()),
        }
    }
    pieces
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_reply(
        deltas in recorded(),
        cuts in proptest::collection::vec(any::<bool>(), 1..40),
    ) {
        prop_assert_eq!(fold(&rechunked(&deltas, &cuts)), fold(&deltas));
    }
}

proptest! {
    /// What the brackets tell is never less than what reading would: no call is joined with the next for it.
    #[test]
    fn an_object_is_known_by_its_brackets(text in "[ \t]{0,2}[{}\\[\\]\"\\\\:,a1 \n]{0,12}", cut in 0_usize..12) {
        let (first, rest) = match text.char_indices().nth(cut) {
            Some((at, _)) => text.split_at(at),
            None => (text.as_str(), ""),
        };
        let mut open = OpenCall::default();
        for piece in [first, rest] {
            open.push(&ToolCallDelta { arguments: piece.to_owned(), ..ToolCallDelta::default() });
        }
        prop_assert_eq!(open.is_object(), matches!(parse(&text), Ok(Value::Map(_))));
        prop_assert_eq!(open.has_none(), matches!(text.trim(), "" | "null"));
    }
}

/// Each of these pieces could begin another call, and what came before is long: it is not read anew for each.
#[test]
fn many_pieces_of_a_long_call_are_folded_at_once() {
    let long = "x".repeat(4 << 20);
    for first in [
        format!("{{\"a\": \"{long}"),
        format!("{{{long}}}"),
        format!("{}x", " ".repeat(4 << 20)),
        format!("null{}x", " ".repeat(4 << 20)),
    ] {
        let mut reply = Accumulator::new();
        reply.push(&call(0, "a", "f", &first));
        for nth in 0..20_000 {
            reply.push(&call(0, &format!("b{nth}"), "f", ""));
            reply.push(&call(0, &format!("c{nth}"), "f", "{"));
        }
        assert_eq!(reply.calls(), 1);
    }
}
