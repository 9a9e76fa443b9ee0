use serde_json::{Map, Value};
use url::Url;

use crate::{
    identifier::uri,
    json::{error::DocumentError, object::ParsedObject},
    time::{UnixTime, numeric_date},
};

/// The members of a JSON object. Known members are taken out by name; the remaining ones are
/// unknown.
///
/// An optional member that is `null` counts as missing, because several authorization servers send
/// `null`.
pub(crate) struct Members(Map<String, Value>);

impl Members {
    /// Parses a document that must be a JSON object without duplicate members.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        let object: ParsedObject =
            serde_json::from_slice(document).map_err(|_| DocumentError::NotJson)?;
        object.into_members().map(Self)
    }

    /// Returns the members of an object that was parsed before.
    pub(crate) fn new(members: Map<String, Value>) -> Self {
        Self(members)
    }

    /// Takes a value of any type.
    pub(crate) fn value(&mut self, member: &'static str) -> Option<Value> {
        self.0.remove(member).filter(|value| !value.is_null())
    }

    /// Returns whether there is a member, which can be `null`.
    pub(crate) fn contains(&self, member: &str) -> bool {
        self.0.contains_key(member)
    }

    /// Takes a string.
    pub(crate) fn string(&mut self, member: &'static str) -> Result<Option<String>, DocumentError> {
        match self.value(member) {
            None => Ok(None),
            Some(Value::String(string)) => Ok(Some(string)),
            Some(_) => Err(DocumentError::WrongType {
                member,
                expected: "a string",
            }),
        }
    }

    /// Takes a string that must be present and not empty.
    pub(crate) fn required_string(
        &mut self,
        member: &'static str,
    ) -> Result<String, DocumentError> {
        let string = self
            .string(member)?
            .ok_or(DocumentError::Missing { member })?;
        if string.is_empty() {
            Err(DocumentError::Empty { member })
        } else {
            Ok(string)
        }
    }

    /// Takes an array of strings.
    pub(crate) fn strings(
        &mut self,
        member: &'static str,
    ) -> Result<Option<Vec<String>>, DocumentError> {
        self.value(member)
            .map(|value| {
                into_strings(value).ok_or(DocumentError::WrongType {
                    member,
                    expected: "an array of strings",
                })
            })
            .transpose()
    }

    /// Takes an array of strings. A missing array counts as empty.
    pub(crate) fn list(&mut self, member: &'static str) -> Result<Vec<String>, DocumentError> {
        Ok(self.strings(member)?.unwrap_or_default())
    }

    /// Takes a boolean.
    pub(crate) fn boolean(&mut self, member: &'static str) -> Result<Option<bool>, DocumentError> {
        match self.value(member) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(DocumentError::WrongType {
                member,
                expected: "true or false",
            }),
        }
    }

    /// Takes an absolute `http` or `https` URL without a fragment.
    pub(crate) fn endpoint(&mut self, member: &'static str) -> Result<Option<Url>, DocumentError> {
        self.string(member)?
            .map(|text| {
                uri::parse(&text)
                    .ok()
                    .filter(|url| {
                        matches!(url.scheme(), "https" | "http") && url.fragment().is_none()
                    })
                    .ok_or(DocumentError::NotAUrl { member })
            })
            .transpose()
    }

    /// Takes a date in seconds since the epoch.
    pub(crate) fn numeric_date(
        &mut self,
        member: &'static str,
    ) -> Result<Option<UnixTime>, DocumentError> {
        self.value(member)
            .map(|value| numeric_date::parse(&value).ok_or(DocumentError::Date { member }))
            .transpose()
    }

    /// Takes a duration in seconds, rounded down. A longer one than [`u64`] holds counts as
    /// [`u64::MAX`].
    pub(crate) fn seconds(&mut self, member: &'static str) -> Result<Option<u64>, DocumentError> {
        let Some(value) = self.value(member) else {
            return Ok(None);
        };
        // The cast saturates.
        let fraction = || {
            value
                .as_f64()
                .filter(|seconds| *seconds >= 0.0)
                .map(|seconds| seconds as u64)
        };
        let seconds = value.as_u64().or_else(fraction);
        seconds.map(Some).ok_or(DocumentError::WrongType {
            member,
            expected: "a non-negative number",
        })
    }

    /// Returns the members that were not taken.
    pub(crate) fn remaining(self) -> Map<String, Value> {
        self.0
    }
}

/// Returns the strings of an array; `None` if the value is not an array or has an entry of another
/// type.
fn into_strings(value: Value) -> Option<Vec<String>> {
    let Value::Array(entries) = value else {
        return None;
    };
    entries
        .into_iter()
        .map(|entry| match entry {
            Value::String(string) => Some(string),
            _ => None,
        })
        .collect()
}
