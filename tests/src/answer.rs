use std::fmt;

use crate::Deployment;

/// An HTTP answer as it came over the wire.
#[derive(Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first field of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// How many fields of that name there are.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(held, _)| held == name).count()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("the body is no JSON: {self:?}"))
    }

    /// One parameter of the challenge.
    pub fn challenge(&self, name: &str) -> Option<&str> {
        let challenge = self.header("www-authenticate")?;
        let after = challenge.split_once(&format!("{name}=\""))?.1;
        Some(after.split_once('"')?.0)
    }

    /// Asserts what every 401 of the guard has, and gives the challenge's `error`. The body is the same for every cause.
    ///
    /// # Panics
    /// When it is no such 401.
    pub fn assert_unauthorized(&self) -> Option<&str> {
        assert_eq!(self.status, 401, "{self:?}");
        assert_eq!(self.count("www-authenticate"), 1, "{self:?}");
        assert!(self.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer ")), "{self:?}");
        assert!(self.challenge("realm").is_some(), "{self:?}");
        assert_eq!(self.challenge("resource_metadata"), Some(Deployment::METADATA_URL), "{self:?}");
        assert_eq!(self.header("x-request-id").map(str::len), Some(36), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
        assert_eq!(
            self.text(),
            r#"{"error":"unauthorized","error_description":"A valid bearer access token is required"}"#
        );
        self.challenge("error")
    }

    /// Asserts that the body is this JSON-RPC error without an id.
    ///
    /// # Panics
    /// When it is not so.
    pub fn assert_rpc_error(&self, status: u16, code: i64) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["jsonrpc"], "2.0", "{self:?}");
        assert_eq!(body["error"]["code"], code, "{self:?}");
        assert!(body["error"]["message"].is_string(), "{self:?}");
        assert!(body.get("result").is_none(), "{self:?}");
    }

    /// Asserts the answer to a POST that has no session it may use.
    ///
    /// # Panics
    /// When it is not so.
    pub fn assert_no_session(&self) {
        self.assert_rpc_error(400, -32000);
        assert_eq!(self.json()["id"], serde_json::Value::Null, "{self:?}");
        assert!(self.json().as_object().unwrap().contains_key("id"), "{self:?}");
        assert_eq!(self.count("mcp-session-id"), 0, "{self:?}");
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        write!(f, "\n{}", self.text())
    }
}
