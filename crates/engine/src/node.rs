//! Nodes and routers: the work that a graph is made of.

use crate::command::{Output, Target, Update};
use crate::cx::NodeCx;
use crate::error::NodeError;
use crate::interrupt::Interrupt;
use crate::run::Subgraph;
use crate::value::Value;
use async_trait::async_trait;
use std::future::Future;

/// A node of a graph: reads the state, returns writes and targets.
///
/// Async closures that take a [`NodeCx`] are nodes. A node changes state only by what it returns.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node",
    note = "a node is a closure `|cx: NodeCx| async move {{ ... }}` that returns `Result<O, NodeError>`, where `O` is \
            `Update`, `Command`, `Output` or `()`; or `node::from_fn(|cx| ...)`; or a type that implements \
            `tine_engine::Node`"
)]
pub trait Node: Send + Sync + 'static {
    /// Runs the node once.
    ///
    /// # Errors
    /// If the node fails; its writes are then lost, and it may be tried again.
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError>;

    /// Says what remains of a task that was planned and that new input takes the place of: writes that are folded before
    /// the input is. [`NodeCx::recorded`] tells how its journaled calls stand.
    ///
    /// # Errors
    /// If it can not say; the input is then refused.
    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        drop(cx);
        Ok(Update::new())
    }

    /// Says whether an answer fits a question of this node, before it is recorded: an answer that does not fit is
    /// refused with [`RunError::InvalidAnswer`](crate::RunError::InvalidAnswer), and the thread stays as it is.
    ///
    /// Asked for all questions of the node, of its journaled calls and of its error handler; not for those of the
    /// engine about calls of unknown outcome. Questions of a child graph come to the child's nodes if the graph is told
    /// by [`Node::subgraph`]; those of a graph that the node runs by [`NodeCx::child`] are taken unchecked, so a node
    /// that must have an answer of some shape still checks what [`NodeCx::interrupt`] gives.
    ///
    /// # Errors
    /// What is wrong with the answer, without the names of the node and the question.
    fn check_answer(&self, question: &Interrupt, answer: &Value) -> Result<(), String> {
        let _ = (question, answer);
        Ok(())
    }

    /// The graph that the node runs, if it is nothing but a graph: how threads are read into their children, and how
    /// their answers find the nodes that check them.
    fn subgraph(&self) -> Option<&Subgraph> {
        None
    }
}

#[async_trait]
impl<F, R, O> Node for F
where
    F: Fn(NodeCx) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, NodeError>> + Send,
    O: Into<Output>,
{
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        self(cx).await.map(Into::into)
    }
}

#[async_trait]
impl Node for std::sync::Arc<dyn Node> {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        (**self).run(cx).await
    }
    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        (**self).abandon(cx).await
    }
    fn check_answer(&self, question: &Interrupt, answer: &Value) -> Result<(), String> {
        (**self).check_answer(question, answer)
    }
    fn subgraph(&self) -> Option<&Subgraph> {
        (**self).subgraph()
    }
}

/// A node or a router of a plain function, for work that waits for nothing.
///
/// ```
/// use tine_engine::channel::last;
/// use tine_engine::node::from_fn;
/// use tine_engine::{END, Graph, START, Update};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut graph = Graph::builder("halve");
/// let number = graph.channel("number", last::<i64>());
/// let n = number.clone();
/// graph.node("halve", from_fn(move |cx| Ok(Update::new().write(&n, *cx.read(&n)? / 2))));
/// graph.edge(START, "halve");
/// graph.branch("halve", from_fn(move |cx| Ok(if *cx.read(&number)? > 1 { "halve" } else { END })));
/// graph.build()?;
/// # Ok(())
/// # }
/// ```
pub fn from_fn<F, T>(function: F) -> FromFn<F>
where
    F: Fn(NodeCx) -> Result<T, NodeError> + Send + Sync + 'static,
{
    FromFn(function)
}

/// What [`from_fn`] makes.
#[derive(Clone, Copy, Debug)]
pub struct FromFn<F>(F);

#[async_trait]
impl<F, O> Node for FromFn<F>
where
    F: Fn(NodeCx) -> Result<O, NodeError> + Send + Sync + 'static,
    O: Into<Output>,
{
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        (self.0)(cx).map(Into::into)
    }
}

#[async_trait]
impl<F, T> Router for FromFn<F>
where
    F: Fn(NodeCx) -> Result<T, NodeError> + Send + Sync + 'static,
    T: Into<Targets>,
{
    async fn route(&self, cx: NodeCx) -> Result<Targets, NodeError> {
        (self.0)(cx).map(Into::into)
    }
}

/// Where a router goes: any number of targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets(pub Vec<Target>);

impl<T: Into<Target>> From<T> for Targets {
    fn from(target: T) -> Self {
        Self(vec![target.into()])
    }
}

impl<T: Into<Target>> From<Vec<T>> for Targets {
    fn from(targets: Vec<T>) -> Self {
        Self(targets.into_iter().map(Into::into).collect())
    }
}

/// Decides where a task goes when its node has finished. Part of the task: it sees the state with the task's own
/// writes, and if it fails the task failed.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a router",
    note = "a router is a closure `|cx: NodeCx| async move {{ ... }}` that returns `Result<T, NodeError>`, where `T` is a \
            node's name, a `Target`, or a `Vec` of them; or `node::from_fn(|cx| ...)`; or a type that implements \
            `tine_engine::Router`"
)]
pub trait Router: Send + Sync + 'static {
    /// Chooses targets.
    ///
    /// # Errors
    /// If it can not; the task then failed.
    async fn route(&self, cx: NodeCx) -> Result<Targets, NodeError>;
}

#[async_trait]
impl<F, R, T> Router for F
where
    F: Fn(NodeCx) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, NodeError>> + Send,
    T: Into<Targets>,
{
    async fn route(&self, cx: NodeCx) -> Result<Targets, NodeError> {
        self(cx).await.map(Into::into)
    }
}
