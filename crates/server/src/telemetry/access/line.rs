//! An access line and its two formats.

use std::{io::Write as _, time::Duration};

use http::{Method, StatusCode};
use portcullis_metadata::{EscapedText, UnixTime};
use portcullis_verifier::Principal;
use serde::Serialize;

use crate::telemetry::{LogFormat, json::write_json, timestamp};

/// What one line says about a request. Headers, queries and tokens are not part of it.
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

/// The members of a JSON line.
#[derive(Serialize)]
struct Members<'a> {
    timestamp: String,
    level: &'static str,
    message: &'static str,
    #[serde(rename = "request.id")]
    request_id: &'a str,
    #[serde(rename = "http.method")]
    method: &'a str,
    #[serde(rename = "http.path")]
    path: &'a str,
    #[serde(rename = "http.status")]
    status: u16,
    #[serde(rename = "latency.us")]
    latency_us: u64,
    #[serde(rename = "deny.code", skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(rename = "principal.issuer", skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    #[serde(rename = "principal.subject", skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(rename = "principal.client", skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
}

impl Line<'_> {
    pub(super) fn write(&self, format: LogFormat, out: &mut Vec<u8>) {
        match format {
            LogFormat::Human => self.write_human(out),
            LogFormat::Json => write_json(out, &self.members()),
        }
        out.push(b'\n');
    }

    fn members(&self) -> Members<'_> {
        Members {
            timestamp: timestamp(self.time).to_string(),
            level: "INFO",
            message: "request",
            request_id: self.request_id,
            method: self.method.as_str(),
            path: self.path,
            status: self.status.as_u16(),
            latency_us: u64::try_from(self.latency.as_micros()).unwrap_or(u64::MAX),
            code: self.code,
            issuer: self.principal.map(|principal| principal.issuer().as_str()),
            subject: self.principal.and_then(Principal::subject),
            client: self.principal.and_then(Principal::client),
        }
    }

    fn write_human(&self, out: &mut Vec<u8>) {
        let members = self.members();
        out.extend_from_slice(members.timestamp.as_bytes());
        out.extend_from_slice(b"  INFO request");
        write_field(out, "request.id", members.request_id);
        write_field(out, "http.method", members.method);
        let path = EscapedText(members.path);
        // Writing to a vector does not fail.
        let _ = write!(out, " http.path={path} http.status={} latency.us={}", members.status, members.latency_us);
        let quoted = [
            ("deny.code", members.code),
            ("principal.issuer", members.issuer),
            ("principal.subject", members.subject),
            ("principal.client", members.client),
        ];
        for (name, value) in quoted {
            if let Some(value) = value {
                write_field(out, name, "");
                write_json(out, &value);
            }
        }
    }
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [" ", name, "=", value] {
        out.extend_from_slice(part.as_bytes());
    }
}
