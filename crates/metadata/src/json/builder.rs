use serde_json::{Map, Value};
use url::Url;

use crate::{UnixTime, numeric_date};

/// Writes one JSON object: the named members over a copy of the unknown ones.
///
/// A member that has a setter is what its setter says, also when the unknown members hold that name.
pub(crate) struct ObjectBuilder(Map<String, Value>);

impl ObjectBuilder {
    pub(crate) fn over(extra: &Map<String, Value>) -> Self {
        Self(extra.clone())
    }

    /// For metadata documents, which have no member with an empty array (RFC 8414 and RFC 9728, both
    /// section 3.2).
    pub(crate) fn over_metadata(extra: &Map<String, Value>) -> Self {
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        let kept = extra.iter().filter(|(_, value)| !is_empty(value));
        Self(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    pub(crate) fn value(&mut self, member: &'static str, value: Option<Value>) {
        match value {
            Some(value) => self.0.insert(member.to_owned(), value),
            None => self.0.remove(member),
        };
    }

    pub(crate) fn string(&mut self, member: &'static str, text: Option<&str>) {
        self.value(member, text.map(Value::from));
    }

    /// Left out when there is no entry.
    pub(crate) fn strings<'a>(&mut self, member: &'static str, entries: impl IntoIterator<Item = &'a str>) {
        let entries: Vec<Value> = entries.into_iter().map(Value::from).collect();
        self.value(member, (!entries.is_empty()).then_some(Value::Array(entries)));
    }

    /// Left out when there is no entry.
    pub(crate) fn list(&mut self, member: &'static str, entries: &[String]) {
        self.strings(member, entries.iter().map(String::as_str));
    }

    pub(crate) fn optional_list(&mut self, member: &'static str, entries: Option<&Vec<String>>) {
        self.strings(member, entries.into_iter().flatten().map(String::as_str));
    }

    pub(crate) fn boolean(&mut self, member: &'static str, value: Option<bool>) {
        self.value(member, value.map(Value::from));
    }

    pub(crate) fn url(&mut self, member: &'static str, url: Option<&Url>) {
        self.string(member, url.map(Url::as_str));
    }

    pub(crate) fn date(&mut self, member: &'static str, date: Option<UnixTime>) {
        self.value(member, date.map(numeric_date::build));
    }

    pub(crate) fn into_json(self) -> Vec<u8> {
        Value::Object(self.0).to_string().into_bytes()
    }
}
