//! The text of a line.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_metadata::UnixTime;
use portcullis_verifier::Principal;

use crate::{
    recorded::Recorded,
    telemetry::{
        LogFormat,
        text::{push, push_for_people, push_number, push_quoted, push_timestamp},
    },
};

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

/// What lines say of one principal.
pub(crate) struct LoggedPrincipal {
    format: LogFormat,
    text: Box<[u8]>,
}

impl Line<'_> {
    pub(super) fn write(&self, format: LogFormat, out: &mut Vec<u8>) {
        match format {
            LogFormat::Human => self.human(out),
            LogFormat::Json => self.json(out),
        }
    }

    fn human(&self, out: &mut Vec<u8>) {
        push_timestamp(out, self.time);
        push(out, "  INFO request request.id=");
        push(out, self.request_id);
        push(out, " http.method=");
        push(out, self.method.as_str());
        push(out, " http.path=");
        push_for_people(out, self.path);
        push(out, " http.status=");
        push(out, self.status.as_str());
        push(out, " latency.us=");
        push_number(out, self.latency_us());
        self.optional(LogFormat::Human, out);
        push(out, "\n");
    }

    fn json(&self, out: &mut Vec<u8>) {
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
        push_number(out, self.latency_us());
        self.optional(LogFormat::Json, out);
        push(out, "}\n");
    }

    fn latency_us(&self) -> u64 {
        u64::try_from(self.latency.as_micros()).unwrap_or(u64::MAX)
    }

    fn optional(&self, format: LogFormat, out: &mut Vec<u8>) {
        if let Some(code) = self.code {
            member(out, format, "deny.code", code);
        }
        let Some(principal) = self.principal else { return };
        match LoggedPrincipal::kept(format, principal) {
            Some(logged) => out.extend_from_slice(&logged.text),
            None => write_principal(out, format, principal),
        }
    }
}

impl LoggedPrincipal {
    fn kept(format: LogFormat, principal: &Principal) -> Option<&Self> {
        let logged = Recorded::of(principal)?.access.get_or_init(|| Self::new(format, principal));
        (logged.format == format).then_some(logged)
    }

    fn new(format: LogFormat, principal: &Principal) -> Self {
        let mut text = Vec::new();
        write_principal(&mut text, format, principal);
        Self { format, text: text.into() }
    }
}

fn write_principal(out: &mut Vec<u8>, format: LogFormat, principal: &Principal) {
    member(out, format, "principal.issuer", principal.issuer().as_str());
    if let Some(subject) = principal.subject() {
        member(out, format, "principal.subject", subject);
    }
    if let Some(client) = principal.client() {
        member(out, format, "principal.client", client);
    }
}

fn member(out: &mut Vec<u8>, format: LogFormat, name: &str, value: &str) {
    let (before, between) = match format {
        LogFormat::Human => (" ", "="),
        LogFormat::Json => (",\"", "\":"),
    };
    for text in [before, name, between] {
        push(out, text);
    }
    push_quoted(out, value);
}
