//! The order of the metadata URLs, and the errors that end the search.

use std::collections::HashMap;

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use portcullis_metadata::BearerChallenge;

use super::*;
use crate::{BoxFuture, FetchError, FetchResponse, NetworkFailure, UrlPolicy};

const ASKED: &str = "https://mcp.example.com/mcp";
const CHALLENGED: &str = "https://mcp.example.com/meta";
const PATH_FORM: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const ROOT_FORM: &str = "https://mcp.example.com/.well-known/oauth-protected-resource";
const SERVER: &str = "https://auth.example.com";
const OAUTH_FORM: &str = "https://auth.example.com/.well-known/oauth-authorization-server";
const OPENID_FORM: &str = "https://auth.example.com/.well-known/openid-configuration";

/// The status and body of a response, or why there is none.
type Answer = Result<(u16, String), FetchError>;

/// Responds by URL, or with 404, and records the requests.
#[derive(Default)]
struct Script {
    answers: HashMap<&'static str, Answer>,
    asked: Mutex<Vec<(String, UrlPolicy)>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = (&'static str, Answer)>) -> Arc<Self> {
        Arc::new(Self {
            answers: answers.into_iter().collect(),
            asked: Mutex::default(),
        })
    }

    fn urls(&self) -> Vec<String> {
        self.asked
            .lock()
            .iter()
            .map(|(url, _)| url.clone())
            .collect()
    }
}

impl Fetch for Script {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        self.asked
            .lock()
            .push((request.url.to_string(), request.policy));
        let answer = self
            .answers
            .get(request.url.as_str())
            .cloned()
            .unwrap_or(Ok((404, "nothing here".into())));
        Box::pin(async move {
            let (status, body) = answer?;
            let status = StatusCode::from_u16(status).unwrap();
            Ok(FetchResponse {
                status,
                headers: HeaderMap::new(),
                body: body.into(),
                sent: Default::default(),
            })
        })
    }
}

/// The answer of a server that cannot be reached.
fn unreachable_answer() -> Answer {
    Err(FetchError::network(NetworkFailure::Connect))
}

/// The metadata of this resource.
fn resource_document(resource: &str) -> Answer {
    Ok((
        200,
        format!(
            r#"{{"resource":"{resource}","authorization_servers":["https://auth.example.com"]}}"#
        ),
    ))
}

