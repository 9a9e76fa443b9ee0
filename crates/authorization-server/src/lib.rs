#![doc = include_str!("../README.md")]

pub mod authentication;
pub mod client;
mod error;
mod params;
mod random;
mod store;

pub use error::{ErrorCode, ErrorResponse};
pub use params::{DuplicateParameter, Params};
pub use random::{RandomError, random_bytes, random_secret};
pub use store::{Store, StoreError};
