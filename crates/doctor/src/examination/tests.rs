//! The doctor names the first cause of each fault, from the challenge to the keys.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use portcullis_discovery::FetchResponse;
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use serde_json::{Value, json};

use super::*;
use crate::Verdict;

mod responses;
mod tokens;

const RESOURCE: &str = "https://mcp.example.com/mcp";
const NAMED: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const ROOT: &str = "https://mcp.example.com/.well-known/oauth-protected-resource";
const ISSUER: &str = "https://auth.example.com";

struct Fixture {
    fetch: ScriptedFetch,
    test_issuer: TestIssuer,
}

impl Fixture {
    /// A chain without a fault.
    fn new() -> Self {
        let fixture = Self {
            fetch: ScriptedFetch::new(),
            test_issuer: TestIssuer::new(ISSUER),
        };
        fixture.fetch.publish(&fixture.test_issuer);
        fixture.issuer(json!({}));
        fixture
            .fetch
            .respond(fixture.test_issuer.endpoint("token"), |_| {
                Ok(response(401, &[CORS], &json!({"error": "invalid_client"})))
            });
        fixture.challenge(
            401,
            &format!(r#"Bearer resource_metadata="{NAMED}", scope="mcp:tools""#),
        );
        let document = json!({
            "resource": RESOURCE, "authorization_servers": [ISSUER], "scopes_supported": ["mcp:tools"],
        });
        fixture
            .fetch
            .respond(NAMED, move |_| Ok(response(200, &[CORS], &document)));
        fixture
    }

    /// Responds at the resource with this status and challenge.
    fn challenge(&self, status: u16, challenge: &str) {
        let challenge = HeaderValue::from_str(challenge).unwrap();
        self.fetch.respond(RESOURCE, move |request| {
            if request.method == http::Method::OPTIONS {
                return Ok(response(
                    204,
                    &[
                        CORS,
                        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization"),
                        ALLOW_POST,
                    ],
                    &Value::Null,
                ));
            }
            let mut response = response(status, &[CORS, EXPOSE], &Value::Null);
            response
                .headers
                .insert(header::WWW_AUTHENTICATE, challenge.clone());
            Ok(response)
        });
    }

    /// Changes members of the issuer's metadata; null takes one away.
    fn issuer(&self, changes: Value) {
        let mut document: Value = serde_json::from_str(&self.test_issuer.metadata_json()).unwrap();
        for (name, value) in changes.as_object().unwrap() {
            document[name] = value.clone();
        }
        document
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        self.fetch
            .respond(self.test_issuer.metadata_url(), move |_| {
                Ok(response(200, &[CORS], &document))
            });
    }

    async fn examine(&self) -> Report {
        self.examine_with(None).await
    }

    async fn examine_with(&self, token: Option<&AccessToken>) -> Report {
        let doctor = Doctor::new(Arc::new(self.fetch.clone())).clock(Arc::new(ManualClock::new()));
        let mut reported = 0;
        let report = doctor
            .examine(&Url::parse(RESOURCE).unwrap(), token, &mut |_| {
                reported += 1
            })
            .await;
        assert_eq!(reported, report.steps.len(), "every step is reported once");
        report
    }

    async fn first_problem(&self) -> &'static str {
        let report = self.examine().await;
        assert_eq!(
            report.count(Verdict::Problem),
            1,
            "one cause, no cascade: {report:#?}"
        );
        report.first_problem().unwrap().rule.id
    }
}

