//! [`Outgoing`]: a message to the server, with the headers that repeat parts of it.

use http::HeaderMap;
use portcullis_mcp::{ErrorCode, Revision, meta, mirrored_member};
use serde_json::{Map, Value, json};

use crate::{error::McpError, transport::mirrored_headers};

/// A message to the server: its body, and the headers that repeat parts of it.
pub(super) struct Outgoing {
    id: Option<u64>,
    body: Vec<u8>,
    headers: HeaderMap,
}

impl Outgoing {
    /// A request of a legacy version.
    pub(super) fn request(id: u64, method: &str, params: Option<Value>) -> Self {
        Self::legacy(Some(id), method, params)
    }

    /// A notification of a legacy version.
    pub(super) fn notification(method: &str, params: Option<Value>) -> Self {
        Self::legacy(None, method, params)
    }

    fn legacy(id: Option<u64>, method: &str, params: Option<Value>) -> Self {
        Self {
            id,
            body: body(id, method, params),
            headers: HeaderMap::new(),
        }
    }

    /// A message of 2026-07-28: version, client and capabilities in `_meta`, and the headers that
    /// repeat parts of it. Fails with [`McpError::InvalidParams`] if the parameters or their
    /// `_meta` member are not an object.
    pub(super) fn modern(
        id: Option<u64>,
        method: &str,
        params: Option<Value>,
        revision: Revision,
        client_info: Value,
        capabilities: Value,
    ) -> Result<Self, McpError> {
        let mut params = match params {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(McpError::InvalidParams),
        };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        let meta = meta.as_object_mut().ok_or(McpError::InvalidParams)?;
        meta.insert(meta::PROTOCOL_VERSION.into(), revision.as_str().into());
        meta.insert(meta::CLIENT_INFO.into(), client_info);
        meta.entry(meta::CLIENT_CAPABILITIES)
            .or_insert(capabilities);

        let target = mirrored_member(method).and_then(|member| params.get(member)?.as_str());
        let headers = mirrored_headers(revision.as_str(), method, target)?;
        Ok(Self {
            id,
            body: body(id, method, Some(params.into())),
            headers,
        })
    }

    /// A response to a request of the server. `None` means that the client does not have the
    /// method.
    pub(super) fn response(id: Value, result: Option<Value>) -> Self {
        let mut message = json!({ "jsonrpc": "2.0", "id": id });
        match result {
            Some(result) => message["result"] = result,
            None => {
                let code = ErrorCode::MethodNotFound.value();
                message["error"] =
                    json!({ "code": code, "message": "the client has no such method" });
            }
        }
        Self {
            id: None,
            body: message.to_string().into_bytes(),
            headers: HeaderMap::new(),
        }
    }

    /// Adds headers that repeat further parts of it.
    pub(super) fn add(&mut self, headers: HeaderMap) {
        self.headers.extend(headers);
    }

    /// The identifier of a request. `None` for notifications and responses.
    pub(super) fn id(&self) -> Option<u64> {
        self.id
    }

    /// The JSON text.
    pub(super) fn body(&self) -> Vec<u8> {
        self.body.clone()
    }

    /// The headers that repeat parts of it.
    pub(super) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }
}

fn body(id: Option<u64>, method: &str, params: Option<Value>) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(id) = id {
        message["id"] = id.into();
    }
    if let Some(params) = params {
        message["params"] = params;
    }
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use portcullis_mcp::{Envelope, EnvelopeLimits, Era, Revisions, classify};

    use super::*;

    fn modern(method: &str, params: Option<Value>) -> Result<Outgoing, McpError> {
        Outgoing::modern(
            Some(7),
            method,
            params,
            Revision::V2026_07_28,
            json!({ "name": "t", "version": "1" }),
            json!({}),
        )
    }

    /// F5: the endpoint's classifier recognizes this client's messages as modern.
    #[test]
    fn modern_messages_mirror_themselves() {
        for (method, params) in [
            (
                "tools/call",
                Some(json!({ "name": "währung", "arguments": {} })),
            ),
            ("prompts/get", Some(json!({ "name": " padded " }))),
            ("resources/read", Some(json!({ "uri": "file:///a b" }))),
            ("tools/list", None),
            (
                "subscriptions/listen",
                Some(json!({ "_meta": { "progressToken": 1 } })),
            ),
        ] {
            let message = modern(method, params).unwrap();
            let envelope = Envelope::parse(&message.body, EnvelopeLimits::default()).unwrap();
            let era = classify(Ok(&envelope), &message.headers, Revisions::ALL);
            assert_eq!(era, Ok(Era::Modern(Revision::V2026_07_28)), "{method}");
        }
    }

    #[test]
    fn parameters_are_an_object() {
        assert_eq!(
            modern("tools/list", Some(json!([1])))
                .err()
                .map(|error| error.code()),
            Some("mcp.params")
        );
        let meta = modern("tools/list", Some(json!({ "_meta": 1 })));
        assert_eq!(meta.err().map(|error| error.code()), Some("mcp.params"));
    }

    #[test]
    fn legacy_messages_carry_no_mirror() {
        let message = Outgoing::notification("notifications/initialized", None);
        assert!(message.headers.is_empty());
        let sent: Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(
            sent,
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
        );
        let sent: Value =
            serde_json::from_slice(&Outgoing::request(1, "a", Some(json!({}))).body).unwrap();
        assert_eq!(
            sent,
            json!({ "jsonrpc": "2.0", "id": 1, "method": "a", "params": {} })
        );
    }
}
