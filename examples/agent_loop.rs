//! An agent without tools: a model drafts, a reviewer objects, and they go round until nobody objects.
#![allow(clippy::print_stdout)]

use tine::engine::channel::messages;
use tine::engine::node::from_fn;
use tine::engine::{
    Command, END, Graph, Message, NodeCx, RunOptions, Runner, START, ThreadKey, TokioWorld, Update,
    from_value,
};
use tine::models::{Discard, Model, ModelCx, ModelRequest, Script, ScriptedModel};

/// What the model says. Any other `Model` takes its place; this one needs no network.
const SCRIPT: &str = r#"
schema: script/v1
rules:
  - { visit: 1, content: "Rust is fast, safe, and also very nice to write code in." }
  - { content: "Rust: fast, safe, kind." }
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new("poet", Script::parse("poet.script.yaml", SCRIPT)?);
    let mut graph = Graph::builder("slogan");
    let talk = graph.channel("messages", messages());

    let (history, reviewed) = (talk.clone(), talk);
    let poet = move |cx: NodeCx| {
        let (model, history) = (model.clone(), history.clone());
        async move {
            let request = ModelRequest::new(cx.read(&history)?.to_vec()).at("poet", cx.visits());
            let around = ModelCx::new(cx.world().clone());
            let reply = model.stream(&around, &request, &mut Discard).await?;
            Ok(Update::new().write(&history, vec![reply.into_message()]))
        }
    };
    let reviewer = from_fn(move |cx| {
        let talk = cx.read(&reviewed)?;
        let draft = talk.last().map(|message| message.content.text());
        let draft = draft.unwrap_or_default();
        if draft.len() <= 30 {
            return Ok(Command::goto(END));
        }
        let objection = Message::human(format!("{} characters are too many.", draft.len()));
        Ok(Command::goto("poet").update(Update::new().write(&reviewed, vec![objection])))
    });
    // Models are not asked forever.
    graph.node("poet", poet).max_visits(5);
    graph.node("reviewer", reviewer).goes_to(["poet", END]);
    graph.edge(START, "poet").edge("poet", "reviewer");

    let runner = Runner::new(graph.build()?, TokioWorld::new());
    let input = Update::from([("messages", vec!["A slogan for Rust, please."])]);
    let thread = ThreadKey::local("t1");
    let outcome = runner.invoke(&thread, input, RunOptions::default()).await?;
    let talk: Vec<Message> = from_value(&outcome.values["messages"])?;
    for message in talk {
        println!("{:?}: {}", message.role, message.content.text());
    }
    println!("{}", outcome.exit.name());
    Ok(())
}
