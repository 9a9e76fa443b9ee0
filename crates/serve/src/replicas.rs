//! Other replicas: the connection to them, and what they find out about tokens.

#[cfg_attr(not(feature = "redis"), path = "replicas/without_redis.rs")]
mod connection;
pub(crate) mod revocations;

pub(crate) use connection::Replicas;
