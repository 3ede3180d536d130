//! Tools that every agent has.

mod clarification;
mod present_files;

pub(crate) use clarification::AskClarification;
pub(crate) use present_files::PresentFiles;
