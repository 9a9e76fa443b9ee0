//! The identifiers of a request's spans, and whether they are recorded (W3C Trace Context).

mod traceparent;

use http::{HeaderMap, HeaderValue};

use crate::request_id::RequestId;
pub use traceparent::TraceParent;

/// Which requests are traced. The guard only chooses identifiers: the
/// [`DecisionSink`](crate::DecisionSink) sends spans.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TraceSettings {
    /// The part of the requests that is sampled, from 0 (none) to 1 (all). A smaller value or NaN
    /// counts as 0, a greater one as 1.
    pub ratio: f64,
    /// What a client's `traceparent` is used for. Default: nothing.
    pub parent: ClientTrace,
}

/// What the `traceparent` of a client is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientTrace {
    /// Nothing: every request begins a trace.
    #[default]
    Restart,
    /// The request continues the client's trace. Its sampled flag is ignored, so that clients
    /// cannot cause load.
    Join,
    /// The request continues the client's trace, and is sampled if the client's span is. Use it
    /// only if all clients are trusted.
    Trust,
}

impl TraceSettings {
    /// Returns the default settings with this ratio.
    pub fn new(ratio: f64) -> Self {
        Self {
            ratio,
            parent: ClientTrace::default(),
        }
    }

    /// Begins or continues a trace. The identifiers are derived from the request id, which is
    /// random.
    pub(crate) fn context(&self, request_id: &RequestId, headers: &HeaderMap) -> TraceContext {
        let id = request_id.bytes();
        let client = match self.parent {
            ClientTrace::Restart => None,
            ClientTrace::Join | ClientTrace::Trust => TraceParent::of(headers),
        };
        let is_sampled = match client {
            Some(client) if self.parent == ClientTrace::Trust => client.is_sampled,
            _ => self.samples(id),
        };
        let [.., a, b, c, d, e, f, g, h] = id;
        TraceContext {
            trace_id: client.map_or(id, |client| client.trace_id),
            parent_id: client.map(|client| client.parent_id),
            span_id: [a, b, c, d, e, f, g, h],
            is_sampled,
        }
    }

    /// Decides by the last 7 bytes of the request id, all of which are random.
    fn samples(&self, id: [u8; 16]) -> bool {
        let random = u128::from_be_bytes(id) as u64 & RANDOM_BITS;
        (random as f64) < self.ratio * (RANDOM_BITS as f64 + 1.0)
    }
}

/// The bits of a request id that decide on sampling: 56, as in W3C Trace Context Level 2.
const RANDOM_BITS: u64 = (1 << 56) - 1;

/// The identifiers of a request's spans, and whether they are recorded.
/// [`Caller::trace`](crate::Caller::trace) and [`Decision::trace`](crate::Decision::trace) return
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    /// The client's span, if the request continues its trace.
    parent_id: Option<[u8; 8]>,
    span_id: [u8; 8],
    is_sampled: bool,
}

impl TraceContext {
    /// Returns the identifier of the trace.
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// Returns the identifier of the client's span, if the request continues its trace.
    pub fn parent_id(&self) -> Option<[u8; 8]> {
        self.parent_id
    }

    /// Returns the identifier of the request's span.
    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// Returns the identifier of the span of the upstream's response, which is the parent of the
    /// upstream's spans.
    pub fn upstream_span_id(&self) -> [u8; 8] {
        self.child_id(ChildSpan::Upstream)
    }

    /// Returns the identifier of the span of the token's verification.
    pub fn verification_span_id(&self) -> [u8; 8] {
        self.child_id(ChildSpan::Verification)
    }

    /// Returns whether the spans are recorded.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Returns the `traceparent` of the request to the upstream.
    pub fn upstream_traceparent(&self) -> Option<HeaderValue> {
        let parent_id = self.upstream_span_id();
        let is_sampled = self.is_sampled;
        TraceParent {
            trace_id: self.trace_id,
            parent_id,
            is_sampled,
        }
        .to_header_value()
    }