/// The metadata of the authorization server with this issuer.
fn server_document(issuer: &str) -> Answer {
    Ok((
        200,
        format!(r#"{{"issuer":"{issuer}","response_types_supported":["code"]}}"#),
    ))
}

/// A challenge that names [`CHALLENGED`].
fn challenge() -> BearerChallenge {
    let header = format!("Bearer realm=\"mcp\", resource_metadata=\"{CHALLENGED}\"");
    let challenges = portcullis_metadata::parse_challenges([header.as_bytes()]).unwrap();
    BearerChallenge::from_challenges(&challenges).unwrap()
}

/// Finds the metadata of [`ASKED`].
async fn resource(
    script: &Arc<Script>,
    challenge: Option<&BearerChallenge>,
) -> Result<DiscoveredResource, DiscoveryError> {
    let asked = Url::parse(ASKED).unwrap();
    Discovery::new(script.clone(), UrlPolicy::peer_of(&asked))
        .protected_resource(&asked, ResourceOptions::default().challenge(challenge))
        .await
}

/// Finds the metadata of an authorization server.
async fn server(
    script: &Arc<Script>,
    issuer: &str,
) -> Result<AuthorizationServerMetadata, DiscoveryError> {
    let issuer = Issuer::parse(issuer).unwrap();
    Discovery::new(script.clone(), UrlPolicy::Operator)
        .authorization_server(&issuer)
        .await
}

/// Returns the attempts of a search that found nothing.
fn attempts_of<T>(result: Result<T, DiscoveryError>) -> Attempts {
    match result {
        Err(DiscoveryError::NotFound(attempts)) => attempts,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("metadata was found"),
    }
}

/// G1: the challenge's URL is used first and is sufficient.
#[tokio::test]
async fn the_challenge_comes_first() {
    let script = Script::new([
        (CHALLENGED, resource_document(ASKED)),
        (PATH_FORM, unreachable_answer()),
    ]);
    let found = resource(&script, Some(&challenge())).await.unwrap();
    assert_eq!(
        found.from,
        MetadataSource::Challenge(Url::parse(CHALLENGED).unwrap())
    );
    assert_eq!(script.urls(), [CHALLENGED]);
}

/// G1: without usable metadata at the challenge's URL, the well-known URL with the path is tried
/// before the one without.
#[tokio::test]
async fn the_path_form_comes_before_the_root_form() {
    let script = Script::new([(ROOT_FORM, resource_document(ASKED))]);
    let found = resource(&script, Some(&challenge())).await.unwrap();
    assert_eq!(
        found.from,
        MetadataSource::WellKnown(Url::parse(ROOT_FORM).unwrap())
    );
    assert_eq!(script.urls(), [CHALLENGED, PATH_FORM, ROOT_FORM]);

    let script = Script::new([
        (ROOT_FORM, unreachable_answer()),
        (PATH_FORM, resource_document("https://mcp.example.com/")),
    ]);
    let found = resource(&script, None).await.unwrap();
    assert_eq!(found.metadata.resource.as_str(), "https://mcp.example.com/");
    assert_eq!(found.resource_match, ResourceMatch::PathPrefix);
    assert_eq!(script.urls(), [PATH_FORM]);
}

/// G1: without metadata, the error lists every URL and its outcome.
#[tokio::test]
async fn the_error_lists_every_attempt() {
    let script = Script::new([
        (PATH_FORM, Ok((200, "<html>".into()))),
        (CHALLENGED, Ok((302, String::new()))),
    ]);
    let attempts = attempts_of(resource(&script, Some(&challenge())).await);
    let listed: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.place.as_str(), attempt.outcome))
        .collect();
    let found = AttemptOutcome::Status(StatusCode::FOUND);
    let missing = AttemptOutcome::Status(StatusCode::NOT_FOUND);
    assert_eq!(
        listed,
        [
            (CHALLENGED, found),
            (PATH_FORM, AttemptOutcome::NotJson),
            (ROOT_FORM, missing)
        ]
    );
    assert!(
        attempts.to_string().contains(&format!(
            "{PATH_FORM} (not JSON, no content type, body: <html>)"
        )),
        "{attempts}"
    );
}

/// G1: configured metadata is used last.
#[tokio::test]
async fn configured_values_come_last() {
    let script = Script::new([]);
    let asked = Url::parse(ASKED).unwrap();
    let configured =
        ProtectedResourceMetadata::parse(resource_document(ASKED).unwrap().1.as_bytes()).unwrap();
    let discovery = Discovery::new(script.clone(), UrlPolicy::peer_of(&asked));
    let found = discovery
        .protected_resource(&asked, ResourceOptions::default().configured(&configured))
        .await
        .unwrap();
    assert_eq!(found.from, MetadataSource::Configured);
    assert_eq!(script.urls(), [PATH_FORM, ROOT_FORM]);
}

#[tokio::test]
async fn a_relative_url_in_a_challenge_is_skipped() {
    let mut challenge = challenge();
    challenge.resource_metadata = Some("/meta".into());
    let script = Script::new([]);
    let attempts = attempts_of(resource(&script, Some(&challenge)).await);
    assert_eq!(
        attempts.iter().next().unwrap().outcome,
        AttemptOutcome::NotAUrl
    );
    assert_eq!(script.urls(), [PATH_FORM, ROOT_FORM]);
}

