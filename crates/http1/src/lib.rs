#![doc = include_str!("../README.md")]

mod connection;
mod error;
mod request;
mod response;

pub use connection::{Connection, SendFuture};
pub use error::{ConnectionError, ProtocolError, SendError};
pub use request::{EncodedHeaders, Request, RequestBuilder};
