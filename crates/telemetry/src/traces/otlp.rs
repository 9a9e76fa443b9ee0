//! The JSON form of OTLP: `ExportTraceServiceRequest` and its response (OpenTelemetry Protocol 1.x,
//! `http/json`).

use std::time::Duration;

use portcullis_guard::Timing;
use portcullis_metadata::syntax::hexadecimal;
use serde_json::{Value, json};

use super::span::RequestSpan;

/// The values of `SpanKind`.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// The value of `StatusCode` for a failure.
const ERROR: u8 = 2;

/// What sends the spans.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) version: &'static str,
}

/// Returns the body of a request with these spans.
pub(super) fn request(Service { name, version }: &Service, spans: &[RequestSpan]) -> Vec<u8> {
    let resource = attributes(&[
        ("service.name", Some(name)),
        ("service.version", Some(version)),
    ]);
    let spans: Vec<Value> = spans.iter().flat_map(spans_of).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "portcullis", "version": version }, "spans": spans }],
    }] })
    .to_string()
    .into_bytes()
}

/// Returns the number of spans that the receiver did not accept, and its reason.
pub(super) fn rejected(response: &[u8]) -> Option<(u64, String)> {
    let response: Value = serde_json::from_slice(response).ok()?;
    let partial = response.get("partialSuccess")?;
    // 64-bit integers are strings in the JSON form of Protobuf; numbers are accepted, too.
    let count = partial.get("rejectedSpans")?;
    let count = count
        .as_u64()
        .or_else(|| count.as_str()?.parse().ok())
        .filter(|count| *count > 0)?;
    let reason = partial
        .get("errorMessage")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some((count, reason.to_owned()))
}

/// The span of the request, and those of its parts.
fn spans_of(span: &RequestSpan) -> Vec<Value> {
    let context = &span.context;
    let is_failure = span.status.is_server_error();
    let error_type = span.code.filter(|_| is_failure);
    let mut all = attributes(&[
        ("http.request.method", Some(span.method.attribute())),
        ("http.request.method_original", span.method.original()),
        ("url.path", Some(&span.path)),
        ("portcullis.resource", Some(span.resource.as_str())),
        ("portcullis.request.id", Some(span.request_id.as_str())),
        ("portcullis.decision", Some(span.effect.as_str())),
        ("portcullis.reason", span.code),
        ("mcp.method.name", span.operation.as_deref()),
        ("gen_ai.tool.name", span.tool.as_deref()),
        ("error.type", error_type),
    ]);
    let status = json!({ "intValue": span.status.as_u16().to_string() });
    all.push(json!({ "key": "http.response.status_code", "value": status }));
    let whole = Timing::new(Duration::ZERO, span.latency);
    let name = format!("{} {}", span.method.span_name(), span.path);
    let mut request = json_span(span, &name, SERVER, context.span_id(), whole);
    request["attributes"] = all.into();
    if let Some(parent) = context.parent_id() {
        request["parentSpanId"] = hexadecimal(&parent).into();
    }
    if is_failure {
        request["status"] = json!({ "code": ERROR });
    }
    let mut spans = vec![request];
    let mut add_child = |name, kind, id, timing: Option<Timing>, failure: Option<&str>| {
        let Some(timing) = timing else { return };
        let mut child = json_span(span, name, kind, id, timing);
        child["parentSpanId"] = hexadecimal(&context.span_id()).into();
        if let Some(code) = failure {
            child["attributes"] = attributes(&[("error.type", Some(code))]).into();
            child["status"] = json!({ "code": ERROR });
        }
        spans.push(child);
    };
    let failure_of_upstream = span.code.filter(|code| code.starts_with("upstream."));
    add_child(
        "verify token",
        INTERNAL,
        context.verification_span_id(),
        span.verification,
        None,
    );
    add_child(
        "upstream",
        CLIENT,
        context.upstream_span_id(),
        span.upstream,
        failure_of_upstream,
    );
    spans
}

fn json_span(span: &RequestSpan, name: &str, kind: u8, id: [u8; 8], timing: Timing) -> Value {
    let arrival = Duration::from_millis(span.time.as_millis());
    let nanoseconds = |time: Duration| time.as_nanos().to_string();
    json!({
        "traceId": hexadecimal(&span.context.trace_id()),
        "spanId": hexadecimal(&id),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(arrival + timing.start),
        "endTimeUnixNano": nanoseconds(arrival + timing.start + timing.duration),
    })
}

/// Attributes with strings. Missing ones are left out.
fn attributes(members: &[(&str, Option<&str>)]) -> Vec<Value> {
    let present = members
        .iter()
        .filter_map(|(key, value)| Some((key, (*value)?)));
    present
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J7: the number of rejected spans is read in both forms of 64-bit integers.
    #[test]
    fn rejected_spans_are_read() {
        let read = |response: &str| rejected(response.as_bytes());
        assert_eq!(
            read(r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#),
            Some((3, "no".to_owned()))
        );
        assert_eq!(
            read(r#"{"partialSuccess":{"rejectedSpans":2}}"#),
            Some((2, String::new()))
        );
        for response in [
            "",
            "{}",
            "[]",
            r#"{"partialSuccess":{}}"#,
            r#"{"partialSuccess":{"rejectedSpans":"0"}}"#,
        ] {
            assert_eq!(read(response), None, "{response}");
        }
    }
}
