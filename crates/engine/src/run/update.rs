//! Updates of a thread from outside, made as if a node had returned them.

use super::Runner;
use super::context::{RunCx, start_name};
use super::drain::Drain;
use super::open::load_thread;
use super::steps::NO_HEAD;
use super::task::{StepInfo, TaskCx};
use crate::checkpoint::{Scope, Source, ThreadKey};
use crate::command::{Output, START};
use crate::error::{Location, RunError};
use crate::state::StateView;
use crate::step::{AdvanceHead, Task, TaskKind, ThreadState, apply};
use crate::world::Id;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Runner {
    /// Updates a thread as if node `as_node` had just returned `output`: the writes are folded, the node's edges and
    /// routers say what runs next, and what was planned before is dropped. The node itself does not run.
    ///
    /// # Errors
    /// If there is no such node, the writes do not fit, a router fails, or the thread is held.
    pub async fn update(
        &self,
        thread: &ThreadKey,
        as_node: &str,
        output: impl Into<Output>,
    ) -> Result<Id, RunError> {
        let checkpointer = self.stored("updating a thread")?;
        let writer = checkpointer.open(thread).await?;
        let scope = Scope::root(thread.clone());
        let loaded = checkpointer.load(&scope, None).await?;
        let mut state = match &loaded {
            Some(checkpoint) => load_thread(&self.graph, checkpoint)?,
            None => ThreadState::new(&self.graph, true),
        };
        let parent = loaded.as_ref().map(|checkpoint| checkpoint.id);
        let run_id = loaded
            .as_ref()
            .map_or_else(|| self.world.new_id(), |checkpoint| checkpoint.run);
        let location = Location {
            graph: self.graph.name().clone(),
            // Nobody else went there.
            node: "update".into(),
        };
        let kind = if as_node == START {
            TaskKind::Start {
                writes: Vec::new(),
                goto: Vec::new(),
            }
        } else {
            let node = self.graph.find(as_node);
            let unknown = || RunError::UnknownNode {
                location,
                target: as_node.into(),
            };
            TaskKind::Node {
                node: node.ok_or_else(unknown)?,
                input: None,
            }
        };
        let run = Arc::new(RunCx {
            graph: self.graph.clone(),
            world: self.world.clone(),
            thread: thread.clone(),
            namespace: scope.namespace,
            graph_path: "".into(),
            run: run_id,
            listener: None,
            cancel: CancellationToken::new(),
            checkpointer: self.checkpointer.clone(),
            writer: Some(Arc::downgrade(&writer)),
            cache: None,
            step_limit: 1,
            max_parallel: 1,
            start_name: start_name(),
            step_timeout: None,
            drain: Drain::new(),
            drains: true,
            ledger: Arc::default(),
            host: None,
        });
        let task = Task {
            kind,
            path: as_node.into(),
            visits: 0,
        };
        let info = StepInfo {
            checkpoint: parent.unwrap_or(NO_HEAD),
            step: state.step + 1,
            remaining: 0,
            now: self.world.now(),
            epoch: 0,
        };
        let view = StateView {
            table: self.graph.0.channels.clone(),
            state: state.state.clone(),
            overlay: None,
            reads: None,
        };
        let cx = Arc::new(TaskCx::new(&run, &view, info, &task, None));
        let done = super::attempt::finish_as(cx, &task.kind, output.into()).await?;
        drop(view);
        state.next.clear();
        apply(
            &self.graph,
            &mut state,
            std::slice::from_ref(&task),
            vec![done],
        )?;
        let id = self.world.new_id();
        let head = AdvanceHead {
            id,
            parent,
            source: Source::Update,
            created: self.world.now(),
            run: run_id,
        };
        writer
            .advance(&run.namespace, state.advance(&self.graph, head))
            .await?;
        Ok(id)
    }
}
