#![doc = include_str!("../README.md")]

mod call;
mod cli;
mod client_document;
mod connect;
mod doctor;
mod end_signals;
mod error;
mod import_mcp_remote;
mod login;
mod mcp_remote;
mod run;
mod runtime;
mod sign_in;
mod stored;
mod undiagnosed;

pub use cli::ClientCommand;
pub use portcullis_discovery::Product;

use error::command_error;
use runtime::control_runtime;
