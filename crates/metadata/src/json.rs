//! Reading and writing the JSON objects that all wire documents are.

mod builder;
mod members;
mod object;

pub(crate) use builder::ObjectBuilder;
pub(crate) use members::Members;
pub(crate) use object::ParsedObject;