/// G1: a 5xx status, a failed request or a JSON document that is not metadata ends the search.
#[tokio::test]
async fn errors_end_the_search_for_a_resource() {
    for (trouble, code) in [
        (Ok((503, String::new())), "discovery.server_error"),
        (unreachable_answer(), "fetch.connect"),
        (Err(FetchError::Timeout), "fetch.timeout"),
        (Ok((200, "{}".into())), "discovery.document"),
    ] {
        let script = Script::new([(PATH_FORM, trouble), (ROOT_FORM, resource_document(ASKED))]);
        assert_eq!(resource(&script, None).await.unwrap_err().code(), code);
        assert_eq!(script.urls(), [PATH_FORM]);
    }
}

/// G2: metadata of another resource is rejected from every source.
#[tokio::test]
async fn metadata_of_another_resource_is_rejected() {
    for place in [CHALLENGED, PATH_FORM, ROOT_FORM] {
        let script = Script::new([(place, resource_document("https://mcp.example.com/other"))]);
        let error = resource(&script, Some(&challenge())).await.unwrap_err();
        assert_eq!(error.code(), "discovery.resource_mismatch", "{place}");
    }
    let asked = Url::parse(ASKED).unwrap();
    let configured = ProtectedResourceMetadata::parse(
        resource_document("https://other.example/mcp")
            .unwrap()
            .1
            .as_bytes(),
    )
    .unwrap();
    let discovery = Discovery::new(Script::new([]), UrlPolicy::peer_of(&asked));
    let error = discovery
        .protected_resource(&asked, ResourceOptions::default().configured(&configured))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "discovery.resource_mismatch");
}

/// J2: the error contains no query.
#[tokio::test]
async fn a_mismatch_contains_no_query() {
    let asked = Url::parse("https://mcp.example.com/mcp?key=canary").unwrap();
    let script = Script::new([(
        ROOT_FORM,
        resource_document("https://mcp.example.com/other?key=canary"),
    )]);
    let discovery = Discovery::new(script, UrlPolicy::peer_of(&asked));
    let error = discovery
        .protected_resource(&asked, ResourceOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "discovery.resource_mismatch");
    assert!(
        !format!("{error} {error:?}").contains("canary"),
        "{error:?}"
    );
}

/// G3: the order of the URLs for an issuer with a path. 4xx statuses and other content than JSON
/// are skipped.
#[tokio::test]
async fn the_order_for_an_issuer_with_a_path() {
    const PLACES: [&str; 3] = [
        "https://auth.example.com/.well-known/oauth-authorization-server/realms/prod",
        "https://auth.example.com/.well-known/openid-configuration/realms/prod",
        "https://auth.example.com/realms/prod/.well-known/openid-configuration",
    ];
    const ISSUER: &str = "https://auth.example.com/realms/prod";
    for (index, place) in PLACES.into_iter().enumerate() {
        let mut answers: Vec<_> = PLACES[..index]
            .iter()
            .map(|before| (*before, Ok((200, "<html>".into()))))
            .collect();
        answers.push((place, server_document(ISSUER)));
        let script = Script::new(answers);
        assert_eq!(
            server(&script, ISSUER).await.unwrap().issuer.as_str(),
            ISSUER
        );
        assert_eq!(script.urls(), PLACES[..=index]);
    }
    let attempts = attempts_of(server(&Script::new([]), ISSUER).await);
    let places: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt.place.as_str())
        .collect();
    assert_eq!(places, PLACES);
}

/// G3: the order of the URLs for an issuer without a path.
#[tokio::test]
async fn the_order_for_an_issuer_without_a_path() {
    for issuer in [SERVER, "https://auth.example.com/"] {
        let script = Script::new([(OPENID_FORM, server_document(issuer))]);
        server(&script, issuer).await.unwrap();
        assert_eq!(script.urls(), [OAUTH_FORM, OPENID_FORM]);
    }
}

