#![doc = include_str!("../README.md")]

mod admin;
mod audit;
mod check;
mod cli;
mod configuration;
#[cfg(feature = "dev")]
mod demo;
mod error;
mod exchange;
mod health;
#[cfg(feature = "dev")]
mod idp;
mod init;
mod online_check;
mod run;
mod runtime;
mod serve;

pub use cli::{AuditCommand, OperatorCommand};

use configuration::load;
use error::command_error;
use runtime::control_runtime;
