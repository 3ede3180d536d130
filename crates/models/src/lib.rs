#![doc = include_str!("../README.md")]

pub mod accumulate;
pub mod delta;
pub mod error;
mod estimate;
pub mod model;
pub mod openai;
pub mod pricing;
pub mod registry;
pub mod reply;
pub mod request;
pub mod script;
pub mod scripted;
mod suggestion;

pub use accumulate::Accumulator;
pub use delta::{Delta, DeltaSink, Discard, ToolCallDelta};
pub use error::ModelError;
pub use model::{Model, ModelCx};
pub use openai::OpenAi;
pub use pricing::Pricing;
pub use registry::{Folder, ModelEntry, Models, ModelsError, Sources};
pub use reply::{FinishReason, ModelReply, ReplyCall, Usage};
pub use request::{CallSite, ModelRequest, Params, ResponseSchema, ToolChoice, ToolSchema};
pub use script::{Script, ScriptError, ScriptReply, ScriptSpec};
pub use scripted::ScriptedModel;
