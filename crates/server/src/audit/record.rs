//! The records of the trail and their members. Tokens, headers and queries are not among them.

use std::{borrow::Cow, net::IpAddr};

use portcullis_endpoint::EndedStream;
use portcullis_guard::{Decision, Operation};
use portcullis_metadata::UnixTime;
use portcullis_session::{EndReason, Owner, Session};
use serde::Serialize;

use super::{
    key::{Effect, MAX_TEXT, PrincipalMembers, UsageKey, cut, resource},
    usage::Counts,
};
use crate::telemetry::{json::write_json, timestamp};

/// One record with the members that all records have.
#[derive(Serialize)]
struct Line<'a, T> {
    timestamp: String,
    event: &'static str,
    #[serde(flatten)]
    members: &'a T,
}

fn write_line(out: &mut Vec<u8>, time: UnixTime, event: &'static str, members: &impl Serialize) {
    write_json(out, &Line { timestamp: timestamp(time).to_string(), event, members });
    out.push(b'\n');
}

/// A decision of guard or endpoint.
#[derive(Serialize)]
struct DecisionMembers<'a> {
    #[serde(rename = "request.id")]
    request_id: &'a str,
    #[serde(flatten)]
    key: &'a UsageKey<'a>,
    #[serde(flatten)]
    operation: Option<OperationMembers<'a>>,
    #[serde(rename = "http.method")]
    method: Cow<'a, str>,
    #[serde(rename = "http.path")]
    path: Cow<'a, str>,
    #[serde(rename = "http.status")]
    status: u16,
    decision: Effect,
    #[serde(rename = "deny.code", skip_serializing_if = "Option::is_none")]
    deny_code: Option<&'static str>,
    #[serde(rename = "fail.code", skip_serializing_if = "Option::is_none")]
    fail_code: Option<&'static str>,
    #[serde(rename = "spared.code", skip_serializing_if = "Option::is_none")]
    spared_code: Option<&'static str>,
    #[serde(rename = "client.address", skip_serializing_if = "Option::is_none")]
    client_address: Option<IpAddr>,
    #[serde(rename = "latency.us")]
    latency_us: u64,
}

/// What a message asks for. A tool is a member of the [`UsageKey`] instead of a target.
#[derive(Serialize)]
struct OperationMembers<'a> {
    #[serde(rename = "mcp.method")]
    method: Cow<'a, str>,
    #[serde(rename = "mcp.target", skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    #[serde(rename = "mcp.further_targets", skip_serializing_if = "Option::is_none")]
    further_targets: Option<Vec<Cow<'a, str>>>,
    #[serde(rename = "mcp.target_count", skip_serializing_if = "Option::is_none")]
    target_count: Option<usize>,
}

pub(super) fn decision(out: &mut Vec<u8>, decision: &Decision<'_>, key: &UsageKey<'_>) {
    let effect = Effect::of(decision.code);
    let members = DecisionMembers {
        request_id: decision.request_id.as_str(),
        key,
        operation: decision.operation.map(|operation| OperationMembers::new(operation, key)),
        method: cut(decision.method.as_str(), MAX_TEXT),
        path: cut(decision.path, MAX_TEXT),
        status: decision.status.as_u16(),
        decision: effect,
        deny_code: decision.code.filter(|_| effect == Effect::Deny),
        fail_code: decision.code.filter(|_| effect == Effect::Fail),
        spared_code: decision.report_only_denial,
        client_address: decision.client_address,
        latency_us: u64::try_from(decision.latency.as_micros()).unwrap_or(u64::MAX),
    };
    write_line(out, decision.time, "decision", &members);
}

impl<'a> OperationMembers<'a> {
    fn new(operation: &'a Operation, key: &UsageKey<'_>) -> Self {
        let target_count = Some(operation.target_count()).filter(|count| *count > 1);
        let further = || operation.additional_targets().map(|target| cut(target, MAX_TEXT)).collect();
        Self {
            method: cut(operation.name(), MAX_TEXT),
            target: operation.target().filter(|_| key.tool.is_none()).map(|target| cut(target, MAX_TEXT)),
            further_targets: target_count.map(|_| further()),
            target_count,
        }
    }
}

