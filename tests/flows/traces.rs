//! Traces: what an OTLP receiver and the upstream get.

use std::{collections::HashMap, time::Duration};

use http::Response;
use portcullis_scenarios::{
    Deployment, HttpResponse, INITIALIZE, Peer, RecordedRequest, Request, Scratch, call_message,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const PATH: &str = "/v1/traces";
/// The trace context of the client.
const CLIENT_TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const CLIENT_TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT_SPAN_ID: &str = "00f067aa0ba902b7";
/// The values of `SpanKind`.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;

/// J7, L2: the span of a request has its decision and what it called. It begins a trace, whose
/// identifier is in the access log.
#[tokio::test]
async fn the_span_of_a_request_has_its_decision() {
    let exported = Exported::new().await;
    let (request, _) = exported.spans_of_call();
    assert_eq!(request.text("name"), "POST /mcp");
    assert_eq!(request.json["kind"], json!(SERVER));
    assert!(
        request.json.get("parentSpanId").is_none(),
        "the client's trace is not continued: {request:?}"
    );

    for (name, value) in [
        ("http.request.method", "POST"),
        ("url.path", "/mcp"),
        ("http.response.status_code", "200"),
        ("portcullis.decision", "allow"),
        ("portcullis.resource", Deployment::RESOURCE),
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "add"),
    ] {
        assert_eq!(request.attributes[name], value, "{name}: {request:?}");
    }
    assert_eq!(exported.access_line["trace.id"], request.text("traceId"));
}

/// J7: a method that a client invents is in an attribute, and not in the name of the span, by which
/// receivers group.
#[tokio::test]
async fn an_invented_method_names_no_span() {
    let receiver = accepting_receiver().await;
    let deployment = deployment(&receiver, "sample = 1").await;
    let invented = "INVENTED".repeat(100);
    let request = Request::new(&invented, Deployment::ENDPOINT).bearer(&deployment.good_token());
    let response = deployment.send(request).await;
    assert_eq!(response.status, 405, "{response:?}");
    deployment.portcullis.stop().await;
    let spans = exported_spans(&receiver);
    let span = spans
        .iter()
        .find(|span| span.json["kind"] == SERVER)
        .expect("the span of the request");
    assert_eq!(span.text("name"), "HTTP /mcp");
    assert_eq!(span.attributes["http.request.method"], "_OTHER");
    assert_eq!(
        span.attributes["http.request.method_original"],
        format!("{}…", &invented[..256])
    );
}

/// J7: the upstream's span is a child of the request's, and within its time.
#[tokio::test]
async fn the_span_of_the_upstream_is_a_child() {
    let exported = Exported::new().await;
    let (request, upstream) = exported.spans_of_call();
    assert_eq!(upstream.text("name"), "upstream");
    assert_eq!(upstream.json["kind"], json!(CLIENT));
    assert_eq!(upstream.text("parentSpanId"), request.text("spanId"));
    assert!(upstream.start() < upstream.end(), "{upstream:?}");
    assert!(
        request.start() <= upstream.start(),
        "{request:?}, {upstream:?}"
    );
    assert!(upstream.end() <= request.end(), "{request:?}, {upstream:?}");
}

/// L2: the upstream gets the identifiers of its own span, and not the client's trace context.
#[tokio::test]
async fn the_upstream_continues_its_span() {
    let exported = Exported::new().await;
    let (_, upstream) = exported.spans_of_call();
    let expected = format!(
        "00-{}-{}-01",
        upstream.text("traceId"),
        upstream.text("spanId")
    );
    assert_eq!(exported.forwarded.header("traceparent"), Some(&*expected));
    assert_eq!(exported.forwarded.header("tracestate"), None);
}

/// J7: a denied request has one span, with the reason.
#[tokio::test]
async fn a_denied_request_has_a_span_with_its_reason() {
    let exported = Exported::new().await;
    let spans = exported.spans_of(&exported.denied);
    let [request] = &spans[..] else {
        panic!("not one span: {spans:?}")
    };
    assert_eq!(request.attributes["portcullis.decision"], "deny");
    assert_eq!(request.attributes["portcullis.reason"], "bearer.missing");
}

/// J7: the verification of a token has a span, and its later uses have none, because it is cached.
#[tokio::test]
async fn a_verification_has_one_span() {
    let exported = Exported::new().await;
    let verifications: Vec<_> = exported
        .spans
        .iter()
        .filter(|span| span.text("name") == "verify token")
        .collect();
    assert_eq!(verifications.len(), 1, "{:?}", exported.spans);
}

