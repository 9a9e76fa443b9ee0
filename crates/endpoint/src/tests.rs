//! The endpoint as a whole, behind a real guard, over an inner service that responds from a script.

mod admitted;
mod allocations;
mod bodies;
mod ending;
mod fixture;
mod inner;
mod limits;
mod messages;
mod modern;
mod owners;
mod renewing;
mod replicas;
mod scopes;
mod service;
mod sessions;
mod stateless;
mod streams;
mod versions;
