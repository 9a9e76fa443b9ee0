//! Traces: what an OTLP receiver and the upstream get.

use std::{collections::HashMap, time::Duration};

use http::Response;
use portcullis_scenarios::{Deployment, HttpResponse, INITIALIZE, Peer, Request, Scratch, call};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const PATH: &str = "/v1/traces";
const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A receiver that accepts everything.
async fn receiver() -> Peer {
    Peer::start(|_| Some(Response::new("{}".to_owned()))).await
}

async fn traced(receiver: &Peer, settings: &str) -> Deployment {
    let tables = format!("[traces]\nendpoint = \"{}\"\n{settings}", receiver.url(""));
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

    fn nanoseconds(&self, member: &str) -> u64 {
        self.text(member).parse().unwrap_or_else(|error| panic!("{member}: {error}: {}", self.json))
    }
}

/// Decodes `ExportTraceServiceRequest`s.
fn spans(receiver: &Peer) -> Vec<Span> {
    let each =
        |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_else(|| panic!("no {name}: {value}"));
    let attributes = |value: &Value| -> HashMap<String, String> {
        let attributes = each(value, "attributes").into_iter().map(|attribute| {
            let value = &attribute["value"];
            let value = value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap();
            (attribute["key"].as_str().unwrap().to_owned(), value.to_owned())
        });
        attributes.collect()
    };
    let mut spans = Vec::new();
    for request in receiver.requests(PATH) {
        for resource in each(&request.message(), "resourceSpans") {
            assert_eq!(attributes(&resource["resource"])["service.name"], "portcullis");
            for scope in each(&resource, "scopeSpans") {
                for json in each(&scope, "spans") {
                    let attributes = if json["attributes"].is_array() { attributes(&json) } else { HashMap::new() };
                    spans.push(Span { attributes, json });
                }
            }
        }
    }
    spans
}

fn tool(name: &str) -> String {
    call(2, "tools/call", &json!({ "name": name, "arguments": {} }))
}

/// J7, L2: each request has a span with its decision, the upstream and the verification have children, and the upstream gets the
/// identifiers of its span. No token, query or principal is sent.
#[tokio::test]
async fn spans_of_requests() {
    let receiver = receiver().await;
    let deployment = traced(&receiver, "sample = 1").await;
    let token = deployment.token().subject("canary-subject").sign();
    let session = deployment.open_session(&token).await;
    let called = Request::post("/mcp?key=canary-query", tool("add")).bearer(&token).session(&session);
    let called = deployment.send(called.header("traceparent", CLIENT).header("tracestate", "canary=1")).await;
    assert_eq!(called.status, 200, "{called:?}");
    let upstream_request = deployment.upstream.last();
    let denied = deployment.send(Request::post(Deployment::ENDPOINT, INITIALIZE)).await;
    let line = deployment.portcullis.access_line(&called).await;
    let finished = deployment.portcullis.stop().await;
    assert!(!finished.stderr.contains("traces.lost"), "{}", finished.stderr);

    let spans = spans(&receiver);
    assert!(!format!("{spans:?}").contains("canary"), "{spans:?}");
    let of = |response: &HttpResponse| {
        let id = response.header("x-request-id").unwrap().replace('-', "");
        let spans: Vec<Span> = spans.iter().filter(|span| span.text("traceId") == id).cloned().collect();
        spans
    };
    let called = of(&called);
    let [request, upstream] = &called[..] else { panic!("not two spans: {called:?}") };
    assert_eq!((request.text("name"), &request.json["kind"]), ("POST /mcp", &json!(2)));
    assert!(request.json.get("parentSpanId").is_none(), "the client's trace is not continued");
    for (name, value) in [
        ("http.request.method", "POST"),
        ("url.path", "/mcp"),
        ("http.response.status_code", "200"),
        ("portcullis.decision", "allow"),
        ("portcullis.resource", Deployment::RESOURCE),
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "add"),
    ] {
        assert_eq!(request.attributes[name], value, "{request:?}");
    }
    assert_eq!((upstream.text("name"), &upstream.json["kind"]), ("upstream", &json!(3)));
    assert_eq!(upstream.text("parentSpanId"), request.text("spanId"));
    let times =
        [request, upstream].map(|span| [span.nanoseconds("startTimeUnixNano"), span.nanoseconds("endTimeUnixNano")]);
    assert!(times[0][0] <= times[1][0] && times[1][0] < times[1][1] && times[1][1] <= times[0][1], "{times:?}");
    let parent = format!("00-{}-{}-01", upstream.text("traceId"), upstream.text("spanId"));
    assert_eq!(upstream_request.header("traceparent"), Some(&*parent));
    assert_eq!(upstream_request.header("tracestate"), None);
    assert_eq!(line["trace.id"], request.text("traceId"));

    let denied = of(&denied);
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(
        (&*denied[0].attributes["portcullis.decision"], &*denied[0].attributes["portcullis.reason"]),
        ("deny", "bearer.missing")
    );
    let verified = spans.iter().filter(|span| span.text("name") == "verify token").count();
    assert_eq!(verified, 1, "the token is cached after its first use");
}

