//! What is said about a node: what it sees, how often it is tried, and who handles its failure.

use crate::cache::CachePolicy;
use crate::channel::Check;
use crate::node::Node;
use crate::policy::RetryPolicy;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How attempts are bounded and repeated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// The first that fits an error decides.
    pub(crate) retry: Vec<RetryPolicy>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
}

impl Patience {
    /// Whether attempts are bounded at all.
    pub(crate) fn is_bounded(&self) -> bool {
        self.timeout.is_some() || self.idle_timeout.is_some()
    }

    /// What is not said here, as `defaults` say it.
    fn or(self, defaults: &Self) -> Self {
        let retry = match self.retry.is_empty() {
            true => defaults.retry.clone(),
            false => self.retry,
        };
        Self {
            retry,
            timeout: self.timeout.or(defaults.timeout),
            idle_timeout: self.idle_timeout.or(defaults.idle_timeout),
        }
    }

    /// The limits that are no time at all.
    fn of_no_time(&self) -> impl Iterator<Item = &'static str> {
        [
            ("timeout", self.timeout),
            ("idle timeout", self.idle_timeout),
        ]
        .into_iter()
        .filter(|(_, limit)| limit.is_some_and(|limit| limit.is_zero()))
        .map(|(name, _)| name)
    }
}

/// What runs when a node has failed and is not tried again: a node of its own, with what it needs to be patient.
///
/// It runs in the step of the failed task, sees what that saw ([`NodeCx::handled_error`](crate::NodeCx::handled_error)
/// tells the error), and what it returns counts as the task's. The ways out of the failed node are not taken: the
/// handler goes on by a command, or not at all. If the handler fails, the task has failed, and going on runs the handler
/// again, not the node. Handled are all errors of the node and its routers. A question, a command for the parent graph, a
/// cancellation and a spent budget are no errors, and when the thread can not be stored nothing can be handled.
#[derive(Clone)]
pub struct ErrorHandler {
    pub(crate) node: Arc<dyn Node>,
    pub(crate) patience: Patience,
}

impl ErrorHandler {
    /// A handler.
    pub fn new(node: impl Node) -> Self {
        Self {
            node: Arc::new(node),
            patience: Patience::default(),
        }
    }

    /// Tries the handler again when it fails. Of several policies the first that fits an error decides.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.patience.retry.push(policy);
        self
    }

    /// Bounds each attempt.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.patience.timeout = Some(limit);
        self
    }

    /// Bounds how long an attempt may show no progress, as [`NodeOptions::idle_timeout`] does.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.patience.idle_timeout = Some(limit);
        self
    }
}

impl<N: Node> From<N> for ErrorHandler {
    fn from(node: N) -> Self {
        Self::new(node)
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ErrorHandler")
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// What holds for the nodes of a graph that do not say otherwise. Child graphs have their own.
///
/// Retries and timeouts hold for error handlers too; a handler or a cache is for nodes alone.
#[derive(Clone, Debug, Default)]
pub struct NodeDefaults {
    pub(crate) patience: Patience,
    pub(crate) handler: Option<ErrorHandler>,
    pub(crate) cache: Option<CachePolicy>,
}

impl NodeDefaults {
    /// No defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tries nodes again that have no retry policy of their own. Of several policies the first that fits an error
    /// decides.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.patience.retry.push(policy);
        self
    }

    /// Bounds each attempt of nodes without a timeout of their own.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.patience.timeout = Some(limit);
        self
    }

    /// Bounds how long an attempt may show no progress, as [`NodeOptions::idle_timeout`] does.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.patience.idle_timeout = Some(limit);
        self
    }

    /// Handles the failures of nodes without a handler of their own.
    #[must_use]
    pub fn on_error(mut self, handler: impl Into<ErrorHandler>) -> Self {
        self.handler = Some(handler.into());
        self
    }

    /// Keeps the results of nodes without a policy of their own.
    #[must_use]
    pub fn cache(mut self, policy: CachePolicy) -> Self {
        self.cache = Some(policy);
        self
    }

    /// Gives a node what it does not say itself.
    pub(super) fn complete(&self, draft: &mut NodeDraft) {
        draft.patience = std::mem::take(&mut draft.patience).or(&self.patience);
        let handler = draft.handler.take().or_else(|| self.handler.clone());
        draft.handler = handler.map(|handler| ErrorHandler {
            patience: handler.patience.or(&self.patience),
            ..handler
        });
        draft.cache = draft.cache.take().or_else(|| self.cache.clone());
    }
}