const CORS: (HeaderName, &str) = (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
const EXPOSE: (HeaderName, &str) = (header::ACCESS_CONTROL_EXPOSE_HEADERS, "WWW-Authenticate");
const ALLOW_POST: (HeaderName, &str) = (header::ACCESS_CONTROL_ALLOW_METHODS, "POST");

fn response(status: u16, headers: &[(HeaderName, &'static str)], body: &Value) -> FetchResponse {
    let mut all: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
        .collect();
    all.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    FetchResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers: all,
        body: body.to_string().into(),
        sent: Default::default(),
    }
}

#[tokio::test]
async fn a_chain_without_a_fault() {
    let report = Fixture::new().examine().await;
    let wrong: Vec<_> = report
        .findings()
        .filter(|finding| finding.verdict >= Verdict::Warning)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(report.steps.len() >= 6, "{report:#?}");
    assert!(report.count(Verdict::Met) > 15);
}

#[tokio::test]
async fn the_first_cause_at_the_resource() {
    let fixture = Fixture::new();
    fixture.fetch.fail(RESOURCE);
    assert_eq!(fixture.first_problem().await, "connection.reachable");
    assert_eq!(
        fixture.fetch.urls().len(),
        1,
        "nothing is asked after the break"
    );

    let fixture = Fixture::new();
    fixture.fetch.time_out(RESOURCE);
    assert_eq!(fixture.first_problem().await, "connection.bounded");

    let fixture = Fixture::new();
    fixture.challenge(403, &format!(r#"Bearer resource_metadata="{NAMED}""#));
    assert_eq!(fixture.first_problem().await, "challenge.status");
}

#[tokio::test]
async fn the_first_cause_in_the_resources_metadata() {
    let cases = [
        (
            json!({"resource": "https://other.example/mcp", "authorization_servers": [ISSUER]}),
            "resource.match",
        ),
        (json!({"resource": RESOURCE}), "resource.document"),
        (
            json!({"resource": RESOURCE, "authorization_servers": []}),
            "resource.document",
        ),
        (
            json!({"resource": RESOURCE, "authorization_servers": [ISSUER], "bearer_methods_supported": ["body"]}),
            "resource.bearer_methods",
        ),
        (
            json!({"resource": RESOURCE, "authorization_servers": [ISSUER], "bearer_methods_supported": []}),
            "resource.bearer_methods",
        ),
        (json!([]), "resource.document"),
    ];
    for (document, expected) in cases {
        let fixture = Fixture::new();
        fixture.fetch.serve(NAMED, 200, document.to_string());
        assert_eq!(fixture.first_problem().await, expected, "{document}");
        assert_eq!(
            fixture.fetch.hits(fixture.test_issuer.metadata_url()),
            0,
            "a client goes no further"
        );
    }
    let fixture = Fixture::new();
    fixture.fetch.serve(NAMED, 404, "");
    assert_eq!(fixture.first_problem().await, "resource.found");
}

/// H4: a resource that is only a prefix of the URL gets a warning: a token for it is also valid for
/// the other paths. So does one that differs by a final slash, because some clients compare
/// strings.
#[tokio::test]
async fn a_broader_resource_is_warned_about() {
    for (resource, verdict) in [
        (RESOURCE, Verdict::Met),
        ("https://mcp.example.com/mcp/", Verdict::Warning),
        ("https://mcp.example.com", Verdict::Warning),
        ("https://mcp.example.com/", Verdict::Warning),
        ("https://mcp.example.com/other", Verdict::Problem),
    ] {
        let fixture = Fixture::new();
        fixture.fetch.serve(
            NAMED,
            200,
            json!({"resource": resource, "authorization_servers": [ISSUER]}).to_string(),
        );
        let report = fixture.examine().await;
        let finding = report
            .findings()
            .find(|finding| finding.rule.id == "resource.match")
            .unwrap();
        assert_eq!(finding.verdict, verdict, "{resource}");
    }
}

/// A problem at a URL that clients request only without a challenge does not end the examination.
#[tokio::test]
async fn a_problem_at_an_unneeded_url_ends_nothing() {
    const CHALLENGED: &str = "https://mcp.example.com/meta";
    let document = json!({"resource": RESOURCE, "authorization_servers": [ISSUER]});
    let fixture = Fixture::new();
    fixture.challenge(401, &format!(r#"Bearer resource_metadata="{CHALLENGED}""#));
    fixture.fetch.serve(CHALLENGED, 200, document.to_string());
    fixture.fetch.time_out(NAMED);
    assert_eq!(fixture.first_problem().await, "connection.bounded");
    assert_ne!(fixture.fetch.hits(fixture.test_issuer.metadata_url()), 0);
}

/// G1: without a URL in the challenge, the well-known URLs are requested, first the one with the
/// path.
#[tokio::test]
async fn the_well_known_urls_stand_in_for_the_challenge() {
    let fixture = Fixture::new();
    fixture.challenge(401, "Bearer");
    assert_eq!(
        fixture.examine().await.first_problem(),
        None,
        "the path form is there"
    );
    let document = json!({"resource": RESOURCE, "authorization_servers": [ISSUER]});
    fixture.fetch.serve(NAMED, 404, "");
    fixture.fetch.serve(ROOT, 200, document.to_string());
    assert_eq!(
        fixture.examine().await.first_problem(),
        None,
        "the root form is there"
    );
    fixture.fetch.serve(NAMED, 500, "");
    assert_eq!(
        fixture.first_problem().await,
        "resource.found",
        "the search ends"
    );
    fixture.fetch.serve(NAMED, 404, "");
    fixture.fetch.serve(ROOT, 404, "");
    assert_eq!(fixture.first_problem().await, "resource.found");
}

#[tokio::test]
async fn the_first_cause_at_the_issuer() {
    let cases = [
        (
            json!({"issuer": "https://auth.example.com/"}),
            "issuer.identity",
        ),
        (json!({"token_endpoint": null}), "issuer.endpoints"),
        (
            json!({"authorization_endpoint": "http://auth.example.com/authorize"}),
            "issuer.endpoints",
        ),
        (
            json!({"authorization_endpoint": "https://10.0.0.1/authorize"}),
            "issuer.endpoints",
        ),
        (
            json!({"introspection_endpoint": "http://auth.example.com/introspect"}),
            "issuer.endpoints",
        ),
        (
            json!({"mtls_endpoint_aliases": {"token_endpoint": "http://a.example/"}}),
            "issuer.endpoints",
        ),
        (
            json!({"device_authorization_endpoint": "http://auth.example.com/device"}),
            "issuer.endpoints",
        ),
        (
            json!({"response_types_supported": ["token"]}),
            "issuer.response_types",
        ),
        (
            json!({"grant_types_supported": ["implicit"]}),
            "issuer.grant_types",
        ),
        (
            json!({"code_challenge_methods_supported": null}),
            "issuer.pkce",
        ),
        (
            json!({"code_challenge_methods_supported": ["plain"]}),
            "issuer.pkce",
        ),
        (
            json!({"registration_endpoint": "https://169.254.169.254/"}),
            "registration.endpoint",
        ),
        (
            json!({"jwks_uri": "https://auth.example.com/nothing"}),
            "keys.found",
        ),
    ];
    for (changes, expected) in cases {
        let fixture = Fixture::new();
        fixture.issuer(changes.clone());
        assert_eq!(fixture.first_problem().await, expected, "{changes}");
    }
}

/// G3, G4: every form of the address is tried; a document of another issuer ends the search.
#[tokio::test]
async fn each_form_of_the_issuers_address_is_shown() {
    let fixture = Fixture::new();
    fixture
        .fetch
        .serve(fixture.test_issuer.metadata_url(), 404, "");
    assert_eq!(fixture.first_problem().await, "issuer.found");
    let openid = "https://auth.example.com/.well-known/openid-configuration";
    assert_eq!(fixture.fetch.hits(openid), 1);

    fixture
        .fetch
        .serve(openid, 200, fixture.test_issuer.metadata_json());
    assert_eq!(fixture.examine().await.first_problem(), None);
    fixture
        .fetch
        .serve(fixture.test_issuer.metadata_url(), 503, "");
    assert_eq!(fixture.first_problem().await, "issuer.found");
}

#[tokio::test]
async fn keys_are_looked_at_one_by_one() {
    let fixture = Fixture::new();
    let url = fixture.test_issuer.endpoint("jwks");
    fixture.fetch.serve(&url, 200, r#"{"keys":[]}"#);
    assert_eq!(fixture.first_problem().await, "keys.usable");
    fixture.fetch.serve(&url, 200, "<html>");
    assert_eq!(fixture.first_problem().await, "keys.document");

    let mut set: Value = serde_json::from_str(&fixture.test_issuer.jwks_json()).unwrap();
    set["keys"]
        .as_array_mut()
        .unwrap()
        .push(json!({"kty": "oct", "kid": "shared", "k": "AAAA"}));
    fixture.fetch.serve(&url, 200, set.to_string());
    let report = fixture.examine().await;
    assert_eq!(report.first_problem(), None, "a bad key costs only itself");
    assert!(report.findings().any(|finding| {
        finding
            .text
            .contains("shared is not used: the key is symmetric")
    }));
}

#[tokio::test]
async fn scopes_that_the_server_does_not_list_are_reported() {
    let fixture = Fixture::new();
    fixture.issuer(json!({"scopes_supported": ["openid"]}));
    let report = fixture.examine().await;
    let finding = report
        .findings()
        .find(|finding| finding.rule.id == "scopes.known")
        .unwrap();
    assert_eq!(finding.verdict, Verdict::Warning);
    assert_eq!(finding.text.as_str(), "the server does not list: mcp:tools");
}

/// G6: what a peer names is fetched under the peer's policy, the start under the operator's.
#[tokio::test]
async fn a_peer_cannot_send_us_into_the_private_network() {
    let fixture = Fixture::new();
    fixture.challenge(
        401,
        r#"Bearer resource_metadata="https://10.0.0.1/metadata""#,
    );
    assert_eq!(fixture.first_problem().await, "connection.public_address");

    let doctor = Doctor::new(Arc::new(fixture.fetch.clone()))
        .clock(Arc::new(ManualClock::new()))
        .allow_private_addresses(true);
    let report = doctor
        .examine(&Url::parse(RESOURCE).unwrap(), None, &mut |_| ())
        .await;
    assert_eq!(
        report.first_problem().unwrap().rule.id,
        "resource.found",
        "it was asked this time"
    );
    let plain = doctor
        .examine(
            &Url::parse("http://mcp.example.com/mcp").unwrap(),
            None,
            &mut |_| (),
        )
        .await;
    assert_eq!(plain.first_problem().unwrap().rule.id, "resource.https");
}

#[tokio::test]
async fn a_report_is_json_for_machines() {
    let fixture = Fixture::new();
    fixture.challenge(403, "Bearer");
    fixture.fetch.serve(NAMED, 500, "");
    let report: Value = serde_json::to_value(fixture.examine().await).unwrap();
    let step = &report["steps"][0];
    assert_eq!(report["resource"], RESOURCE);
    assert_eq!(step["asked"], json!({"method": "POST", "url": RESOURCE}));
    assert_eq!(step["answered"]["status"], 403);
    assert_eq!(step["findings"][0]["verdict"], "problem");
    assert_eq!(step["findings"][0]["rule"]["id"], "challenge.status");
    assert!(step["findings"][0]["fix"].is_string());

    let cause = &report["first_cause"];
    assert_eq!(cause["url"], json!(RESOURCE));
    assert_eq!(cause["rule"]["id"], "challenge.status");
    assert_eq!(cause["step"], step["title"]);

    let count = |verdict: &str| {
        let findings = report["steps"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|step| step["findings"].as_array().unwrap());
        findings
            .filter(|finding| finding["verdict"] == verdict)
            .count()
    };
    let counts = json!({
        "met": count("met"), "notes": count("note"), "warnings": count("warning"), "problems": count("problem"),
    });
    assert_eq!(report["summary"], counts);
    assert_eq!(
        report["requests"][0]["outcome"],
        "403 Forbidden application/json"
    );

    let good = serde_json::to_value(Fixture::new().examine().await).unwrap();
    assert_eq!(good["first_cause"], Value::Null);
}
