use async_trait::async_trait;

use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::schema::{ArgSchema, Args};
use crate::spec::{Effect, ToolSpec};

/// Something a model can call.
///
/// A tool is called through a [`Toolbox`](crate::assemble::Toolbox), which
/// checks the arguments first: `call` can rely on them fitting the schema.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "implement `tine_tools::Tool`: `spec` describes it to the model, `call` does the work"
)]
pub trait Tool: Send + Sync {
    /// Describes the tool; the same at every call.
    fn spec(&self) -> &ToolSpec;

    /// Gives the schema that arguments are checked against: the one the model
    /// is told, unless the tool takes more than it says.
    fn accepts(&self) -> &ArgSchema {
        &self.spec().args
    }

    /// Says what doing this call twice would do.
    fn effect(&self, args: &Args) -> Effect {
        let _ = args;
        self.spec().effect
    }

    /// Does the work.
    ///
    /// # Errors
    /// With a text the model can act on; see [`ToolError`].
    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError>;
}