/// A node as it was added.
pub(super) struct NodeDraft {
    pub(super) name: Arc<str>,
    pub(super) node: Arc<dyn Node>,
    pub(super) reads: Option<Vec<Arc<str>>>,
    pub(super) defer: bool,
    pub(super) patience: Patience,
    pub(super) handler: Option<ErrorHandler>,
    pub(super) cache: Option<CachePolicy>,
    pub(super) max_visits: Option<u64>,
    pub(super) answers: Option<Arc<dyn Check>>,
    pub(super) goto: Vec<(Option<Arc<str>>, Arc<str>)>,
}

impl NodeDraft {
    pub(super) fn new(name: Arc<str>, node: impl Node) -> Self {
        Self {
            name,
            node: Arc::new(node),
            reads: None,
            defer: false,
            patience: Patience::default(),
            handler: None,
            cache: None,
            max_visits: None,
            answers: None,
            goto: Vec::new(),
        }
    }

    /// The limits of the node and its handler that let nothing run.
    pub(super) fn of_no_time(&self) -> impl Iterator<Item = String> {
        let handler = self.handler.iter();
        let own = self.patience.of_no_time().map(str::to_owned);
        let handlers = handler
            .flat_map(|handler| handler.patience.of_no_time())
            .map(|name| format!("{name} of the error handler"));
        own.chain(handlers)
    }
}

/// Options of a node just added.
pub struct NodeOptions<'a> {
    pub(super) draft: &'a mut NodeDraft,
}

impl NodeOptions<'_> {
    /// Shows the node only these channels.
    pub fn reads<N: Into<Arc<str>>>(self, channels: impl IntoIterator<Item = N>) -> Self {
        self.draft.reads = Some(channels.into_iter().map(Into::into).collect());
        self
    }

    /// Holds the node back until nothing else is left to run.
    pub fn defer(self) -> Self {
        self.draft.defer = true;
        self
    }

    /// Tries the node again when it fails. May be said several times: the first policy whose classes have that of the
    /// error decides whether and when, and all count the same attempts.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.draft.patience.retry.push(policy);
        self
    }

    /// Bounds each attempt.
    pub fn timeout(self, limit: Duration) -> Self {
        self.draft.patience.timeout = Some(limit);
        self
    }

    /// Bounds how long an attempt may show no progress. Progress is all that the node tells or begins: an event
    /// ([`NodeCx::emit`](crate::NodeCx::emit)), a record of a journaled call, a child graph, a
    /// [`NodeCx::heartbeat`](crate::NodeCx::heartbeat).
    pub fn idle_timeout(self, limit: Duration) -> Self {
        self.draft.patience.idle_timeout = Some(limit);
        self
    }

    /// Handles the failure of the node when it is not tried again.
    pub fn on_error(self, handler: impl Into<ErrorHandler>) -> Self {
        self.draft.handler = Some(handler.into());
        self
    }

    /// Keeps results of the node by its input, if the runner has a cache
    /// ([`Runner::with_cache`](crate::Runner::with_cache)); without one the node just runs.
    pub fn cache(self, policy: CachePolicy) -> Self {
        self.draft.cache = Some(policy);
        self
    }

    /// Checks the answers to the node's questions before they are recorded, in front of what the node itself says of
    /// them ([`Node::check_answer`]).
    pub fn answers(self, check: impl Check + 'static) -> Self {
        self.draft.answers = Some(Arc::new(check));
        self
    }

    /// Bounds how often the node runs in one run.
    pub fn max_visits(self, limit: u64) -> Self {
        self.draft.max_visits = Some(limit);
        self
    }

    /// Says where commands of the node or of its error handler may go, for drawing and for telling unreachable nodes.
    /// Not a restriction.
    pub fn goes_to<N: Into<Arc<str>>>(self, targets: impl IntoIterator<Item = N>) -> Self {
        self.draft
            .goto
            .extend(targets.into_iter().map(|target| (None, target.into())));
        self
    }

    /// Says where commands of the node may go, with the label that stands for it.
    pub fn goes_to_labelled<L: Into<Arc<str>>, N: Into<Arc<str>>>(
        self,
        targets: impl IntoIterator<Item = (L, N)>,
    ) -> Self {
        self.draft.goto.extend(
            targets
                .into_iter()
                .map(|(label, target)| (Some(label.into()), target.into())),
        );
        self
    }
}

impl fmt::Debug for NodeOptions<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "NodeOptions({})", self.draft.name)
    }
}
