//! The lines of the trail. None has room for a token, a header or a query.

use std::{io::Write as _, net::IpAddr};

use portcullis_guard::Decision;
use portcullis_metadata::UnixTime;
use portcullis_session::{EndReason, Owner, Session};

use super::usage::{Counts, Outcome};
use crate::telemetry::{
    text::{push, push_number, push_quoted, push_timestamp},
    timestamp,
};

/// Bytes of a text from outside; what is longer is cut.
const MAX_TEXT: usize = 256;
/// Bytes of what names a principal: cut texts of two principals could be the same.
const MAX_NAME: usize = 1024;

/// Codes that begin so are failures of the server or whoever stands on the other side, no refusals.
const FAILURES: [&str; 4] = ["upstream.", "inner.", "client.", "server."];

/// One decision of guard or endpoint.
pub(super) struct DecisionRecord<'a>(&'a Decision<'a>);

impl<'a> DecisionRecord<'a> {
    pub(super) fn new(decision: &'a Decision<'a>) -> Self {
        Self(decision)
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.0.code {
            None => Outcome::Allow,
            Some(code) if FAILURES.iter().any(|failure| code.starts_with(failure)) => Outcome::Fail,
            Some(_) => Outcome::Deny,
        }
    }

    /// The members that say who used what.
    pub(super) fn write_who(&self, out: &mut Vec<u8>) {
        let principal = self.0.principal;
        resource(out, self.0.resource.as_str());
        principal_members(
            out,
            principal.map(|principal| principal.issuer().as_str()),
            principal.and_then(|principal| principal.subject()),
            principal.and_then(|principal| principal.client()),
        );
        optional(out, "mcp.tool", self.tool(), MAX_TEXT);
    }

    /// The line; `who` is what [`write_who`](Self::write_who) wrote.
    pub(super) fn write(&self, who: &[u8], out: &mut Vec<u8>) {
        let decision = self.0;
        begin(out, decision.time, "decision");
        text(out, "request.id", decision.request_id.as_str(), MAX_TEXT);
        out.push(b',');
        out.extend_from_slice(who);
        if let Some(operation) = decision.operation {
            text(out, "mcp.method", operation.name(), MAX_TEXT);
            let target = operation.target().filter(|_| self.tool().is_none());
            optional(out, "mcp.target", target, MAX_TEXT);
        }
        text(out, "http.method", decision.method.as_str(), MAX_TEXT);
        text(out, "http.path", decision.path, MAX_TEXT);
        number(out, "http.status", decision.status.as_u16().into());
        let (allowed, code) = match self.outcome() {
            Outcome::Allow => ("allow", "deny.code"),
            Outcome::Deny => ("deny", "deny.code"),
            Outcome::Fail => ("fail", "fail.code"),
        };
        text(out, "decision", allowed, MAX_TEXT);
        optional(out, code, decision.code, MAX_TEXT);
        optional(out, "spared.code", decision.spared, MAX_TEXT);
        if let Some(peer) = decision.peer {
            member(out, "client.address");
            address(out, peer);
        }
        number(out, "latency.us", u64::try_from(decision.latency.as_micros()).unwrap_or(u64::MAX));
        end(out);
    }

    /// The tool that is called.
    fn tool(&self) -> Option<&str> {
        self.0.operation.filter(|operation| operation.name() == "tools/call")?.target()
    }
}

/// A session that began or ended.
pub(super) struct SessionRecord<'a> {
    pub(super) time: UnixTime,
    pub(super) session: &'a Session,
    pub(super) ended: Option<EndReason>,
}

impl SessionRecord<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let event = if self.ended.is_some() { "session.ended" } else { "session.opened" };
        begin(out, self.time, event);
        written(out, format_args!(r#","session":"{}","#, self.session.log_hash()));
        resource(out, self.session.resource().as_str());
        match self.session.owned_by() {
            Owner::Subject { issuer, subject, client } => {
                principal_members(out, Some(issuer), Some(subject), client);
            }
            Owner::Client { issuer, client } => principal_members(out, Some(issuer), None, Some(client)),
            Owner::Nobody => {}
        }
        optional(out, "session.reason", self.ended.map(EndReason::as_str), MAX_TEXT);
        end(out);
    }
}

