#![doc = include_str!("../README.md")]

mod admission;
mod admitted;
mod builder;
mod future;
mod http_service;
mod layer;
mod message;
mod reason_codes;
mod response;
mod rules;
mod service;
mod session;
mod settings;
mod state;
mod stream;

pub use admitted::{Admitted, AdmittedBody};
pub use builder::{EndpointBuilder, EndpointBuilderError};
pub use future::EndpointFuture;
pub use http_service::HttpService;
pub use layer::EndpointLayer;
pub use message::BodyBudget;
pub use reason_codes::REASON_CODES;
pub use response::{EndpointBody, EndpointBodyError};
pub use rules::{MessageRule, NameGlob, NameGlobError};
pub use service::Endpoint;
pub use session::{BackendSessionGuard, EndedSessionStatus, SessionMode};
pub use settings::{EndpointSettings, EndpointSettingsError};
pub use stream::{
    EndedStream, StreamEndReason, StreamObserver, StreamRegistry, StreamRequest, StreamStopped,
};

#[cfg(test)]
mod tests;
