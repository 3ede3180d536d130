//! Tools that every agent has.

mod clarification;
mod present_files;

pub(crate) use clarification::AskClarification;
pub use clarification::{FieldKind, Form, FormField};
pub(crate) use present_files::PresentFiles;
