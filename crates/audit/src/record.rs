//! The records of the trail and their members. They contain no tokens, headers or queries.

use std::borrow::Cow;

use portcullis_endpoint::EndedStream;
use portcullis_guard::{Decision, Operation};
use portcullis_metadata::UnixTime;
use portcullis_session::{EndReason, Session};
use portcullis_telemetry::{
    Effect, MAX_TEXT, SummedRejections, json::JsonObject, microseconds, timestamp, truncated,
};

use crate::{
    chain::Head,
    key::{PrincipalMembers, UsageKey, resource},
    usage::Counts,
};

/// Writes one record: the members that all records have, and those that `add_members` adds.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    time: UnixTime,
    event: &'static str,
    add_members: impl FnOnce(&mut JsonObject<'_>),
) {
    JsonObject::write(out, |record| {
        record.plain_text("timestamp", timestamp(time).as_str());
        record.plain_text("event", event);
        add_members(record);
    });
    out.push(b'\n');
}

/// Writes a decision of the guard or the endpoint.
pub(super) fn decision(out: &mut Vec<u8>, decision: &Decision<'_>, key: &UsageKey<'_>) {
    write_record(out, decision.time, "decision", |record| {
        record.plain_text("request.id", decision.request_id.as_str());
        key.add_to(record);
        if let Some(operation) = decision.operation {
            add_operation(record, operation, key);
        }
        record.text(
            "http.method",
            &truncated(decision.method.as_str(), MAX_TEXT),
        );
        record.text("http.path", &truncated(decision.path, MAX_TEXT));
        record.number("http.status", decision.status.as_u16());
        let effect = Effect::of(decision.code);
        record.plain_text("decision", effect.as_str());
        match effect {
            Effect::Allow => {}
            Effect::Deny => record.optional_text("deny.code", decision.code),
            Effect::Fail => record.optional_text("fail.code", decision.code),
        }
        record.optional_text("spared.code", decision.report_only_denial);
        if let Some(address) = decision.client_address {
            record.address("client.address", address);
        }
        record.number("latency.us", microseconds(decision.latency));
    });
}

/// Writes the number of equal rejections that have no records of their own.
pub(super) fn rejections(out: &mut Vec<u8>, time: UnixTime, summed: &SummedRejections) {
    write_record(out, time, "rejections", |record| {
        record.number("count", summed.count);
        record.plain_text("count.from", timestamp(summed.first).as_str());
        record.plain_text("count.to", timestamp(summed.last).as_str());
        record.plain_text("deny.code", summed.code);
        record.display("client.address", summed.source);
    });
}

/// Adds the operation of a message. A tool is a member of the [`UsageKey`] instead of a target.
fn add_operation(record: &mut JsonObject<'_>, operation: &Operation, key: &UsageKey<'_>) {
    record.text("mcp.method", &truncated(operation.name(), MAX_TEXT));
    if let Some(target) = operation.target().filter(|_| key.tool.is_none()) {
        record.text("mcp.target", &truncated(target, MAX_TEXT));
    }
    let target_count = operation.target_count();
    if target_count > 1 {
        let further: Vec<Cow<'_, str>> = operation
            .additional_targets()
            .map(|target| truncated(target, MAX_TEXT))
            .collect();
        record.value("mcp.further_targets", &further);
        record.number("mcp.target_count", target_count);
    }
}

pub(super) fn session_opened(out: &mut Vec<u8>, time: UnixTime, session: &Session) {
    write_record(out, time, "session.opened", |record| {
        add_session(record, session)
    });
}

pub(super) fn session_ended(
    out: &mut Vec<u8>,
    time: UnixTime,
    session: &Session,
    reason: EndReason,
) {
    write_record(out, time, "session.ended", |record| {
        add_session(record, session);
        record.plain_text("session.reason", reason.as_str());
    });
}

fn add_session(record: &mut JsonObject<'_>, session: &Session) {
    record.display("session", session.log_hash());
    record.text("resource", &resource(session.resource().as_str()));
    let owner = session.owner();
    if let Some(issuer) = owner.issuer() {
        PrincipalMembers::new(issuer, owner.subject(), owner.client()).add_to(record);
    }
}

/// Writes the number of ends that are not known outside the process.
pub(super) fn ends_not_recorded(out: &mut Vec<u8>, time: UnixTime, ends: usize) {
    write_record(out, time, "session.end_not_recorded", |record| {
        record.number("ends.unrecorded", ends)
    });
}

/// Writes the end of an event stream that the endpoint ends.
pub(super) fn stream_ended(out: &mut Vec<u8>, stream: &EndedStream<'_>) {
    write_record(out, stream.time, "stream.ended", |record| {
        record.plain_text("request.id", stream.request_id.as_str());
        if let Some(session) = stream.session {
            record.display("session", session);
        }
        record.text("resource", &resource(stream.resource.as_str()));
        if let Some(principal) = stream.principal {
            PrincipalMembers::of(principal).add_to(record);
        }
        record.plain_text("stream.code", stream.reason.code());
    });
}

/// Writes the start of the trail by a program of this version, and whether it begins a chain
/// because the former one could not be continued.
pub(super) fn started(out: &mut Vec<u8>, time: UnixTime, version: &str, begins_new_chain: bool) {
    write_record(out, time, "audit.started", |record| {
        record.text("version", version);
        if begins_new_chain {
            record.value("audit.new_chain", &true);
        }
    });
}

/// Writes that a file continues the chain of another one.
pub(super) fn continued(out: &mut Vec<u8>, time: UnixTime, previous: Head) {
    write_record(out, time, "audit.continued", |record| {
        record.display("audit.previous", previous)
    });
}

/// Writes that the line before this record is incomplete, and its length in bytes.
pub(super) fn torn(out: &mut Vec<u8>, time: UnixTime, bytes: u64) {
    write_record(out, time, "audit.torn", |record| {
        record.number("audit.bytes", bytes)
    });
}

/// Writes the number of records that were lost at this position.
pub(super) fn lost(out: &mut Vec<u8>, time: UnixTime, records: u64) {
    write_record(out, time, "audit.lost", |record| {
        record.number("audit.lost", records)
    });
}

/// Writes the regular end of the trail.
pub(super) fn stopped(out: &mut Vec<u8>, time: UnixTime, records: u64, lost: u64) {
    write_record(out, time, "audit.stopped", |record| {
        record.number("audit.records", records);
        record.number("audit.lost", lost);
    });
}

/// Writes the number of requests between two times. Without a key, they are those that have no row
/// of their own.
pub(super) fn usage(
    out: &mut Vec<u8>,
    from: UnixTime,
    to: UnixTime,
    key: Option<&UsageKey<'_>>,
    counts: Counts,
) {
    write_record(out, to, "usage", |record| {
        record.plain_text("usage.from", timestamp(from).as_str());
        match key {
            Some(key) => key.add_to(record),
            None => record.value("usage.other", &true),
        }
        record.number("usage.requests", counts.requests);
        record.number("usage.denied", counts.denied);
        record.number("usage.failed", counts.failed);
    });
}