/// The trail begins.
pub(super) fn started(out: &mut Vec<u8>, time: UnixTime) {
    begin(out, time, "audit.started");
    text(out, "version", env!("CARGO_PKG_VERSION"), MAX_TEXT);
    end(out);
}

/// Records are missing here.
pub(super) fn lost(out: &mut Vec<u8>, time: UnixTime, records: u64) {
    begin(out, time, "audit.lost");
    number(out, "audit.lost", records);
    end(out);
}

/// The trail ends here, on purpose.
pub(super) fn stopped(out: &mut Vec<u8>, time: UnixTime, written: u64, lost: u64) {
    begin(out, time, "audit.stopped");
    number(out, "audit.records", written);
    number(out, "audit.lost", lost);
    end(out);
}

/// What one principal used of one resource between two moments; without `who` all that had no row of its own.
pub(super) fn usage(out: &mut Vec<u8>, from: UnixTime, to: UnixTime, who: Option<&[u8]>, counts: Counts) {
    begin(out, to, "usage");
    written(out, format_args!(r#","usage.from":"{}","#, timestamp(from)));
    out.extend_from_slice(who.unwrap_or(br#""usage.other":true"#));
    number(out, "usage.requests", counts.requests);
    number(out, "usage.denied", counts.denied);
    number(out, "usage.failed", counts.failed);
    end(out);
}

fn begin(out: &mut Vec<u8>, time: UnixTime, event: &'static str) {
    push(out, r#"{"timestamp":""#);
    push_timestamp(out, time);
    push(out, r#"","event":""#);
    push(out, event);
    push(out, "\"");
}

fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}

fn resource(out: &mut Vec<u8>, resource: &str) {
    out.extend_from_slice(br#""resource":"#);
    value(out, resource, MAX_NAME);
}

fn principal_members(out: &mut Vec<u8>, issuer: Option<&str>, subject: Option<&str>, client: Option<&str>) {
    optional(out, "principal.issuer", issuer, MAX_NAME);
    optional(out, "principal.subject", subject, MAX_NAME);
    optional(out, "principal.client", client, MAX_NAME);
}

fn optional(out: &mut Vec<u8>, name: &'static str, content: Option<&str>, most: usize) {
    if let Some(content) = content {
        text(out, name, content, most);
    }
}

fn text(out: &mut Vec<u8>, name: &'static str, content: &str, most: usize) {
    member(out, name);
    value(out, content, most);
}

fn number(out: &mut Vec<u8>, name: &'static str, value: u64) {
    member(out, name);
    push_number(out, value);
}

/// An address as a JSON string: of digits, letters, dots and colons, nothing of which is escaped.
fn address(out: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(v4) = address else { return written(out, format_args!(r#""{address}""#)) };
    for (position, octet) in v4.octets().into_iter().enumerate() {
        push(out, if position == 0 { "\"" } else { "." });
        push_number(out, octet.into());
    }
    push(out, "\"");
}

fn member(out: &mut Vec<u8>, name: &'static str) {
    push(out, ",\"");
    push(out, name);
    push(out, "\":");
}

/// A JSON string. What is longer than `most` bytes is cut, and ends in an ellipsis.
fn value(out: &mut Vec<u8>, content: &str, most: usize) {
    let kept = &content[..content.floor_char_boundary(most)];
    push_quoted(out, kept);
    if kept.len() < content.len() {
        out.pop();
        out.extend_from_slice("…\"".as_bytes());
    }
}

fn written(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: addresses stand in the trail as they are shown everywhere else.
    #[test]
    fn addresses_are_those_that_are_shown() {
        for shown in ["0.0.0.0", "192.0.2.17", "255.255.255.255", "::1", "2001:db8::8:800:200c:417a"] {
            let mut out = Vec::new();
            address(&mut out, shown.parse().unwrap());
            assert_eq!(out, format!("\"{shown}\"").as_bytes());
        }
    }
}
