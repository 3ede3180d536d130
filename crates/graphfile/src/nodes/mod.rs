//! Nodes the format can make by itself, and what is put around those of the host.

mod facts;
mod interrupt;
mod routed;
mod router;
mod set;

pub use facts::CxFacts;
pub(crate) use interrupt::InterruptNode;
pub(crate) use routed::Routed;
pub(crate) use router::BranchRouter;
pub(crate) use set::SetNode;
