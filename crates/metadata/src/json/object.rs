//! [`ParsedObject`]: a JSON object without duplicate members.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::json::error::DocumentError;

/// A JSON value that should be an object without duplicate members.
///
/// `serde_json::Map` keeps the last of two members with the same name. Parsers that disagree on
/// which one counts allow attackers to bypass checks, so duplicates are rejected.
pub(crate) enum ParsedObject {
    /// An object.
    Members(Map<String, Value>),
    /// An object with a member twice.
    Duplicate,
    /// A value of another type.
    NotAnObject,
}

impl ParsedObject {
    /// Returns the members. Fails if the value is not an object, or has a member twice.
    pub(crate) fn into_members(self) -> Result<Map<String, Value>, DocumentError> {
        match self {
            Self::Members(members) => Ok(members),
            Self::Duplicate => Err(DocumentError::DuplicateMember),
            Self::NotAnObject => Err(DocumentError::NotAnObject),
        }
    }
}

impl<'de> Deserialize<'de> for ParsedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = ParsedObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<ParsedObject, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if members.contains_key(&name) {
                access.next_value::<IgnoredAny>()?;
                while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(ParsedObject::Duplicate);
            }
            members.insert(name, access.next_value()?);
        }
        Ok(ParsedObject::Members(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<ParsedObject, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ParsedObject::NotAnObject)
    }

    fn visit_bool<E>(self, _: bool) -> Result<ParsedObject, E> {
        Ok(ParsedObject::NotAnObject)
    }

    fn visit_i64<E>(self, _: i64) -> Result<ParsedObject, E> {
        Ok(ParsedObject::NotAnObject)
    }

    fn visit_u64<E>(self, _: u64) -> Result<ParsedObject, E> {
        Ok(ParsedObject::NotAnObject)
    }

    fn visit_f64<E>(self, _: f64) -> Result<ParsedObject, E> {
        Ok(ParsedObject::NotAnObject)
    }

    fn visit_str<E>(self, _: &str) -> Result<ParsedObject, E> {
        Ok(ParsedObject::NotAnObject)
    }

    fn visit_unit<E>(self) -> Result<ParsedObject, E> {
        Ok(ParsedObject::NotAnObject)
    }
}
