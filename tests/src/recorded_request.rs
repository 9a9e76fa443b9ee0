//! [`RecordedRequest`]: a request that reached an upstream.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

/// A request that reached the upstream.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub target: String,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl RecordedRequest {
    /// Returns the value of a header field.
    ///
    /// # Panics
    /// Panics if the field is repeated.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next();
        assert!(values.next().is_none(), "{name} is repeated: {self:?}");
        value.map(|value| value.to_str().expect("visible ASCII"))
    }

    /// Returns the method of the message in the body.
    pub fn message_method(&self) -> Option<String> {
        serde_json::from_slice::<Value>(&self.body).ok()?["method"]
            .as_str()
            .map(str::to_owned)
    }
}
