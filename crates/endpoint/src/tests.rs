//! The endpoint as a whole, behind a real guard, over an inner service that answers from a script.

mod admitted;
mod allocations;
mod bodies;
mod modern;
mod renewing;
mod scopes;
mod sessions;
mod world;