/// A session that began or ended.
#[derive(Serialize)]
struct SessionMembers<'a> {
    session: String,
    resource: Cow<'a, str>,
    #[serde(flatten)]
    principal: Option<PrincipalMembers<'a>>,
    #[serde(rename = "session.reason", skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

pub(super) fn session_opened(out: &mut Vec<u8>, time: UnixTime, session: &Session) {
    write_line(out, time, "session.opened", &SessionMembers::new(session, None));
}

pub(super) fn session_ended(out: &mut Vec<u8>, time: UnixTime, session: &Session, reason: EndReason) {
    write_line(out, time, "session.ended", &SessionMembers::new(session, Some(reason)));
}

impl<'a> SessionMembers<'a> {
    fn new(session: &'a Session, reason: Option<EndReason>) -> Self {
        let principal = match session.owner() {
            Owner::Subject { issuer, subject, client } => Some(PrincipalMembers::new(issuer, Some(subject), client)),
            Owner::Client { issuer, client } => Some(PrincipalMembers::new(issuer, None, Some(client))),
            Owner::Anonymous => None,
        };
        Self {
            session: session.log_hash().to_string(),
            resource: resource(session.resource().as_str()),
            principal,
            reason: reason.map(EndReason::as_str),
        }
    }
}

/// An event stream whose authorization has ended.
#[derive(Serialize)]
struct StreamMembers<'a> {
    #[serde(rename = "request.id")]
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    resource: Cow<'a, str>,
    #[serde(flatten)]
    principal: PrincipalMembers<'a>,
    #[serde(rename = "stream.code")]
    code: &'static str,
}

pub(super) fn stream_ended(out: &mut Vec<u8>, stream: &EndedStream<'_>) {
    let members = StreamMembers {
        request_id: stream.request_id.as_str(),
        session: stream.session.map(|session| session.to_string()),
        resource: resource(stream.resource.as_str()),
        principal: PrincipalMembers::of(stream.principal),
        code: stream.reason.code(),
    };
    write_line(out, stream.time, "stream.ended", &members);
}

/// The trail begins.
pub(super) fn started(out: &mut Vec<u8>, time: UnixTime) {
    #[derive(Serialize)]
    struct Members {
        version: &'static str,
    }
    write_line(out, time, "audit.started", &Members { version: env!("CARGO_PKG_VERSION") });
}

/// Records are missing here.
pub(super) fn lost(out: &mut Vec<u8>, time: UnixTime, records: u64) {
    #[derive(Serialize)]
    struct Members {
        #[serde(rename = "audit.lost")]
        lost: u64,
    }
    write_line(out, time, "audit.lost", &Members { lost: records });
}

/// The trail ends here, on purpose.
pub(super) fn stopped(out: &mut Vec<u8>, time: UnixTime, records: u64, lost: u64) {
    #[derive(Serialize)]
    struct Members {
        #[serde(rename = "audit.records")]
        records: u64,
        #[serde(rename = "audit.lost")]
        lost: u64,
    }
    write_line(out, time, "audit.stopped", &Members { records, lost });
}

/// What was used between two moments; without a key everything that had no row of its own.
pub(super) fn usage(out: &mut Vec<u8>, from: UnixTime, to: UnixTime, key: Option<&UsageKey<'_>>, counts: Counts) {
    #[derive(Serialize)]
    struct Members<'a> {
        #[serde(rename = "usage.from")]
        from: String,
        #[serde(flatten)]
        key: Option<&'a UsageKey<'a>>,
        #[serde(rename = "usage.other", skip_serializing_if = "Option::is_none")]
        other: Option<bool>,
        #[serde(flatten)]
        counts: Counts,
    }
    let other = key.is_none().then_some(true);
    write_line(out, to, "usage", &Members { from: timestamp(from).to_string(), key, other, counts });
}
