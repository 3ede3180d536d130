//! The state of a running task, as expressions see it.

use tine_engine::{NodeCx, StateView, Value};

use crate::expr::Facts;

/// Facts of a task: its frozen state and its run.
///
/// ```no_run
/// # fn f(cx: &tine_engine::NodeCx, spec: &tine_graphfile::ToolSpec) {
/// use tine_graphfile::{CxFacts, Scene};
///
/// let facts = CxFacts::new(cx);
/// let args = spec.args.eval(&Scene::new(&facts, &spec.info.channels));
/// # }
/// ```
#[derive(Debug)]
pub struct CxFacts<'c> {
    cx: &'c NodeCx,
    state: StateView,
}

impl<'c> CxFacts<'c> {
    /// Takes the facts of a task; in a router these are with the task's own writes.
    pub fn new(cx: &'c NodeCx) -> Self {
        Self {
            cx,
            state: cx.state(),
        }
    }
}

impl Facts for CxFacts<'_> {
    fn channel(&self, name: &str) -> Option<Value> {
        self.state.value(name).cloned()
    }

    fn run(&self) -> Value {
        let cx = self.cx;
        let depth = cx.path().matches('/').count();
        Value::from_pairs([
            ("thread", Value::from(cx.thread().to_string())),
            ("id", cx.run_id().to_string().into()),
            ("step", cx.step().into()),
            ("visits", cx.visits().into()),
            ("now", cx.now().to_string().into()),
            ("depth", depth.into()),
        ])
    }
}
