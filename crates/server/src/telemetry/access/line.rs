//! An access line and its two formats.

use std::{io::Write as _, time::Duration};

use http::{Method, StatusCode};
use portcullis_metadata::{EscapedText, UnixTime};
use portcullis_verifier::Principal;

use crate::telemetry::{
    LogFormat,
    json::{JsonObject, write_string},
    timestamp,
};

/// The content of one line. It has no headers, queries or tokens.
pub(crate) struct Line<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) time: UnixTime,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) status: StatusCode,
    /// The reason code of a rejection.
    pub(crate) code: Option<&'static str>,
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) latency: Duration,
}

impl Line<'_> {
    pub(super) fn write(&self, format: LogFormat, out: &mut Vec<u8>) {
        match format {
            LogFormat::Human => self.write_human(out),
            LogFormat::Json => JsonObject::write(out, |object| self.add_members(object)),
        }
        out.push(b'\n');
    }

    fn add_members(&self, object: &mut JsonObject<'_>) {
        object.display("timestamp", timestamp(self.time));
        object.plain_text("level", "INFO");
        object.plain_text("message", "request");
        object.plain_text("request.id", self.request_id);
        object.text("http.method", self.method.as_str());
        object.text("http.path", self.path);
        object.number("http.status", self.status.as_u16());
        object.number("latency.us", self.latency_us());
        for (name, value) in self.optional_members() {
            object.optional_text(name, value);
        }
    }

    fn write_human(&self, out: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = write!(out, "{}  INFO request", timestamp(self.time));
        write_field(out, "request.id", self.request_id);
        write_field(out, "http.method", self.method.as_str());
        let _ = write!(out, " http.path={}", EscapedText(self.path));
        write_field(out, "http.status", self.status.as_str());
        write_field(out, "latency.us", itoa::Buffer::new().format(self.latency_us()));
        for (name, value) in self.optional_members() {
            if let Some(value) = value {
                write_field(out, name, "");
                write_string(out, value);
            }
        }
    }

    fn latency_us(&self) -> u64 {
        u64::try_from(self.latency.as_micros()).unwrap_or(u64::MAX)
    }

    fn optional_members(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("deny.code", self.code),
            ("principal.issuer", self.principal.map(|principal| principal.issuer().as_str())),
            ("principal.subject", self.principal.and_then(Principal::subject)),
            ("principal.client", self.principal.and_then(Principal::client)),
        ]
    }
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [" ", name, "=", value] {
        out.extend_from_slice(part.as_bytes());
    }
}
