//! However a stream is cut, it is the same reply.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tine_engine::SimWorld;
use tine_models::openai::Recorded;
use tine_models::{Discard, ModelCx, ModelError, ModelReply, ModelRequest};

fn read(chunks: Vec<Vec<u8>>) -> Result<ModelReply, ModelError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let cx = ModelCx::new(Arc::new(SimWorld::new(0)));
    let recorded = Recorded {
        status: 200,
        chunks,
    };
    runtime.block_on(recorded.read(&cx, &ModelRequest::default(), &mut Discard))
}

/// A part of a reply: a text, a thought, or the arguments of a call.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Thought(String),
    Call(String),
}

fn part() -> impl Strategy<Value = Part> {
    let text = "[a-z\"\\\\\n\r\t 今天谢😀]{1,8}";
    prop_oneof![
        text.prop_map(Part::Text),
        text.prop_map(Part::Thought),
        text.prop_map(|text| Part::Call(json!({"text": text, "n": {"m": [1, null]}}).to_string())),
    ]
}

/// The events of a reply whose texts are cut where `cuts` say.
fn events(parts: &[Part], cuts: &[bool]) -> Vec<Value> {
    let mut cuts = cuts.iter().copied().cycle();
    let mut cut = |text: &str| {
        let mut pieces = vec![String::new()];
        for c in text.chars() {
            if cuts.next().unwrap_or(false) {
                pieces.push(String::new());
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(c);
            }
        }
        pieces
    };
    let mut events = Vec::new();
    let mut index = 0;
    let mut say = |delta: Value| events.push(json!({"choices": [{"index": 0, "delta": delta}]}));
    for part in parts {
        match part {
            Part::Text(text) => cut(text)
                .iter()
                .for_each(|text| say(json!({"content": text}))),
            Part::Thought(text) => cut(text)
                .iter()
                .for_each(|text| say(json!({"reasoning_content": text, "content": null}))),
            Part::Call(arguments) => {
                for (nth, arguments) in cut(arguments).iter().enumerate() {
                    let mut call = json!({"index": index, "function": {"arguments": arguments}});
                    if nth == 0 {
                        call["id"] = format!("c{index}").into();
                        call["function"]["name"] = "f".into();
                    }
                    say(json!({"tool_calls": [call]}));
                }
                index += 1;
            }
        }
    }
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    events
}

fn stream(events: &[Value], line: &str) -> Vec<u8> {
    let mut stream = format!(": hello{line}{line}");
    for event in events {
        stream.push_str(&format!("data: {event}{line}{line}"));
    }
    stream.push_str(&format!("data: [DONE]{line}{line}"));
    stream.into_bytes()
}

proptest! {
    #[test]
    fn no_cut_of_bytes_or_texts_shows(
        parts in proptest::collection::vec(part(), 0..5),
        texts in proptest::collection::vec(any::<bool>(), 1..20),
        sizes in proptest::collection::vec(1_usize..40, 1..20),
        line in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let whole = read(vec![stream(&events(&parts, &[false]), "\n")]).unwrap();
        let bytes = stream(&events(&parts, &texts), line);
        let mut rest = bytes.as_slice();
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, left) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk.to_vec());
            rest = left;
        }
        prop_assert_eq!(read(chunks).unwrap(), whole);
    }

    /// Whatever comes, it is a reply or an error.
    #[test]
    fn no_bytes_are_too_strange(
        status in prop_oneof![Just(200_u16), 100..700_u16],
        chunks in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..20),
                "(data: )?(\\{|\\}|\\[|\"choices\":|\"delta\":|\"error\":|null|:|,|\n)*".prop_map(String::into_bytes),
            ],
            0..8,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let cx = ModelCx::new(Arc::new(SimWorld::new(0)));
        let recorded = Recorded { status, chunks };
        let read = runtime.block_on(recorded.read(&cx, &ModelRequest::default(), &mut Discard));
        prop_assert!(read.is_err(), "no reply is among these: {read:?}");
    }
}
