//! The bridge between a scripted client and a scripted server.

mod abuse;
mod another_client;
mod authorization;
mod closing;
mod legacy;
mod many_messages;
mod messages;
mod modern;
#[cfg(unix)]
mod pipes;
mod renewal;
mod server;
mod sse;
