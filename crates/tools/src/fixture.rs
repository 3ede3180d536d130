//! What tests of tools share.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use tine_engine::{SimWorld, ThreadKey};

use crate::assemble::BoundTool;
use crate::cx::{Ask, Listen, ToolCx};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::paths::Home;
use crate::tool::Tool;

/// A thread with folders on disk, and what was asked and noted in it.
pub(crate) struct Fixture {
    pub(crate) disk: tempfile::TempDir,
    pub(crate) cx: ToolCx,
    pub(crate) heard: Arc<Heard>,
}

/// Answers with what it was given, and remembers.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) answer: Mutex<Option<Value>>,
    pub(crate) asked: Mutex<Vec<Value>>,
    pub(crate) notes: Mutex<Vec<String>>,
}

#[async_trait]
impl Ask for Heard {
    async fn ask(&self, payload: Value) -> Result<Value, ToolError> {
        self.asked.lock().unwrap().push(payload);
        self.answer
            .lock()
            .unwrap()
            .clone()
            .ok_or(ToolError::Interrupted)
    }
}

impl Listen for Heard {
    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let home = Home::open(disk.path().join("home")).unwrap();
        let folders = home.thread(&ThreadKey::local("t1")).unwrap();
        let heard = Arc::new(Heard::default());
        let cx = ToolCx::new("call_1", folders, Arc::new(SimWorld::new(0)))
            .with_ask(Arc::clone(&heard) as Arc<dyn Ask>)
            .with_listen(Arc::clone(&heard) as Arc<dyn Listen>);
        Self { disk, cx, heard }
    }

    /// Puts a file into the thread's folders.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.cx.folders().host_root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Calls a tool the way a toolbox does.
    pub(crate) async fn call(
        &self,
        tool: impl Tool + 'static,
        args: Value,
    ) -> Result<ToolOutput, ToolError> {
        BoundTool::new(Arc::new(tool)).call(&self.cx, args).await
    }

    /// Calls a tool and gives the text of its reply or error.
    pub(crate) async fn say(&self, tool: impl Tool + 'static, args: Value) -> String {
        match self.call(tool, args).await {
            Ok(output) => output
                .reply()
                .map_or("no reply".to_owned(), |reply| reply.text()),
            Err(error) => format!("error: {error}"),
        }
    }
}
