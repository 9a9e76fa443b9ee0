//! The lines of the trail. None has room for a token, a header or a query.

use std::{io::Write as _, net::IpAddr};

use portcullis_endpoint::EndedStream;
use portcullis_guard::Decision;
use portcullis_metadata::UnixTime;
use portcullis_session::{EndReason, Owner, Session};

use super::{
    usage::{Counts, Outcome},
    who::Who,
};
use crate::telemetry::text::{push, push_number, push_quoted, push_timestamp};

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

    /// Who used what.
    pub(super) fn tell_who(&self, who: &mut Who) {
        who.set(self.0.resource, self.0.principal, self.tool());
    }

    /// The line; `who` is what [`tell_who`](Self::tell_who) told.
    pub(super) fn write(&self, who: &Who, out: &mut Vec<u8>) {
        let decision = self.0;
        begin(out, decision.time, r#""event":"decision","request.id":""#);
        // Nothing in it is escaped.
        push(out, decision.request_id.as_str());
        push(out, "\",");
        out.extend_from_slice(who.members());
        match (self.tool(), decision.operation) {
            (Some(_), _) => push(out, r#","mcp.method":"tools/call""#),
            (None, Some(operation)) => {
                text(out, r#","mcp.method":"#, operation.name(), MAX_TEXT);
                optional(out, r#","mcp.target":"#, operation.target(), MAX_TEXT);
            }
            (None, None) => {}
        }
        if let Some(operation) = decision.operation.filter(|operation| operation.target_count() > 1) {
            push(out, r#","mcp.further_targets":["#);
            for (position, target) in operation.additional_targets().enumerate() {
                text(out, if position > 0 { "," } else { "" }, target, MAX_TEXT);
            }
            number(out, r#"],"mcp.target_count":"#, operation.target_count() as u64);
        }
        text(out, r#","http.method":"#, decision.method.as_str(), MAX_TEXT);
        text(out, r#","http.path":"#, decision.path, MAX_TEXT);
        push(out, r#","http.status":"#);
        push(out, decision.status.as_str());
        let (decided, code) = match self.outcome() {
            Outcome::Allow => (r#","decision":"allow""#, r#","deny.code":"#),
            Outcome::Deny => (r#","decision":"deny""#, r#","deny.code":"#),
            Outcome::Fail => (r#","decision":"fail""#, r#","fail.code":"#),
        };
        push(out, decided);
        optional(out, code, decision.code, MAX_TEXT);
        optional(out, r#","spared.code":"#, decision.report_only_denial, MAX_TEXT);
        if let Some(peer) = decision.client_address {
            push(out, r#","client.address":"#);
            address(out, peer);
        }
        number(out, r#","latency.us":"#, u64::try_from(decision.latency.as_micros()).unwrap_or(u64::MAX));
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
        let event = match self.ended {
            Some(_) => r#""event":"session.ended","session":""#,
            None => r#""event":"session.opened","session":""#,
        };
        begin(out, self.time, event);
        written(out, format_args!(r#"{}","#, self.session.log_hash()));
        resource(out, self.session.resource().as_str());
        match self.session.owner() {
            Owner::Subject { issuer, subject, client } => {
                principal(out, issuer, Some(subject), client);
            }
            Owner::Client { issuer, client } => principal(out, issuer, None, Some(client)),
            Owner::Anonymous => {}
        }
        optional(out, r#","session.reason":"#, self.ended.map(EndReason::as_str), MAX_TEXT);
        end(out);
    }
}

/// An event stream ends because its authorization has ended.
pub(super) fn stream_ended(out: &mut Vec<u8>, stream: &EndedStream<'_>) {
    begin(out, stream.time, r#""event":"stream.ended","request.id":""#);
    push(out, stream.request_id.as_str());
    push(out, "\",");
    if let Some(session) = stream.session {
        written(out, format_args!(r#""session":"{session}","#));
    }
    resource(out, stream.resource.as_str());
    let token = stream.principal;
    principal(out, token.issuer().as_str(), token.subject(), token.client());
    text(out, r#","stream.code":"#, stream.reason.code(), MAX_TEXT);
    end(out);
}

/// The trail begins.
pub(super) fn started(out: &mut Vec<u8>, time: UnixTime) {
    begin(out, time, r#""event":"audit.started""#);
    text(out, r#","version":"#, env!("CARGO_PKG_VERSION"), MAX_TEXT);
    end(out);
}

/// Records are missing here.
pub(super) fn lost(out: &mut Vec<u8>, time: UnixTime, records: u64) {
    begin(out, time, r#""event":"audit.lost""#);
    number(out, r#","audit.lost":"#, records);
    end(out);
}

/// The trail ends here, on purpose.
pub(super) fn stopped(out: &mut Vec<u8>, time: UnixTime, written: u64, lost: u64) {
    begin(out, time, r#""event":"audit.stopped""#);
    number(out, r#","audit.records":"#, written);
    number(out, r#","audit.lost":"#, lost);
    end(out);
}

/// What one principal used of one resource between two moments; without `who` all that had no row of its own.
pub(super) fn usage(out: &mut Vec<u8>, from: UnixTime, to: UnixTime, who: Option<&[u8]>, counts: Counts) {
    begin(out, to, r#""event":"usage","usage.from":""#);
    push_timestamp(out, from);
    push(out, "\",");
    out.extend_from_slice(who.unwrap_or(br#""usage.other":true"#));
    number(out, r#","usage.requests":"#, counts.requests);
    number(out, r#","usage.denied":"#, counts.denied);
    number(out, r#","usage.failed":"#, counts.failed);
    end(out);
}

/// What was asked for. No comma stands before it.
pub(super) fn resource(out: &mut Vec<u8>, resource: &str) {
    push(out, r#""resource":"#);
    value(out, resource, MAX_NAME);
}

/// Whom a token speaks for.
pub(super) fn principal(out: &mut Vec<u8>, issuer: &str, subject: Option<&str>, client: Option<&str>) {
    text(out, r#","principal.issuer":"#, issuer, MAX_NAME);
    optional(out, r#","principal.subject":"#, subject, MAX_NAME);
    optional(out, r#","principal.client":"#, client, MAX_NAME);
}

/// The tool that is called.
pub(super) fn tool(out: &mut Vec<u8>, tool: &str) {
    text(out, r#","mcp.tool":"#, tool, MAX_TEXT);
}

/// A line up to its event, and what is the same in all lines of that event.
fn begin(out: &mut Vec<u8>, time: UnixTime, event: &'static str) {
    push(out, r#"{"timestamp":""#);
    push_timestamp(out, time);
    push(out, "\",");
    push(out, event);
}

fn end(out: &mut Vec<u8>) {
    push(out, "}\n");
}

/// A member where there is a content for it; its name comes with comma, quotes and colon.
fn optional(out: &mut Vec<u8>, name: &'static str, content: Option<&str>, most: usize) {
    if let Some(content) = content {
        text(out, name, content, most);
    }
}

fn text(out: &mut Vec<u8>, name: &'static str, content: &str, most: usize) {
    push(out, name);
    value(out, content, most);
}

fn number(out: &mut Vec<u8>, name: &'static str, value: u64) {
    push(out, name);
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
