//! The order of the metadata URLs, and the errors that end the search.

use std::{collections::HashMap, sync::Mutex};

use http::HeaderMap;

use super::*;
use crate::UrlPolicy;
use crate::{BoxFuture, FetchError, FetchResponse, NetworkFailure};

const ASKED: &str = "https://mcp.example.com/mcp";
const CHALLENGED: &str = "https://mcp.example.com/meta";
const PATH_FORM: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const ROOT_FORM: &str = "https://mcp.example.com/.well-known/oauth-protected-resource";

/// Responds by URL, or with 404, and records the requests.
#[derive(Default)]
struct Script {
    answers: HashMap<&'static str, Result<(u16, String), FetchError>>,
    asked: Mutex<Vec<(String, UrlPolicy)>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = (&'static str, Result<(u16, String), FetchError>)>) -> Arc<Self> {
        Arc::new(Self { answers: answers.into_iter().collect(), asked: Mutex::default() })
    }

    fn urls(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(url, _)| url.clone()).collect()
    }
}

impl Fetch for Script {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        self.asked.lock().unwrap().push((request.url.to_string(), request.policy));
        let answer = self.answers.get(request.url.as_str()).cloned().unwrap_or(Ok((404, "nothing here".into())));
        Box::pin(async move {
            let (status, body) = answer?;
            let status = StatusCode::from_u16(status).unwrap();
            Ok(FetchResponse { status, headers: HeaderMap::new(), body: body.into() })
        })
    }
}

fn down() -> Result<(u16, String), FetchError> {
    Err(FetchError::network(NetworkFailure::Connect))
}

