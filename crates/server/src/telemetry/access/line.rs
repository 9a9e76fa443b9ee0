//! The text of a line.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_metadata::UnixTime;
use portcullis_verifier::Principal;

use crate::telemetry::text::{push, push_number, push_quoted, push_timestamp};

/// What one line tells. It has no room for headers, queries and tokens.
pub(crate) struct Line<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) time: UnixTime,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) status: StatusCode,
    /// The reason of a refusal.
    pub(crate) code: Option<&'static str>,
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) latency: Duration,
}

impl Line<'_> {
    pub(super) fn human(&self, out: &mut Vec<u8>) {
        push_timestamp(out, self.time);
        push(out, "  INFO request request.id=");
        push(out, self.request_id);
        push(out, " http.method=");
        push(out, self.method.as_str());
        push(out, " http.path=");
        push(out, self.path);
        push(out, " http.status=");
        push(out, self.status.as_str());
        push(out, " latency.us=");
        push_number(out, u64::try_from(self.latency.as_micros()).unwrap_or(u64::MAX));
        for (name, value) in self.optional() {
            if let Some(value) = value {
                push(out, " ");
                push(out, name);
                push(out, "=");
                push_quoted(out, value);
            }
        }
        push(out, "\n");
    }

    pub(super) fn json(&self, out: &mut Vec<u8>) {
        push(out, r#"{"timestamp":""#);
        push_timestamp(out, self.time);
        push(out, r#"","level":"INFO","message":"request","request.id":""#);
        push(out, self.request_id);
        push(out, r#"","http.method":""#);
        push(out, self.method.as_str());
        push(out, r#"","http.path":"#);
        push_quoted(out, self.path);
        push(out, r#","http.status":"#);
        push(out, self.status.as_str());
        push(out, r#","latency.us":"#);
        push_number(out, u64::try_from(self.latency.as_micros()).unwrap_or(u64::MAX));
        for (name, value) in self.optional() {
            if let Some(value) = value {
                push(out, ",\"");
                push(out, name);
                push(out, "\":");
                push_quoted(out, value);
            }
        }
        push(out, "}\n");
    }

    fn optional(&self) -> [(&'static str, Option<&str>); 4] {
        let principal = self.principal;
        [
            ("deny.code", self.code),
            ("principal.issuer", principal.map(|principal| principal.issuer().as_str())),
            ("principal.subject", principal.and_then(Principal::subject)),
            ("principal.client", principal.and_then(Principal::client)),
        ]
    }
}
