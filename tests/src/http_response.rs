//! [`HttpResponse`]: an HTTP response as it was received.

use std::fmt;

use crate::Deployment;

/// An HTTP response as it was received.
#[derive(Clone)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The header fields in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns the first field of a name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the number of fields of a name.
    pub fn count(&self, name: &str) -> usize {
        self.headers
            .iter()
            .filter(|(field, _)| field == name)
            .count()
    }

    /// Returns the body as a string.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("the body is not JSON: {self:?}"))
    }

    /// Returns a parameter of the challenge.
    pub fn challenge(&self, name: &str) -> Option<&str> {
        let challenge = self.header("www-authenticate")?;
        let after = challenge.split_once(&format!("{name}=\""))?.1;
        Some(after.split_once('"')?.0)
    }

    /// Asserts what all 401 responses of a [`Deployment`] have in common, and returns the
    /// challenge's `error`.
    ///
    /// # Panics
    /// Panics otherwise.
    pub fn assert_unauthorized(&self) -> Option<&str> {
        assert_eq!(self.status, 401, "{self:?}");
        assert_eq!(self.count("www-authenticate"), 1, "{self:?}");
        assert!(
            self.header("www-authenticate")
                .is_some_and(|value| value.starts_with("Bearer ")),
            "{self:?}"
        );
        assert!(self.challenge("realm").is_some(), "{self:?}");
        assert_eq!(
            self.challenge("resource_metadata"),
            Some(Deployment::METADATA_URL),
            "{self:?}"
        );
        assert_eq!(
            self.header("x-request-id").map(str::len),
            Some(36),
            "{self:?}"
        );
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
        assert_eq!(
            self.text(),
            r#"{"error":"unauthorized","error_description":"A valid bearer access token is required"}"#
        );
        self.challenge("error")
    }

    /// Asserts that the body is a JSON-RPC error with this status and code.
    ///
    /// # Panics
    /// Panics otherwise.
    pub fn assert_rpc_error(&self, status: u16, code: i64) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        let body = self.json();
        assert_eq!(body["jsonrpc"], "2.0", "{self:?}");
        assert_eq!(body["error"]["code"], code, "{self:?}");
        assert!(body["error"]["message"].is_string(), "{self:?}");
        assert!(body.get("result").is_none(), "{self:?}");
    }

    /// Asserts that the POST had no usable session, and that its client does not learn why.
    ///
    /// # Panics
    /// Panics otherwise.
    pub fn assert_no_session(&self) {
        self.assert_session_error(400);
    }

    /// Asserts that the POST named a session of its client that the server has ended.
    ///
    /// # Panics
    /// Panics otherwise.
    pub fn assert_ended_session(&self) {
        self.assert_session_error(404);
    }

    fn assert_session_error(&self, status: u16) {
        self.assert_rpc_error(status, -32000);
        assert_eq!(self.json()["id"], serde_json::Value::Null, "{self:?}");
        assert!(
            self.json().as_object().unwrap().contains_key("id"),
            "{self:?}"
        );
        assert_eq!(self.count("mcp-session-id"), 0, "{self:?}");
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        write!(f, "\n{}", self.text())
    }
}
