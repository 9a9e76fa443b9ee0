//! Other replicas: the connection to them, and what they find out about tokens.

pub(crate) mod broker_ends;
#[cfg_attr(not(feature = "redis"), path = "replicas/without_redis.rs")]
mod connection;
pub(crate) mod revocations;

pub(crate) use connection::{Replicas, open_records};
