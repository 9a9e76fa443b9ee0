//! An access line and its two formats.

use std::{borrow::Cow, io::Write as _, net::IpAddr, time::Duration};

use http::{Method, StatusCode};
use portcullis_guard::Operation;
use portcullis_metadata::{EscapedText, ResourceUri, UnixTime, syntax::hexadecimal};
use portcullis_verifier::Principal;

use crate::{
    LogFormat, MAX_TEXT,
    json::{JsonObject, WrittenMembers, write_string},
    microseconds,
    text::write_address,
    timestamp, truncated,
};

/// The content of one line. It has no headers, queries or tokens. The line has at most [`MAX_TEXT`]
/// bytes of each of method, path and operation, so that long requests do not displace the lines of
/// others.
pub struct Line<'a> {
    /// The identifier of the request.
    pub request_id: &'a str,
    /// The arrival of the request.
    pub time: UnixTime,
    /// The method.
    pub method: &'a Method,
    /// The path, without the query.
    pub path: &'a str,
    /// The status of the response.
    pub status: StatusCode,
    /// The reason code of a rejection.
    pub code: Option<&'static str>,
    /// The principal of the token, if it was verified.
    pub principal: Option<&'a Principal>,
    /// The time from the arrival of the request to the head of its response.
    pub latency: Duration,
    /// What is known of requests that pass a guard.
    pub details: Details<'a>,
}

/// The part of a line about a request to a resource.
#[derive(Clone, Copy, Default)]
pub struct Details<'a> {
    /// The resource.
    pub resource: Option<&'a ResourceUri>,
    /// What the message asks for.
    pub operation: Option<&'a Operation>,
    /// The address of the client.
    pub client_address: Option<IpAddr>,
    /// The time of the upstream until the head of its response.
    pub upstream: Option<Duration>,
    /// The identifier of the trace, if its spans are recorded.
    pub trace_id: Option<[u8; 16]>,
}

impl<'a> Line<'a> {
    pub(super) fn write(&self, format: LogFormat, out: &mut Vec<u8>) {
        match format {
            LogFormat::Human => self.write_human(out),
            LogFormat::Json => JsonObject::write(out, |object| self.add_members(object)),
        }
        out.push(b'\n');
    }

    fn add_members(&self, object: &mut JsonObject<'_>) {
        object.plain_text("timestamp", timestamp(self.time).as_str());
        object.plain_text("level", "INFO");
        object.plain_text("message", "request");
        object.plain_text("request.id", self.request_id);
        object.text("http.method", &self.bounded_method());
        object.text("http.path", &self.bounded_path());
        object.number("http.status", self.status.as_u16());
        object.number("latency.us", microseconds(self.latency));
        if let Some(upstream) = self.details.upstream {
            object.number("upstream.us", microseconds(upstream));
        }
        if let Some(address) = self.details.client_address {
            object.address("client.address", address);
        }
        if let Some(trace_id) = self.details.trace_id {
            object.plain_text("trace.id", &hexadecimal(&trace_id));
        }
        for (name, value) in self.optional_members() {
            object.optional_text(name, value.as_deref());
        }
        if let Some(principal) = self.principal {
            match principal.attach(JsonMembers::of) {
                Some(JsonMembers(members)) => object.members(members),
                None => object.members(&JsonMembers::of(principal).0),
            }
        }
    }

    fn write_human(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(timestamp(self.time).as_str().as_bytes());
        out.extend_from_slice(b"  INFO request");
        write_field(out, "request.id", self.request_id);
        write_field(out, "http.method", &self.bounded_method());
        // Writing to a vector does not fail.
        let _ = write!(out, " http.path={}", EscapedText(&self.bounded_path()));
        write_field(out, "http.status", self.status.as_str());
        write_field(
            out,
            "latency.us",
            itoa::Buffer::new().format(microseconds(self.latency)),
        );
        if let Some(upstream) = self.details.upstream {
            write_field(
                out,
                "upstream.us",
                itoa::Buffer::new().format(microseconds(upstream)),
            );
        }
        if let Some(address) = self.details.client_address {
            write_field(out, "client.address", "");
            write_address(out, address);
        }
        if let Some(trace_id) = self.details.trace_id {
            write_field(out, "trace.id", &hexadecimal(&trace_id));
        }
        for (name, value) in self.optional_members() {
            if let Some(value) = value {
                write_quoted_field(out, name, &value);
            }
        }
        if let Some(principal) = self.principal {
            match principal.attach(HumanFields::of) {
                Some(HumanFields(fields)) => out.extend_from_slice(fields),
                None => out.extend_from_slice(&HumanFields::of(principal).0),
            }
        }
    }

    fn bounded_method(&self) -> Cow<'a, str> {
        truncated(self.method.as_str(), MAX_TEXT)
    }

    fn bounded_path(&self) -> Cow<'a, str> {
        truncated(self.path, MAX_TEXT)
    }

    fn optional_members(&self) -> [(&'static str, Option<Cow<'_, str>>); 5] {
        let operation = self.details.operation;
        let tool = operation.and_then(Operation::tool);
        let target = operation
            .and_then(Operation::target)
            .filter(|_| tool.is_none());
        let bounded = |text: Option<&'a str>| text.map(|text| truncated(text, MAX_TEXT));
        let whole = |text: Option<&'a str>| text.map(Cow::Borrowed);
        [
            (
                "resource",
                whole(self.details.resource.map(ResourceUri::as_str)),
            ),
            ("mcp.method", bounded(operation.map(Operation::name))),
            ("mcp.tool", bounded(tool)),
            ("mcp.target", bounded(target)),
            ("deny.code", whole(self.code)),
        ]
    }
}

pub(super) fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [" ", name, "=", value] {
        out.extend_from_slice(part.as_bytes());
    }
}

pub(super) fn write_quoted_field(out: &mut Vec<u8>, name: &str, value: &str) {
    write_field(out, name, "");
    write_string(out, value);
}

/// What all JSON lines about a principal say of it. It is attached to the principal.
struct JsonMembers(WrittenMembers);

impl JsonMembers {
    fn of(principal: &Principal) -> Self {
        let members = principal_members(principal);
        Self(WrittenMembers::new(|object| {
            members.for_each(|(name, value)| object.text(name, value))
        }))
    }
}

/// What all lines for people say of a principal. It is attached to the principal.
struct HumanFields(Box<[u8]>);

impl HumanFields {
    fn of(principal: &Principal) -> Self {
        let mut out = Vec::new();
        principal_members(principal)
            .for_each(|(name, value)| write_quoted_field(&mut out, name, value));
        Self(out.into())
    }
}

fn principal_members(principal: &Principal) -> impl Iterator<Item = (&'static str, &str)> {
    let members = [
        ("principal.issuer", Some(principal.issuer().as_str())),
        ("principal.subject", principal.subject()),
        ("principal.client", principal.client()),
    ];
    members
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
}