    /// Returns the identifier of a span in the request's span. All of them differ, and none is
    /// zero, because the first bits of the request's own are those of a version 4 UUID.
    fn child_id(&self, span: ChildSpan) -> [u8; 8] {
        (u64::from_be_bytes(self.span_id) ^ span as u64).to_be_bytes()
    }
}

/// The spans in a request's span. Each value is the difference of their identifiers, so it is not
/// zero.
#[derive(Clone, Copy)]
enum ChildSpan {
    Upstream = 1,
    Verification = 2,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn context(ratio: f64, parent: ClientTrace, client: &str) -> (RequestId, TraceContext) {
        let headers =
            HeaderMap::from_iter([(TraceParent::HEADER, HeaderValue::from_str(client).unwrap())]);
        let request_id = RequestId::generate();
        let context = TraceSettings { ratio, parent }.context(&request_id, &headers);
        (request_id, context)
    }

    /// J7, L2: a client's trace is continued only as configured, and its sampled flag counts only
    /// if clients are trusted.
    #[test]
    fn the_trace_of_a_client() {
        for (parent, joins, samples) in [
            (ClientTrace::Restart, false, false),
            (ClientTrace::Join, true, false),
            (ClientTrace::Trust, true, true),
        ] {
            let (id, context) = context(0.0, parent, CLIENT);
            assert_eq!(context.is_sampled(), samples);
            let trace_id = hex(&context.trace_id());
            let expected = if joins {
                "4bf92f3577b34da6a3ce929d0e0e4736".to_owned()
            } else {
                id.as_str().replace('-', "")
            };
            assert_eq!(trace_id, expected);
            assert_eq!(context.parent_id().is_some(), joins);
            let sent = context.upstream_traceparent().unwrap();
            let upstream_span = hex(&context.upstream_span_id());
            assert_eq!(
                sent,
                format!("00-{trace_id}-{upstream_span}-0{}", u8::from(samples))
            );
            let headers = HeaderMap::from_iter([(TraceParent::HEADER, sent)]);
            assert_eq!(
                TraceParent::of(&headers).unwrap().parent_id,
                context.upstream_span_id()
            );
        }
        let (_, unsampled) = context(1.0, ClientTrace::Trust, &CLIENT.replace("-01", "-00"));
        assert!(!unsampled.is_sampled());

        let (id, invalid) = context(1.0, ClientTrace::Trust, "00-xyz");
        assert!(invalid.is_sampled());
        assert!(invalid.parent_id().is_none());
        assert_eq!(hex(&invalid.trace_id()), id.as_str().replace('-', ""));
    }

    /// J7: the ratio of sampled requests is the configured one.
    #[test]
    fn the_ratio_is_that_of_the_settings() {
        for (ratio, least, most) in [
            (0.0, 0, 0),
            (0.5, 4700, 5300),
            (1.0, 10_000, 10_000),
            (-1.0, 0, 0),
            (2.0, 10_000, 10_000),
            (f64::NAN, 0, 0),
        ] {
            let sampled = (0..10_000)
                .filter(|_| context(ratio, ClientTrace::Join, CLIENT).1.is_sampled())
                .count();
            assert!((least..=most).contains(&sampled), "{ratio}: {sampled}");
        }
    }

    /// J7: the spans of a request have different identifiers, none of them zero.
    #[test]
    fn spans_have_different_identifiers() {
        for _ in 0..1000 {
            let (_, context) = context(1.0, ClientTrace::Restart, CLIENT);
            let ids = [
                context.span_id(),
                context.upstream_span_id(),
                context.verification_span_id(),
            ];
            assert!(ids[0] != ids[1]);
            assert!(ids[1] != ids[2]);
            assert!(ids[0] != ids[2]);
            assert!(!ids.contains(&[0; 8]));
        }
    }
}
