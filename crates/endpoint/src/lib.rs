//! The tower layer for a Model Context Protocol endpoint, inside the guard.

mod admitted;
mod body;
mod budget;
mod collect;
mod exchange;
mod future;
mod glob;
mod judge;
mod layer;
mod message;
mod plain;
mod respond;
mod rules;
mod service;
mod session;
mod settings;

pub use admitted::Admitted;
pub use body::{AdmittedBody, EndpointBody};
pub use budget::BodyBudget;
pub use future::EndpointFuture;
pub use glob::{NameGlob, NameGlobError};
pub use layer::EndpointLayer;
pub use plain::Plain;
pub use rules::Rule;
pub use service::Endpoint;
pub use settings::{EndpointSettings, SettingsError};
