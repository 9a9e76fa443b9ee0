use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_guard::{Decision, Operation, RequestId, Timing, trace::TraceContext};
use portcullis_metadata::{ResourceUri, UnixTime};

use crate::{Effect, MAX_TEXT, truncated};

/// What the spans of one request consist of. It contains neither the query nor headers, nor the
/// token and its principal.
pub(super) struct RequestSpan {
    pub(super) context: TraceContext,
    pub(super) request_id: RequestId,
    pub(super) time: UnixTime,
    pub(super) latency: Duration,
    pub(super) verification: Option<Timing>,
    pub(super) upstream: Option<Timing>,
    pub(super) method: SpanMethod,
    pub(super) path: String,
    pub(super) status: StatusCode,
    pub(super) resource: ResourceUri,
    pub(super) effect: Effect,
    pub(super) code: Option<&'static str>,
    /// The JSON-RPC method.
    pub(super) operation: Option<String>,
    pub(super) tool: Option<String>,
}

/// The method of a request, as the semantic conventions of OpenTelemetry for HTTP spans have it.
/// Clients can invent methods, and receivers group spans by their names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SpanMethod {
    Known(Method),
    /// Another method than those of RFC 9110 and PATCH (RFC 5789), truncated.
    Other(String),
}

impl SpanMethod {
    fn new(method: &Method) -> Self {
        const KNOWN: [Method; 9] = [
            Method::CONNECT,
            Method::DELETE,
            Method::GET,
            Method::HEAD,
            Method::OPTIONS,
            Method::PATCH,
            Method::POST,
            Method::PUT,
            Method::TRACE,
        ];
        if KNOWN.contains(method) {
            Self::Known(method.clone())
        } else {
            Self::Other(truncated(method.as_str(), MAX_TEXT).into_owned())
        }
    }

    /// Returns the method's part of the name of a span.
    pub(super) fn span_name(&self) -> &str {
        match self {
            Self::Known(method) => method.as_str(),
            Self::Other(_) => "HTTP",
        }
    }

    /// Returns the value of `http.request.method`.
    pub(super) fn attribute(&self) -> &str {
        match self {
            Self::Known(method) => method.as_str(),
            Self::Other(_) => "_OTHER",
        }
    }

    /// Returns the value of `http.request.method_original`.
    pub(super) fn original(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Other(method) => Some(method),
        }
    }
}

impl RequestSpan {
    pub(super) fn new(context: TraceContext, decision: &Decision<'_>) -> Self {
        let bounded = |text: &str| truncated(text, MAX_TEXT).into_owned();
        Self {
            context,
            request_id: decision.request_id.clone(),
            time: decision.time,
            latency: decision.latency,
            verification: decision.verification,
            upstream: decision.upstream,
            method: SpanMethod::new(decision.method),
            path: bounded(decision.path),
            status: decision.status,
            resource: decision.resource.clone(),
            effect: Effect::of(decision.code),
            code: decision.code,
            operation: decision
                .operation
                .map(|operation| bounded(operation.name())),
            tool: decision.operation.and_then(Operation::tool).map(bounded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J7: a method that a client invents is not part of the name of a span, and is truncated.
    #[test]
    fn only_known_methods_are_in_names() {
        let known = SpanMethod::new(&Method::POST);
        assert_eq!(
            (known.span_name(), known.attribute(), known.original()),
            ("POST", "POST", None)
        );
        for method in ["post", "INVENTED", &"X".repeat(10_000)] {
            let other = SpanMethod::new(&Method::from_bytes(method.as_bytes()).unwrap());
            assert_eq!((other.span_name(), other.attribute()), ("HTTP", "_OTHER"));
            let original = other.original().unwrap();
            assert!(original.len() <= MAX_TEXT + '…'.len_utf8(), "{original}");
            assert!(
                method.starts_with(original.trim_end_matches('…')),
                "{original}"
            );
        }
    }
}
