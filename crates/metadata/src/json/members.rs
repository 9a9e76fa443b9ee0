use serde_json::{Map, Value};
use url::Url;

use super::ParsedObject;
use crate::{DocumentError, UnixTime, numeric_date, uri};

/// The members of one JSON object, taken out one by one; what is left over are the unknown ones.
pub(crate) struct Members(Map<String, Value>);

impl Members {
    /// Reads a document in which `null` for an optional member means that it is not there, as several
    /// authorization servers write it.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        Ok(Self::of(object(document)?))
    }

    /// The same for an object that has been read already.
    pub(crate) fn of(members: Map<String, Value>) -> Self {
        Self(members)
    }

    pub(crate) fn value(&mut self, member: &'static str) -> Option<Value> {
        self.0.remove(member).filter(|value| !value.is_null())
    }

    pub(crate) fn contains(&self, member: &str) -> bool {
        self.0.contains_key(member)
    }

    pub(crate) fn string(&mut self, member: &'static str) -> Result<Option<String>, DocumentError> {
        match self.value(member) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(DocumentError::WrongType { member, expected: "a string" }),
        }
    }

    /// A string that must be there and must not be empty.
    pub(crate) fn required_string(&mut self, member: &'static str) -> Result<String, DocumentError> {
        let text = self.string(member)?.ok_or(DocumentError::Missing { member })?;
        if text.is_empty() { Err(DocumentError::Empty { member }) } else { Ok(text) }
    }

    pub(crate) fn strings(&mut self, member: &'static str) -> Result<Option<Vec<String>>, DocumentError> {
        self.value(member)
            .map(|value| strings_of(value).ok_or(DocumentError::WrongType { member, expected: "an array of strings" }))
            .transpose()
    }

    /// An array of strings in which leaving it out and leaving it empty mean the same.
    pub(crate) fn list(&mut self, member: &'static str) -> Result<Vec<String>, DocumentError> {
        Ok(self.strings(member)?.unwrap_or_default())
    }

    pub(crate) fn boolean(&mut self, member: &'static str) -> Result<Option<bool>, DocumentError> {
        match self.value(member) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(DocumentError::WrongType { member, expected: "true or false" }),
        }
    }

    /// An absolute `http` or `https` URL without a fragment.
    pub(crate) fn endpoint(&mut self, member: &'static str) -> Result<Option<Url>, DocumentError> {
        self.string(member)?
            .map(|text| {
                uri::parse(&text)
                    .ok()
                    .filter(|url| matches!(url.scheme(), "https" | "http") && url.fragment().is_none())
                    .ok_or(DocumentError::NotAUrl { member })
            })
            .transpose()
    }

    pub(crate) fn date(&mut self, member: &'static str) -> Result<Option<UnixTime>, DocumentError> {
        self.value(member).map(|value| numeric_date::parse(&value).ok_or(DocumentError::Date { member })).transpose()
    }

    /// The members that nothing has taken.
    pub(crate) fn rest(self) -> Map<String, Value> {
        self.0
    }
}

fn object(document: &[u8]) -> Result<Map<String, Value>, DocumentError> {
    let parsed: ParsedObject = serde_json::from_slice(document).map_err(|_| DocumentError::NotJson)?;
    parsed.into_members()
}

fn strings_of(value: Value) -> Option<Vec<String>> {
    let Value::Array(entries) = value else { return None };
    entries
        .into_iter()
        .map(|entry| match entry {
            Value::String(text) => Some(text),
            _ => None,
        })
        .collect()
}
