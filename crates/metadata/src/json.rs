//! Reading and writing the JSON objects that all wire documents are.

#[cfg(test)]
pub(crate) mod arbitrary;
mod builder;
mod members;
mod object;

pub(crate) use builder::ObjectBuilder;
pub(crate) use members::Members;
pub(crate) use object::ParsedObject;
