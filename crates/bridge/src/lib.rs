#![doc = include_str!("../README.md")]

mod context;
mod dispatcher;
mod endpoint;
mod error;
mod error_response;
mod forwarding;
mod message;
mod outgoing_queue;
mod server_messages;
mod server_stream;
mod session_renewal;
mod session_requests;
mod settings;
mod state;
mod stdio;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transport;

pub use error::MessageTooLarge;
pub use forwarding::Bridge;
pub use settings::{BridgeSettings, BridgeTransport};