/// J7: the receiver gets no token, principal or query, and not the client's trace state.
#[tokio::test]
async fn spans_have_no_secrets() {
    let exported = Exported::new().await;
    assert!(!exported.bodies.is_empty());
    for secret in ["canary", &*exported.token] {
        assert!(
            !exported.bodies.contains(secret),
            "{secret}: {}",
            exported.bodies
        );
    }
}

/// J7, L2: a client continues its trace only as configured, and makes the server sample only if it
/// is trusted.
#[tokio::test]
async fn a_client_continues_its_trace_as_configured() {
    for (client, joins, samples) in [
        ("restart", false, false),
        ("join", true, false),
        ("trust", true, true),
    ] {
        let receiver = accepting_receiver().await;
        let deployment = deployment(&receiver, &format!("sample = 0\nclient = \"{client}\"")).await;
        let sent = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&deployment.good_token());
        let response = deployment
            .send(
                sent.header("traceparent", CLIENT_TRACEPARENT)
                    .header("tracestate", "v=1"),
            )
            .await;
        assert_eq!(response.status, 200, "{response:?}");
        let forwarded = deployment.upstream.last();
        let parent = forwarded
            .header("traceparent")
            .expect("a trace context")
            .to_owned();
        assert_eq!(
            parent.contains(CLIENT_TRACE_ID),
            joins,
            "{client}: {parent}"
        );
        assert_eq!(parent.ends_with("-01"), samples, "{client}: {parent}");
        assert!(!parent.contains(CLIENT_SPAN_ID), "{client}: {parent}");
        assert_eq!(forwarded.header("tracestate").is_some(), joins, "{client}");
        deployment.portcullis.stop().await;
        let spans = exported_spans(&receiver);
        assert_eq!(!spans.is_empty(), samples, "{client}");
        assert!(
            spans
                .iter()
                .all(|span| span.text("traceId") == CLIENT_TRACE_ID),
            "{spans:?}"
        );
        let span_of_request = spans.iter().find(|span| span.json["kind"] == SERVER);
        assert!(
            span_of_request.is_none_or(|span| span.text("parentSpanId") == CLIENT_SPAN_ID),
            "{spans:?}"
        );
    }
}

/// J7: a receiver that fails delays neither requests nor the shutdown. Spans are sent again, and
/// lost ones are counted.
#[tokio::test]
async fn a_failing_receiver_delays_nothing() {
    let failing =
        Peer::start(|_| Some(Response::builder().status(503).body(String::new()).unwrap())).await;
    let deployment = deployment(&failing, "sample = 1").await;
    deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await
        .assert_unauthorized();
    deployment
        .portcullis
        .logged("spans cannot be sent: the status is 503", |line| {
            line["level"] == "WARN"
        })
        .await;
    let repeated = async {
        while failing.requests(PATH).len() < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), repeated)
        .await
        .expect("the spans are sent again");
    let finished = deployment.portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stderr.contains("\"traces.lost\":1"),
        "{}",
        finished.stderr
    );
}

/// J7: spans that the receiver rejects are logged with its reason.
#[tokio::test]
async fn rejected_spans_are_logged() {
    let rejecting = Peer::start(|_| {
        Some(Response::new(
            r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}"#.to_owned(),
        ))
    })
    .await;
    let deployment = deployment(&rejecting, "sample = 1").await;
    deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await
        .assert_unauthorized();
    deployment
        .portcullis
        .logged("the receiver rejected spans", |line| {
            line["reason"] == "too old"
        })
        .await;
}

/// J2, J7: headers for the receiver come from the environment or a file.
#[tokio::test]
async fn the_receiver_gets_configured_headers() {
    let receiver = accepting_receiver().await;
    let secret = Scratch::file("authorization", "Bearer canary-of-receiver\n");
    let headers = format!(
        "sample = 1\nheaders = {{ authorization = {{ file = \"{}\" }} }}",
        secret.as_str()
    );
    let deployment = deployment(&receiver, &headers).await;
    deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await
        .assert_unauthorized();
    let finished = deployment.portcullis.stop().await;
    assert!(!finished.stderr.contains("canary"), "{}", finished.stderr);
    let requests = receiver.requests(PATH);
    assert!(!requests.is_empty());
    assert!(
        requests
            .iter()
            .all(|request| request.authorization.as_deref() == Some("Bearer canary-of-receiver"))
    );
}

/// What a receiver got about a session with one tool call, and about a denied request.
struct Exported {
    spans: Vec<Span>,
    /// The bodies of all requests to the receiver.
    bodies: String,
    token: String,
    called: HttpResponse,
    /// The tool call, as the upstream got it.
    forwarded: RecordedRequest,
    /// The tool call in the access log.
    access_line: Value,
    denied: HttpResponse,
}

