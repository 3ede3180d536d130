//! Rust functions that graph files call by name.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tine_engine::{NodeCx, NodeError, Output, Value};

/// A function of the host, for `type: call`.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function that graph files can call",
    note = "implement `tine_agent::Function`"
)]
pub trait Function: Send + Sync {
    /// The JSON Schema of the input.
    fn input(&self) -> serde_json::Value {
        serde_json::json!({"type": "object"})
    }

    /// The route labels it may return, as targets of its commands.
    fn routes(&self) -> &[&str] {
        &[]
    }

    /// Does the work. What it writes must be listed in `writes` of its node.
    ///
    /// # Errors
    /// If it fails; the node then failed.
    async fn call(&self, cx: NodeCx, input: Value) -> Result<Output, NodeError>;
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<String, Arc<dyn Function>>);

impl Functions {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, function: impl Function + 'static) -> Self {
        self.0.insert(name.into(), Arc::new(function));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Function>> {
        self.0.get(name).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &dyn Function)> {
        self.0
            .iter()
            .map(|(name, function)| (name.as_str(), &**function))
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}