/// G3: a 5xx status, a failed request or a JSON document that is not metadata ends the search.
#[tokio::test]
async fn errors_end_the_search_for_a_server() {
    for (trouble, code) in [
        (unreachable_answer(), "fetch.connect"),
        (Ok((500, "{}".into())), "discovery.server_error"),
        (Ok((200, "{}".into())), "discovery.document"),
    ] {
        let script = Script::new([
            (OAUTH_FORM, trouble),
            (OPENID_FORM, server_document(SERVER)),
        ]);
        assert_eq!(server(&script, SERVER).await.unwrap_err().code(), code);
        assert_eq!(script.urls(), [OAUTH_FORM]);
    }
}

/// G3: an error that ends the search for a server also shows the attempts before it.
#[tokio::test]
async fn earlier_attempts_are_shown() {
    for (trouble, ends) in [
        (unreachable_answer(), "cannot fetch"),
        (Ok((500, "{}".into())), "answered 500"),
    ] {
        let script = Script::new([
            (OAUTH_FORM, Ok((403, String::new()))),
            (OPENID_FORM, trouble),
        ]);
        let error = server(&script, SERVER).await.unwrap_err().to_string();
        let first = format!("{OAUTH_FORM} (status 403");
        assert!(error.contains(&first), "{error}");
        assert!(error.contains(ends), "{error}");
        assert!(error.contains("openid-configuration"), "{error}");
    }
}

/// G4: a document of another issuer, even a similar one, ends the search.
#[tokio::test]
async fn another_issuer_ends_the_search() {
    for found in [
        "https://auth.example.com/",
        "https://AUTH.example.com",
        "https://auth.example.com:443",
        "https://evil.example",
    ] {
        let script = Script::new([
            (OAUTH_FORM, server_document(found)),
            (OPENID_FORM, server_document(SERVER)),
        ]);
        let error = server(&script, SERVER).await.unwrap_err();
        assert_eq!(error.code(), "discovery.issuer_mismatch", "{found}");
        assert_eq!(script.urls(), [OAUTH_FORM]);
    }
}

/// G6: every request has the policy of the discovery.
#[tokio::test]
async fn every_request_has_the_policy() {
    let asked = Url::parse(ASKED).unwrap();
    let issuer = Issuer::parse(SERVER).unwrap();
    for policy in [UrlPolicy::Operator, UrlPolicy::peer_of(&asked)] {
        let script = Script::new([]);
        let discovery = Discovery::new(script.clone(), policy);
        attempts_of(
            discovery
                .protected_resource(&asked, ResourceOptions::default().challenge(&challenge()))
                .await,
        );
        attempts_of(discovery.authorization_server(&issuer).await);
        let expected = [CHALLENGED, PATH_FORM, ROOT_FORM, OAUTH_FORM, OPENID_FORM]
            .map(|url| (url.to_owned(), policy));
        assert_eq!(*script.asked.lock(), expected);
    }
}

/// G8: all fields of the document are available.
#[tokio::test]
async fn all_fields_are_available() {
    let document = r#"{"issuer":"https://auth.example.com","authorization_endpoint":"https://auth.example.com/a",
        "token_endpoint":"https://auth.example.com/t","registration_endpoint":"https://auth.example.com/r",
        "introspection_endpoint":"https://auth.example.com/i","response_types_supported":["code"]}"#;
    let script = Script::new([(OAUTH_FORM, Ok((200, document.to_owned())))]);
    let found = server(&script, SERVER).await.unwrap();
    let text = |url: Option<Url>| url.unwrap().to_string();
    assert_eq!(
        text(found.authorization_endpoint),
        "https://auth.example.com/a"
    );
    assert_eq!(text(found.token_endpoint), "https://auth.example.com/t");
    assert_eq!(
        text(found.registration_endpoint),
        "https://auth.example.com/r"
    );
    assert_eq!(
        text(found.introspection_endpoint),
        "https://auth.example.com/i"
    );
    assert_eq!(found.response_types_supported, ["code"]);
}

