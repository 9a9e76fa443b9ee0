//! Strict parsing and building of the JSON objects that wire documents consist of.

#[cfg(test)]
pub(crate) mod arbitrary;
mod builder;
mod error;
mod members;
mod object;

pub(crate) use builder::ObjectBuilder;
pub use error::DocumentError;
pub(crate) use members::Members;
pub(crate) use object::ParsedObject;
