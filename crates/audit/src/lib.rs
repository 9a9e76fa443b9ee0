#![doc = include_str!("../README.md")]

mod administration;
mod broker;
mod chain;
mod chunk;
mod error;
mod key;
mod record;
mod rotation;
mod settings;
mod sink;
mod state;
mod tail;
#[cfg(test)]
mod testing;
mod trail;
mod usage;
pub mod verify;
mod writer;

pub use administration::{AdminAction, AdminPeer};
pub use broker::{BrokerAction, BrokerEvent};
pub use chain::{ChainKeys, Head};
pub use error::{ChainError, FileError, HeadError, KeysError, StartError};
pub use rotation::Rotation;
pub use settings::{AuditSettings, AuditTarget, WithoutChain};
pub use sink::{check_chain, check_file};
pub use trail::{Audit, AuditReopener, AuditTrail};
