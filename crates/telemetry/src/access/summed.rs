//! The line about equal rejections that have no lines of their own.

use crate::{LogFormat, json::JsonObject, rejections::SummedRejections, timestamp};

use super::line::{write_field, write_quoted_field};

const MESSAGE: &str = "equal rejections";

/// Writes the line about equal rejections, in this format.
pub(super) fn write(summed: &SummedRejections, format: LogFormat, out: &mut Vec<u8>) {
    match format {
        LogFormat::Human => write_human(summed, out),
        LogFormat::Json => JsonObject::write(out, |object| add_members(summed, object)),
    }
    out.push(b'\n');
}

fn add_members(summed: &SummedRejections, object: &mut JsonObject<'_>) {
    object.plain_text("timestamp", timestamp(summed.last).as_str());
    object.plain_text("level", "INFO");
    object.plain_text("message", MESSAGE);
    object.number("count", summed.count);
    object.plain_text("count.from", timestamp(summed.first).as_str());
    object.display("client.address", summed.source);
    object.plain_text("deny.code", summed.code);
}

fn write_human(summed: &SummedRejections, out: &mut Vec<u8>) {
    out.extend_from_slice(timestamp(summed.last).as_str().as_bytes());
    out.extend_from_slice(b"  INFO ");
    out.extend_from_slice(MESSAGE.as_bytes());
    write_field(out, "count", itoa::Buffer::new().format(summed.count));
    write_field(out, "count.from", timestamp(summed.first).as_str());
    write_field(out, "client.address", &summed.source.to_string());
    write_quoted_field(out, "deny.code", summed.code);
}
