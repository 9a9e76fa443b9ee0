//! Connections to the upstream.

mod limit;
mod pool;
mod stream;

pub use limit::ConnectionLimit;
pub(crate) use pool::{Connection, Pool};
pub(crate) use stream::{ConnectError, Stream};
