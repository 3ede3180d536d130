//! The crates put together as a program does it: in memory, in a world without surprises.

use crate::command::{REPOSITORY, news_report};
use async_trait::async_trait;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tine::agent::Agent;
use tine::engine::{
    Input, MemoryCheckpointer, Message, NodeError, Outcome, RunOptions, Runner, SimWorld,
    ThreadKey, Update, World,
};
use tine::graphfile::{LoadedGraph, NoSources, load};
use tine::models::{ModelEntry, Models};
use tine::tools::assemble::{Extensions, Registry, Scene, assemble};
use tine::tools::config::Config;
use tine::tools::paths::Home;
use tine::tools::schema::{ArgSchema, Args};
use tine::tools::{Effect, Source, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};

/// A graph ready to be run on the thread `t1`, and the folder that its files are in.
pub(crate) struct Bench {
    pub(crate) runner: Runner,
    graph: LoadedGraph,
    folder: TempDir,
}

impl Bench {
    /// The graph of the main job with the script and the corpus that ship.
    pub(crate) fn main_job() -> Self {
        let graph = std::fs::read_to_string(news_report()).unwrap();
        let script = format!("{REPOSITORY}/graphs/news_report.script.yaml");
        let script = std::fs::read_to_string(script).unwrap();
        Self::new(&graph, &script, Arc::new(SimWorld::new(0)))
    }

    /// A graph with a script for its models. Its tools are those of the configuration that ships, and `wait`.
    pub(crate) fn new(graph: &str, script: &str, world: Arc<dyn World>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Arc::new(Home::open(folder.path()).unwrap());
        let text = std::fs::read_to_string(format!("{REPOSITORY}/config/config.yaml")).unwrap();
        let text = text.replace(
            "tools:\n",
            "tools:\n  - { name: wait, group: test, use: 'test:wait' }\n",
        );
        let path = Path::new(REPOSITORY).join("config/config.yaml");
        let config = Config::parse(&text, &path).unwrap();
        let extensions = Extensions {
            registry: Registry::standard().with_tool("test:wait", Arc::new(Wait::new())),
            ..Extensions::default()
        };
        let (toolbox, _) = assemble(&config, &extensions, &Scene::default()).unwrap();
        let settings = serde_json::json!({"script": "script"});
        let entry = ModelEntry {
            name: "default".to_owned(),
            use_path: tine::models::registry::SCRIPTED.to_owned(),
            settings: settings.as_object().cloned().unwrap(),
        };
        let script = script.to_owned();
        let models = Models::from_entries([entry], move |_: &str| Ok(script.clone())).unwrap();
        let agent = Agent::new(toolbox, move |thread: &ThreadKey| {
            home.thread(thread).map_err(NodeError::from)
        })
        .with_models([("default".to_owned(), models.get("default").unwrap())]);
        let (loaded, diagnostics) = load(
            "graph.yaml",
            graph,
            &NoSources,
            &agent,
            &agent.registry(true),
        );
        let graph = loaded.unwrap_or_else(|| panic!("{}", diagnostics.render()));
        let runner = Runner::new(graph.graph.clone(), world)
            .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
        Self {
            runner,
            graph,
            folder,
        }
    }

    /// The folder of all threads' files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn thread() -> ThreadKey {
        ThreadKey::local("t1")
    }

    /// A message to the graph.
    pub(crate) fn say(text: &str) -> Input {
        let message = Message::human(text).to_value().unwrap();
        Update::new().set("messages", vec![message]).into()
    }

    pub(crate) async fn invoke(&self, input: Input, options: RunOptions) -> Outcome {
        let options = RunOptions {
            max_steps: Some(u64::from(self.graph.outline.limits.max_steps)),
            ..options
        };
        self.runner
            .invoke(&Self::thread(), input, options)
            .await
            .unwrap()
    }
}

/// A tool that takes its time.
struct Wait {
    spec: ToolSpec,
}

impl Wait {
    fn new() -> Self {
        let args =
            r#"{"type": "object", "properties": {"ms": {"type": "integer"}}, "required": ["ms"]}"#;
        let args = ArgSchema::parse(args).unwrap();
        Self {
            spec: ToolSpec::new(Source::Config, "wait", "Waits.", args).effect(Effect::ReadOnly),
        }
    }
}

#[async_trait]
impl Tool for Wait {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let millis = args.get("ms").and_then(serde_json::Value::as_u64).unwrap();
        cx.world().sleep(Duration::from_millis(millis)).await;
        Ok(ToolOutput::text(format!("waited {millis} ms")))
    }
}