/// J7, L2: a client continues its trace only as configured, and makes the server sample only if it is trusted.
#[tokio::test]
async fn the_trace_of_a_client() {
    for (client, joins, samples) in [("restart", false, false), ("join", true, false), ("trust", true, true)] {
        let receiver = receiver().await;
        let deployment = traced(&receiver, &format!("sample = 0\nclient = \"{client}\"")).await;
        let request = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&deployment.good_token());
        let response = deployment.send(request.header("traceparent", CLIENT).header("tracestate", "v=1")).await;
        assert_eq!(response.status, 200, "{response:?}");
        let sent = deployment.upstream.last();
        let parent = sent.header("traceparent").expect("a trace context").to_owned();
        assert_eq!(parent.contains("4bf92f3577b34da6a3ce929d0e0e4736"), joins, "{client}: {parent}");
        assert_eq!(parent.ends_with("-01"), samples, "{client}: {parent}");
        assert!(!parent.contains("00f067aa0ba902b7"), "{client}: {parent}");
        assert_eq!(sent.header("tracestate").is_some(), joins, "{client}");
        deployment.portcullis.stop().await;
        let spans = spans(&receiver);
        assert_eq!(!spans.is_empty(), samples, "{client}");
        assert!(spans.iter().all(|span| span.text("traceId") == "4bf92f3577b34da6a3ce929d0e0e4736"), "{spans:?}");
        let request = spans.iter().find(|span| span.json["kind"] == 2);
        assert!(request.is_none_or(|span| span.text("parentSpanId") == "00f067aa0ba902b7"), "{spans:?}");
    }
}

/// J7: a receiver that fails delays neither requests nor the shutdown. Spans are sent again, and lost ones are counted.
#[tokio::test]
async fn a_failing_receiver() {
    let failing = Peer::start(|_| Some(Response::builder().status(503).body(String::new()).unwrap())).await;
    let deployment = traced(&failing, "sample = 1").await;
    deployment.send(Request::post(Deployment::ENDPOINT, INITIALIZE)).await.assert_unauthorized();
    deployment.portcullis.logged("spans cannot be sent: the status is 503", |line| line["level"] == "WARN").await;
    let repeated = async {
        while failing.requests(PATH).len() < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), repeated).await.expect("the spans are sent again");
    let finished = deployment.portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("\"traces.lost\":1"), "{}", finished.stderr);

    let rejecting = Peer::start(|_| {
        Some(Response::new(r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}"#.to_owned()))
    })
    .await;
    let deployment = traced(&rejecting, "sample = 1").await;
    deployment.send(Request::post(Deployment::ENDPOINT, INITIALIZE)).await.assert_unauthorized();
    deployment.portcullis.logged("the receiver rejected spans", |line| line["reason"] == "too old").await;
}

/// J2, J7: headers for the receiver come from the environment or a file.
#[tokio::test]
async fn headers_of_the_receiver() {
    let receiver = receiver().await;
    let secret = Scratch::file("authorization", "Bearer canary-of-receiver\n");
    let headers = format!("sample = 1\nheaders = {{ authorization = {{ file = \"{}\" }} }}", secret.as_str());
    let deployment = traced(&receiver, &headers).await;
    deployment.send(Request::post(Deployment::ENDPOINT, INITIALIZE)).await.assert_unauthorized();
    let finished = deployment.portcullis.stop().await;
    assert!(!finished.stderr.contains("canary"), "{}", finished.stderr);
    let requests = receiver.requests(PATH);
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.authorization.as_deref() == Some("Bearer canary-of-receiver")));
}
