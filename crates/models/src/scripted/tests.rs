use super::*;
use crate::delta::Discard;
use crate::reply::ReplyCall;
use tine_engine::{Message, SimWorld, World};

const SCRIPT: &str = r#"
schema: script/v1
rules:
  - node: writer
    content: "已经写好 the report。"
    tool_calls:
      - name: write_file
        args: { path: /a.md, content: "{{ 'x' * 200 }}" }
  - content: "You said {{ user_text }}."
"#;

fn model() -> ScriptedModel {
    ScriptedModel::new("scripted", Script::parse("s.yaml", SCRIPT).unwrap())
}

async fn ask(model: &ScriptedModel, node: &str) -> (Vec<Delta>, ModelReply, Arc<SimWorld>) {
    let world = Arc::new(SimWorld::new(0));
    let cx = ModelCx::new(world.clone());
    let request = ModelRequest::new(vec![Message::human("hello")]).at(node, 1);
    let mut deltas = Vec::new();
    let mut sink = |delta: &Delta| deltas.push(delta.clone());
    let reply = model.stream(&cx, &request, &mut sink).await.unwrap();
    (deltas, reply, world)
}

#[tokio::test]
async fn a_reply_comes_in_pieces_and_whole() {
    let (deltas, reply, _) = ask(&model(), "writer").await;
    let kinds: Vec<String> = deltas
        .iter()
        .map(|delta| match delta {
            Delta::Text(text) => format!("text {text:?}"),
            Delta::ToolCall(call) => format!(
                "call {} {} +{}",
                call.index,
                call.name.as_deref().unwrap_or("-"),
                call.arguments.len()
            ),
            other => format!("{other:?}"),
        })
        .collect();
    insta::assert_snapshot!(kinds.join("\n"), @r#"
    text "已"
    text "经"
    text "写"
    text "好 "
    text "the "
    text "report。"
    call 0 write_file +0
    call 0 - +64
    call 0 - +64
    call 0 - +64
    call 0 - +37
    Usage(Usage { input_tokens: 2, output_tokens: 64, cached_input_tokens: 0, estimated: true })
    Finish(ToolCalls)
    "#);
    assert_eq!(reply.content.text(), "已经写好 the report。");
    let [ReplyCall::Valid(call)] = reply.calls.as_slice() else {
        panic!("{:?}", reply.calls);
    };
    assert_eq!(
        call.args.get("content").unwrap().as_str().unwrap().len(),
        200
    );
    assert_eq!(reply.finish, FinishReason::ToolCalls);
}

#[tokio::test]
async fn the_same_request_gets_the_same_reply() {
    let (_, first, _) = ask(&model(), "writer").await;
    let (_, second, _) = ask(&model(), "writer").await;
    assert_eq!(first, second);
    let (_, other, _) = ask(&model(), "reader").await;
    assert_eq!(other.content.text(), "You said hello.");
}

#[tokio::test]
async fn a_delay_is_spent_in_the_world_of_the_run() {
    let model = model().with_delay(Duration::from_millis(20));
    let world = Arc::new(SimWorld::new(0));
    let cx = ModelCx::new(world.clone());
    let request = ModelRequest::new(vec![Message::human("hello")]).at("reader", 1);
    let mut sink = Discard;
    let reply = model.stream(&cx, &request, &mut sink);
    let clock = async {
        // Lets the model fall asleep, then moves the clock, as a runner does when every task waits.
        for _ in 0..10 {
            tokio::task::yield_now().await;
            world.advance();
        }
    };
    let (reply, ()) = tokio::join!(reply, clock);
    assert_eq!(reply.unwrap().content.text(), "You said hello.");
    assert_eq!(world.now().0, 40, "two waits between three words");
}

#[tokio::test]
async fn a_script_without_a_reply_is_an_error_of_the_model() {
    let script = "schema: script/v1\nrules: [{node: x, content: y}]";
    let model = ScriptedModel::new("m", Script::parse("s.yaml", script).unwrap());
    let cx = ModelCx::new(Arc::new(SimWorld::new(0)));
    let request = ModelRequest::new(vec![Message::human("hi")]).at("agent", 3);
    let error = model.stream(&cx, &request, &mut Discard).await.unwrap_err();
    insta::assert_snapshot!(error, @r#"
    model `m`: script s.yaml has no rule for this request: node `agent`, visit 3, 1 message, the last of the user: "hi"
      rule 1: is for node `x`
    "#);
}
