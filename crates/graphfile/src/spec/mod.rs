//! What a file says, decoded: one closed struct per section and per node kind.

mod decode;
mod duration;
mod file;
mod node;
mod number;
mod then;

pub(crate) use decode::decode;
pub(crate) use duration::DurationText;
pub(crate) use file::{ChannelKeys, FileKeys};
pub use node::Kind;
pub(crate) use node::{
    CallKeys, FileRef, InterruptKeys, KindKeys, ModelKeys, NodeDraft, RetryKeys, ToolKeys,
    ToolsKeys, decode_node, merge_defaults,
};
pub(crate) use then::{Goto, Then, decode_goto, decode_then};