/// G9: metadata with an insecure endpoint of any purpose is rejected, and the search ends.
#[tokio::test]
async fn insecure_endpoints_are_rejected() {
    for member in [
        "token_endpoint",
        "introspection_endpoint",
        "jwks_uri",
        "device_authorization_endpoint",
    ] {
        let document = format!(
            r#"{{"issuer":"https://auth.example.com","{member}":"http://auth.example.com/x?a=b"}}"#
        );
        let script = Script::new([
            (OAUTH_FORM, Ok((200, document))),
            (OPENID_FORM, server_document(SERVER)),
        ]);
        let error = server(&script, SERVER).await.unwrap_err();
        assert_eq!(error.code(), "discovery.insecure_endpoint");
        let text =
            format!("an insecure {member}: http://auth.example.com/x; an endpoint must be https");
        assert!(error.to_string().ends_with(&text), "{error}");
        assert_eq!(script.urls(), [OAUTH_FORM]);
    }
    let loopback =
        r#"{"issuer":"https://auth.example.com","token_endpoint":"http://127.0.0.1:9/token"}"#;
    let script = Script::new([(OAUTH_FORM, Ok((200, loopback.to_owned())))]);
    let issuer = Issuer::parse(SERVER).unwrap();
    for (start, is_fine) in [("http://127.0.0.1:1/mcp", true), (ASKED, false)] {
        let discovery = Discovery::new(
            script.clone(),
            UrlPolicy::peer_of(&Url::parse(start).unwrap()),
        );
        assert_eq!(
            discovery.authorization_server(&issuer).await.is_ok(),
            is_fine,
            "{start}"
        );
    }
}

/// J8: the name of an insecure endpoint is escaped and truncated.
#[tokio::test]
async fn the_name_of_an_insecure_endpoint_is_escaped() {
    let name = format!("\\u001b[2J{}_endpoint", "a".repeat(1000));
    let document =
        format!(r#"{{"issuer":"https://auth.example.com","{name}":"http://auth.example.com/"}}"#);
    let script = Script::new([(OAUTH_FORM, Ok((200, document)))]);
    let error = server(&script, SERVER).await.unwrap_err().to_string();
    assert!(error.contains(r"\u{1b}[2Ja"), "{error}");
    assert!(error.len() < 250, "{error}");
}

/// The trace has every URL up to the one that ends the search, with its response.
#[tokio::test]
async fn a_search_reports_each_url() {
    let page = || Ok((200, "<html>".to_owned()));
    let another = "https://other.example.com";
    for (answers, expected) in [
        (vec![], "absent, absent"),
        (
            vec![
                (OAUTH_FORM, page()),
                (OPENID_FORM, server_document(another)),
            ],
            "absent, document",
        ),
        (vec![(OAUTH_FORM, server_document(SERVER))], "document"),
        (vec![(OAUTH_FORM, Ok((503, String::new())))], "server error"),
        (vec![(OAUTH_FORM, Ok((200, "{}".to_owned())))], "malformed"),
        (vec![(OAUTH_FORM, unreachable_answer())], "no response"),
    ] {
        let discovery = Discovery::new(Script::new(answers), UrlPolicy::Operator);
        let issuer = Issuer::parse(SERVER).unwrap();
        let mut search = discovery.search_authorization_server(&issuer);
        let mut seen = Vec::new();
        while let Some(lookup) = search.next().await {
            assert_eq!(lookup.url.as_str(), [OAUTH_FORM, OPENID_FORM][seen.len()]);
            assert_eq!(lookup.is_last, seen.len() == 1);
            seen.push(match lookup.result.map(|found| found.content) {
                Ok(LookupContent::Document(_)) => "document",
                Ok(LookupContent::Absent) => "absent",
                Ok(LookupContent::ServerError) => "server error",
                Ok(LookupContent::Malformed(_)) => "malformed",
                Err(_) => "no response",
            });
        }
        assert_eq!(seen.join(", "), expected);
    }
}
