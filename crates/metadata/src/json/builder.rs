//! [`ObjectBuilder`]: serializes a document.

use serde_json::{Map, Value};
use url::Url;

use crate::time::{UnixTime, numeric_date};

/// Builds a JSON object from unknown members and known ones.
///
/// A known member replaces an unknown member with the same name.
pub(crate) struct ObjectBuilder(Map<String, Value>);

impl ObjectBuilder {
    /// Starts with a copy of the unknown members.
    pub(crate) fn new(extra: &Map<String, Value>) -> Self {
        Self(extra.clone())
    }

    /// Like [`new`](Self::new), but omits members with an empty array, as metadata documents
    /// require (RFC 8414 and RFC 9728, both section 3.2).
    pub(crate) fn for_metadata(extra: &Map<String, Value>) -> Self {
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        let kept = extra.iter().filter(|(_, value)| !is_empty(value));
        Self(
            kept.map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Sets a member, or removes it if the value is `None`.
    pub(crate) fn value(&mut self, member: &'static str, value: Option<Value>) {
        match value {
            Some(value) => self.0.insert(member.to_owned(), value),
            None => self.0.remove(member),
        };
    }

    /// Sets a string, or removes it if it is `None`.
    pub(crate) fn string(&mut self, member: &'static str, string: Option<&str>) {
        self.value(member, string.map(Value::from));
    }

    /// Sets an array of strings. An empty one is omitted.
    pub(crate) fn strings<'a>(
        &mut self,
        member: &'static str,
        entries: impl IntoIterator<Item = &'a str>,
    ) {
        let entries: Vec<Value> = entries.into_iter().map(Value::from).collect();
        self.value(
            member,
            (!entries.is_empty()).then_some(Value::Array(entries)),
        );
    }

    /// Sets an array of strings. An empty one is omitted.
    pub(crate) fn list(&mut self, member: &'static str, entries: &[String]) {
        self.strings(member, entries.iter().map(String::as_str));
    }

    /// Sets an array of strings. `None` and an empty one are omitted.
    pub(crate) fn optional_list(&mut self, member: &'static str, entries: Option<&Vec<String>>) {
        self.strings(member, entries.into_iter().flatten().map(String::as_str));
    }

    /// Sets an array of strings, which can be empty, or removes it if it is `None`.
    pub(crate) fn possibly_empty_list(&mut self, member: &'static str, entries: Option<&[String]>) {
        self.value(member, entries.map(Value::from));
    }

    /// Sets a boolean, or removes it if it is `None`.
    pub(crate) fn boolean(&mut self, member: &'static str, value: Option<bool>) {
        self.value(member, value.map(Value::from));
    }

    /// Sets a URL, or removes it if it is `None`.
    pub(crate) fn url(&mut self, member: &'static str, url: Option<&Url>) {
        self.string(member, url.map(Url::as_str));
    }

    /// Sets a date in seconds, or removes it if it is `None`.
    pub(crate) fn numeric_date(&mut self, member: &'static str, date: Option<UnixTime>) {
        self.value(member, date.map(numeric_date::to_value));
    }

    /// Serializes the object.
    pub(crate) fn into_json(self) -> Vec<u8> {
        Value::Object(self.0).to_string().into_bytes()
    }
}
