//! The server over real loopback sockets.

mod authorization;
mod consent;
mod flow;
mod listening;
mod metadata;
mod registration;
mod support;
mod tokens;