impl Exported {
    /// Calls a tool with a token, a query and a trace context, sends a request without a token, and
    /// stops the server.
    async fn new() -> Self {
        let receiver = accepting_receiver().await;
        let deployment = deployment(&receiver, "sample = 1").await;
        let token = deployment.token().subject("canary-subject").sign();
        let session = deployment.open_session(&token).await;
        let add = call_message(2, "tools/call", &json!({ "name": "add", "arguments": {} }));
        let add = Request::post("/mcp?key=canary-query", add)
            .bearer(&token)
            .session(&session);
        let add = add
            .header("traceparent", CLIENT_TRACEPARENT)
            .header("tracestate", "canary=1");
        let called = deployment.send(add).await;
        assert_eq!(called.status, 200, "{called:?}");

        let forwarded = deployment.upstream.last();
        let denied = deployment
            .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
            .await;
        let access_line = deployment.portcullis.access_line(&called).await;
        let finished = deployment.portcullis.stop().await;
        assert!(
            !finished.stderr.contains("traces.lost"),
            "{}",
            finished.stderr
        );

        let bodies = receiver
            .requests(PATH)
            .iter()
            .map(|request| request.message().to_string())
            .collect();
        Self {
            spans: exported_spans(&receiver),
            bodies,
            token,
            called,
            forwarded,
            access_line,
            denied,
        }
    }

    /// Returns the spans of the tool call: that of the request and that of the upstream.
    fn spans_of_call(&self) -> (&Span, &Span) {
        let spans = self.spans_of(&self.called);
        let [request, upstream] = spans[..] else {
            panic!("not two spans: {spans:?}")
        };
        (request, upstream)
    }

    /// Returns the spans of the request with this response.
    fn spans_of(&self, response: &HttpResponse) -> Vec<&Span> {
        let trace_id = response.header("x-request-id").unwrap().replace('-', "");
        self.spans
            .iter()
            .filter(|span| span.text("traceId") == trace_id)
            .collect()
    }
}

/// Starts a receiver that accepts everything.
async fn accepting_receiver() -> Peer {
    Peer::start(|_| Some(Response::new("{}".to_owned()))).await
}

/// Starts a server that sends spans to the receiver, with these lines in `[traces]`.
async fn deployment(receiver: &Peer, lines: &str) -> Deployment {
    let tables = format!("[traces]\nendpoint = \"{}\"\n{lines}", receiver.url(""));
    Deployment::builder().tables(tables).start().await
}

/// A decoded span.
#[derive(Clone, Debug)]
struct Span {
    json: Value,
    attributes: HashMap<String, String>,
}

impl Span {
    fn text(&self, member: &str) -> &str {
        self.json[member].as_str().unwrap_or_default()
    }

    fn start(&self) -> u64 {
        self.nanoseconds("startTimeUnixNano")
    }

    fn end(&self) -> u64 {
        self.nanoseconds("endTimeUnixNano")
    }

    fn nanoseconds(&self, member: &str) -> u64 {
        self.text(member)
            .parse()
            .unwrap_or_else(|error| panic!("{member}: {error}: {}", self.json))
    }
}

/// Returns the spans in the `ExportTraceServiceRequest`s that a receiver got.
fn exported_spans(receiver: &Peer) -> Vec<Span> {
    let each = |value: &Value, name: &str| {
        value[name]
            .as_array()
            .cloned()
            .unwrap_or_else(|| panic!("no {name}: {value}"))
    };
    let attributes = |value: &Value| -> HashMap<String, String> {
        let attributes = each(value, "attributes").into_iter().map(|attribute| {
            let value = &attribute["value"];
            let value = value["stringValue"]
                .as_str()
                .or(value["intValue"].as_str())
                .unwrap();
            (
                attribute["key"].as_str().unwrap().to_owned(),
                value.to_owned(),
            )
        });
        attributes.collect()
    };
    let mut spans = Vec::new();
    for request in receiver.requests(PATH) {
        for resource in each(&request.message(), "resourceSpans") {
            assert_eq!(
                attributes(&resource["resource"])["service.name"],
                "portcullis"
            );
            for scope in each(&resource, "scopeSpans") {
                for json in each(&scope, "spans") {
                    let attributes = if json["attributes"].is_array() {
                        attributes(&json)
                    } else {
                        HashMap::new()
                    };
                    spans.push(Span { attributes, json });
                }
            }
        }
    }
    spans
}
