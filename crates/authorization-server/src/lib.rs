#![doc = include_str!("../README.md")]

pub mod client;
mod error;
mod params;
mod random;

pub use error::{ErrorCode, ErrorResponse};
pub use params::{DuplicateParameter, Params};
pub use random::{RandomError, random_bytes, random_secret};