fn prm(resource: &str) -> Result<(u16, String), FetchError> {
    Ok((200, format!(r#"{{"resource":"{resource}","authorization_servers":["https://auth.example.com"]}}"#)))
}

fn asm(issuer: &str) -> Result<(u16, String), FetchError> {
    Ok((200, format!(r#"{{"issuer":"{issuer}","response_types_supported":["code"]}}"#)))
}

fn challenge() -> BearerChallenge {
    let header = format!("Bearer realm=\"mcp\", resource_metadata=\"{CHALLENGED}\"");
    let challenges = portcullis_metadata::parse_challenges([header.as_bytes()]).unwrap();
    BearerChallenge::from_challenges(&challenges).unwrap()
}

async fn resource(
    script: &Arc<Script>,
    challenge: Option<&BearerChallenge>,
) -> Result<DiscoveredResource, DiscoveryError> {
    let asked = Url::parse(ASKED).unwrap();
    Discovery::new(script.clone(), UrlPolicy::peer_of(&asked)).protected_resource(&asked, challenge, None).await
}

async fn server(script: &Arc<Script>, issuer: &str) -> Result<AuthorizationServerMetadata, DiscoveryError> {
    let issuer = Issuer::parse(issuer).unwrap();
    Discovery::new(script.clone(), UrlPolicy::Operator).authorization_server(&issuer).await
}

/// G1: the challenge's URL is used first and is sufficient.
#[tokio::test]
async fn the_challenge_comes_first() {
    let script = Script::new([(CHALLENGED, prm(ASKED)), (PATH_FORM, down())]);
    let found = resource(&script, Some(&challenge())).await.unwrap();
    assert_eq!(found.from, MetadataSource::Challenge(Url::parse(CHALLENGED).unwrap()));
    assert_eq!(script.urls(), [CHALLENGED]);
}

/// G1: without usable metadata at the challenge's URL, the well-known URL with the path is tried before the one
/// without.
#[tokio::test]
async fn the_path_form_comes_before_the_root_form() {
    let script = Script::new([(ROOT_FORM, prm(ASKED))]);
    let found = resource(&script, Some(&challenge())).await.unwrap();
    assert_eq!(found.from, MetadataSource::WellKnown(Url::parse(ROOT_FORM).unwrap()));
    assert_eq!(script.urls(), [CHALLENGED, PATH_FORM, ROOT_FORM]);

    let script = Script::new([(ROOT_FORM, down()), (PATH_FORM, prm("https://mcp.example.com/"))]);
    let found = resource(&script, None).await.unwrap();
    assert_eq!(found.metadata.resource.as_str(), "https://mcp.example.com/");
    assert_eq!(script.urls(), [PATH_FORM]);
}

/// G1: configured metadata is used last. Otherwise the error lists every URL and its outcome.
#[tokio::test]
async fn configured_values_come_last() {
    let script = Script::new([(PATH_FORM, Ok((200, "<html>".into()))), (CHALLENGED, Ok((302, String::new())))]);
    let Err(DiscoveryError::NotFound(attempts)) = resource(&script, Some(&challenge())).await else { panic!() };
    let listed: Vec<_> = attempts.iter().map(|attempt| (attempt.place.as_str(), attempt.outcome)).collect();
    let found = AttemptOutcome::Status(StatusCode::FOUND);
    let missing = AttemptOutcome::Status(StatusCode::NOT_FOUND);
    assert_eq!(listed, [(CHALLENGED, found), (PATH_FORM, AttemptOutcome::NotJson), (ROOT_FORM, missing)]);
    assert!(
        attempts.to_string().contains(&format!("{PATH_FORM} (not JSON, no content type, body: <html>)")),
        "{attempts}"
    );

    let asked = Url::parse(ASKED).unwrap();
    let configured = ProtectedResourceMetadata::parse(prm(ASKED).unwrap().1.as_bytes()).unwrap();
    let chain = Discovery::new(script, UrlPolicy::peer_of(&asked));
    let found = chain.protected_resource(&asked, None, Some(&configured)).await.unwrap();
    assert_eq!(found.from, MetadataSource::Configured);
}

#[tokio::test]
async fn a_relative_url_in_a_challenge_is_skipped() {
    let mut challenge = challenge();
    challenge.resource_metadata = Some("/meta".into());
    let script = Script::new([]);
    let Err(DiscoveryError::NotFound(attempts)) = resource(&script, Some(&challenge)).await else { panic!() };
    assert_eq!(attempts.iter().next().unwrap().outcome, AttemptOutcome::NotAUrl);
    assert_eq!(script.urls(), [PATH_FORM, ROOT_FORM]);
}

/// G1, G3: a 5xx status, a failed request or a JSON document that is not metadata ends the search.
#[tokio::test]
async fn errors_end_the_search_for_a_resource() {
    for (trouble, code) in [
        (Ok((503, String::new())), "discovery.server_error"),
        (down(), "fetch.connect"),
        (Err(FetchError::Timeout), "fetch.timeout"),
        (Ok((200, "{}".into())), "discovery.document"),
    ] {
        let script = Script::new([(PATH_FORM, trouble), (ROOT_FORM, prm(ASKED))]);
        assert_eq!(resource(&script, None).await.unwrap_err().code(), code);
        assert_eq!(script.urls(), [PATH_FORM]);
    }
}

/// G2: metadata of another resource is rejected from every source.
#[tokio::test]
async fn metadata_of_another_resource_is_rejected() {
    for place in [CHALLENGED, PATH_FORM, ROOT_FORM] {
        let script = Script::new([(place, prm("https://mcp.example.com/other"))]);
        let error = resource(&script, Some(&challenge())).await.unwrap_err();
        assert_eq!(error.code(), "discovery.resource_mismatch", "{place}");
    }
    let asked = Url::parse(ASKED).unwrap();
    let configured = ProtectedResourceMetadata::parse(prm("https://other.example/mcp").unwrap().1.as_bytes()).unwrap();
    let chain = Discovery::new(Script::new([]), UrlPolicy::peer_of(&asked));
    let error = chain.protected_resource(&asked, None, Some(&configured)).await.unwrap_err();
    assert_eq!(error.code(), "discovery.resource_mismatch");
}

/// J2: the error contains no query.
#[tokio::test]
async fn a_mismatch_contains_no_query() {
    let asked = Url::parse("https://mcp.example.com/mcp?key=canary").unwrap();
    let script = Script::new([(ROOT_FORM, prm("https://mcp.example.com/other?key=canary"))]);
    let chain = Discovery::new(script, UrlPolicy::peer_of(&asked));
    let error = chain.protected_resource(&asked, None, None).await.unwrap_err();
    assert_eq!(error.code(), "discovery.resource_mismatch");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

/// G3: the order of the URLs for an issuer with a path. 4xx statuses and other content than JSON are skipped.
#[tokio::test]
async fn the_order_for_an_issuer_with_a_path() {
    const PLACES: [&str; 3] = [
        "https://auth.example.com/.well-known/oauth-authorization-server/realms/prod",
        "https://auth.example.com/.well-known/openid-configuration/realms/prod",
        "https://auth.example.com/realms/prod/.well-known/openid-configuration",
    ];
    const ISSUER: &str = "https://auth.example.com/realms/prod";
    for (index, place) in PLACES.into_iter().enumerate() {
        let mut answers: Vec<_> = PLACES[..index].iter().map(|before| (*before, Ok((200, "<html>".into())))).collect();
        answers.push((place, asm(ISSUER)));
        let script = Script::new(answers);
        assert_eq!(server(&script, ISSUER).await.unwrap().issuer.as_str(), ISSUER);
        assert_eq!(script.urls(), PLACES[..=index]);
    }
    let Err(DiscoveryError::NotFound(attempts)) = server(&Script::new([]), ISSUER).await else { panic!() };
    assert_eq!(attempts.iter().count(), 3);
}

/// G3: the order of the URLs for an issuer without a path.
#[tokio::test]
async fn the_order_for_an_issuer_without_a_path() {
    for issuer in ["https://auth.example.com", "https://auth.example.com/"] {
        let script = Script::new([("https://auth.example.com/.well-known/openid-configuration", asm(issuer))]);
        server(&script, issuer).await.unwrap();
        assert_eq!(script.urls().len(), 2);
        assert_eq!(script.urls()[0], "https://auth.example.com/.well-known/oauth-authorization-server");
    }
}

/// G3: a network error or a 5xx status ends the search.
#[tokio::test]
async fn errors_end_the_search_for_a_server() {
    for (trouble, code) in [(down(), "fetch.connect"), (Ok((500, "{}".into())), "discovery.server_error")] {
        let script = Script::new([
            ("https://auth.example.com/.well-known/oauth-authorization-server", trouble),
            ("https://auth.example.com/.well-known/openid-configuration", asm("https://auth.example.com")),
        ]);
        assert_eq!(server(&script, "https://auth.example.com").await.unwrap_err().code(), code);
        assert_eq!(script.urls().len(), 1);
    }
}

/// G1, G3: an error that ends a search also shows the attempts before it.
#[tokio::test]
async fn earlier_attempts_are_shown() {
    for (trouble, ends) in [(down(), "cannot fetch"), (Ok((500, "{}".into())), "answered 500")] {
        let script = Script::new([
            ("https://auth.example.com/.well-known/oauth-authorization-server", Ok((403, String::new()))),
            ("https://auth.example.com/.well-known/openid-configuration", trouble),
        ]);
        let error = server(&script, "https://auth.example.com").await.unwrap_err().to_string();
        let first = "https://auth.example.com/.well-known/oauth-authorization-server (status 403";
        assert!(error.contains(first), "{error}");
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
            ("https://auth.example.com/.well-known/oauth-authorization-server", asm(found)),
            ("https://auth.example.com/.well-known/openid-configuration", asm("https://auth.example.com")),
        ]);
        let error = server(&script, "https://auth.example.com").await.unwrap_err();
        assert_eq!(error.code(), "discovery.issuer_mismatch", "{found}");
        assert_eq!(script.urls().len(), 1);
    }
}

/// G6, G8: every request has the policy of the discovery, and all fields of the document are available.
#[tokio::test]
async fn requests_have_the_policy() {
    let document = r#"{"issuer":"https://auth.example.com","authorization_endpoint":"https://auth.example.com/a",
        "token_endpoint":"https://auth.example.com/t","registration_endpoint":"https://auth.example.com/r",
        "introspection_endpoint":"https://auth.example.com/i","response_types_supported":["code"]}"#;
    let script = Script::new([(
        "https://auth.example.com/.well-known/oauth-authorization-server",
        Ok((200, document.to_owned())),
    )]);
    let found = server(&script, "https://auth.example.com").await.unwrap();
    let text = |url: Option<Url>| url.unwrap().to_string();
    assert_eq!(text(found.authorization_endpoint), "https://auth.example.com/a");
    assert_eq!(text(found.token_endpoint), "https://auth.example.com/t");
    assert_eq!(text(found.registration_endpoint), "https://auth.example.com/r");
    assert_eq!(text(found.introspection_endpoint), "https://auth.example.com/i");
    assert_eq!(found.response_types_supported, ["code"]);
    assert_eq!(script.asked.lock().unwrap()[0].1, UrlPolicy::Operator);
}

/// G9: metadata with an insecure endpoint of any purpose is rejected, and the search ends.
#[tokio::test]
async fn insecure_endpoints_are_rejected() {
    const FIRST: &str = "https://auth.example.com/.well-known/oauth-authorization-server";
    const SECOND: &str = "https://auth.example.com/.well-known/openid-configuration";
    for member in ["token_endpoint", "introspection_endpoint", "jwks_uri", "device_authorization_endpoint"] {
        let document = format!(r#"{{"issuer":"https://auth.example.com","{member}":"http://auth.example.com/x?a=b"}}"#);
        let script = Script::new([(FIRST, Ok((200, document))), (SECOND, asm("https://auth.example.com"))]);
        let error = server(&script, "https://auth.example.com").await.unwrap_err();
        assert_eq!(error.code(), "discovery.insecure_endpoint");
        let text = format!("an insecure {member}: http://auth.example.com/x; an endpoint must be https");
        assert!(error.to_string().ends_with(&text), "{error}");
        assert_eq!(script.urls(), [FIRST]);
    }
    let loopback = r#"{"issuer":"https://auth.example.com","token_endpoint":"http://127.0.0.1:9/token"}"#;
    let script = Script::new([(FIRST, Ok((200, loopback.to_owned())))]);
    let issuer = Issuer::parse("https://auth.example.com").unwrap();
    for (start, is_fine) in [("http://127.0.0.1:1/mcp", true), (ASKED, false)] {
        let chain = Discovery::new(script.clone(), UrlPolicy::peer_of(&Url::parse(start).unwrap()));
        assert_eq!(chain.authorization_server(&issuer).await.is_ok(), is_fine, "{start}");
    }
}

/// J8: the name of an insecure endpoint is escaped and truncated.
#[tokio::test]
async fn the_name_of_an_insecure_endpoint_is_escaped() {
    const FIRST: &str = "https://auth.example.com/.well-known/oauth-authorization-server";
    let name = format!("\\u001b[2J{}_endpoint", "a".repeat(1000));
    let document = format!(r#"{{"issuer":"https://auth.example.com","{name}":"http://auth.example.com/"}}"#);
    let script = Script::new([(FIRST, Ok((200, document)))]);
    let error = server(&script, "https://auth.example.com").await.unwrap_err().to_string();
    assert!(error.contains(r"\u{1b}[2Ja"), "{error}");
    assert!(error.len() < 250, "{error}");
}
