//! The authorizer: from a challenge to a token, and what ends the flow.

use std::collections::HashMap;

use http::{HeaderValue, Method, header};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use portcullis_metadata::{ProtectedResourceMetadata, UnixTime, authorization::PkceChallenge};
use url::Url;

use super::*;
use crate::testing::{
    FetchFn, ISSUER, METADATA_URL, PRM_URL, REGISTRATION_URL, RESOURCE, Reply, ScriptedUser,
    TOKEN_URL, clock, form, metadata, prm, well_behaved,
};

mod binding;
mod broader_resource;
mod client_authentication;
mod confirming_user;
mod device;
mod discovery;
mod error_responses;
mod forgotten_client;
mod non_interactive;
mod registration;
mod registration_update;
mod unbound;

fn authorizer(
    network: &Arc<FetchFn>,
    user: &Arc<impl Interaction + 'static>,
    settings: AuthorizerSettings,
) -> Authorizer {
    Authorizer::builder(user.clone())
        .fetch(network.clone())
        .clock(clock())
        .settings(settings)
        .build()
        .unwrap()
}

async fn run(
    network: &Arc<FetchFn>,
    user: &Arc<ScriptedUser>,
) -> Result<ResourceToken, ClientError> {
    let start = StartUrl::parse(RESOURCE).unwrap();
    authorizer(network, user, AuthorizerSettings::default())
        .authorize(&start)
        .await
}

/// Returns a network with the responses of `other`, and default responses where that returns
/// `None`.
fn network_with(
    other: impl Fn(&FetchRequest) -> Option<Reply> + Send + Sync + 'static,
) -> Arc<FetchFn> {
    FetchFn::new(move |request| other(request).or_else(|| well_behaved(request)))
}

/// A network whose authorization server has changed metadata.
fn network_with_metadata(
    change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static,
) -> Arc<FetchFn> {
    network_with(move |request| {
        (request.url.as_str() == METADATA_URL).then(|| {
            let mut document = metadata();
            change(&mut document);
            Reply::json(200, document)
        })
    })
}

fn query(url: &Url) -> HashMap<String, String> {
    url.query_pairs().into_owned().collect()
}

/// I1: from a challenge to a token: both requests have the metadata's resource, and the verifier
/// matches the challenge.
#[tokio::test]
async fn a_challenge_leads_to_a_token() {
    let network = FetchFn::new(well_behaved);
    let user = ScriptedUser::consents();
    let token = run(&network, &user).await.unwrap();
    assert_eq!(token.access_token().secret(), "hush");
    assert_eq!(token.issuer().as_str(), ISSUER);
    assert_eq!(token.expires_at(), Some(UnixTime::from_secs(1_300)));

    let authorization = query(&user.last_visit());
    let sent = form(&network.to(TOKEN_URL)[0]);
    assert_eq!(authorization["resource"].as_str(), RESOURCE);
    assert_eq!(sent["resource"].as_str(), RESOURCE);
    assert_eq!(authorization["client_id"].as_str(), "registered");
    assert_eq!(sent["client_id"].as_str(), "registered");
    assert_eq!(authorization["scope"], "mcp:tools");
    assert_eq!(sent["grant_type"], "authorization_code");
    assert_eq!(sent["code"], "the-code");
    assert_eq!(
        authorization["redirect_uri"].as_str(),
        "http://127.0.0.1:7/callback"
    );
    assert_eq!(sent["redirect_uri"].as_str(), "http://127.0.0.1:7/callback");
    assert!(
        PkceChallenge::parse(&authorization["code_challenge"])
            .unwrap()
            .matches(&sent["code_verifier"])
    );

    let urls: Vec<_> = network
        .requests()
        .iter()
        .map(|request| request.url.to_string())
        .collect();
    assert_eq!(
        urls,
        [RESOURCE, PRM_URL, METADATA_URL, REGISTRATION_URL, TOKEN_URL]
    );
}

/// I1, I2: with a wrong state or issuer, or an error, no code is sent.
#[tokio::test]
async fn an_invalid_response_sends_no_code() {
    type Redirect = fn(&str) -> String;
    let redirects: [(Redirect, &str); 5] = [
        (
            |_| "code=c&state=other&iss=https://auth.example.com".into(),
            "redirect.state",
        ),
        (
            |state| format!("code=c&state={state}&iss=https://evil.example"),
            "response.issuer_mismatch",
        ),
        (
            |state| format!("code=c&state={state}"),
            "response.issuer_missing",
        ),
        (
            |state| format!("error=access_denied&state={state}&iss=https://auth.example.com"),
            "redirect.denied",
        ),
        (
            |state| format!("state={state}&iss=https://auth.example.com"),
            "redirect.no_code",
        ),
    ];
    for (redirect, code) in redirects {
        let network = FetchFn::new(well_behaved);
        let user = ScriptedUser::responds(redirect);
        assert_eq!(run(&network, &user).await.unwrap_err().code(), code);
        assert!(network.to(TOKEN_URL).is_empty());
    }
}

/// A token of another type and an invalid response are rejected; the server's error is returned.
#[tokio::test]
async fn an_invalid_token_response_is_rejected() {
    for (status, body, code) in [
        (
            200,
            r#"{"access_token":"hush","token_type":"DPoP"}"#,
            "client.token_type",
        ),
        (200, r#"{"access_token":"hush"}"#, "client.document"),
        (200, "<html>", "client.document"),
        (400, r#"{"error":"invalid_grant"}"#, "client.token"),
        (502, "<html>", "client.status"),
        (
            302,
            r#"{"access_token":"hush","token_type":"Bearer"}"#,
            "client.status",
        ),
    ] {
        let network = network_with(move |request| {
            (request.url.as_str() == TOKEN_URL).then(|| Reply::json(status, body))
        });
        let error = run(&network, &ScriptedUser::consents()).await.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(!format!("{error} {error:?}").contains("hush"));
    }
}

/// The scopes of the settings replace those of the challenge.
#[tokio::test]
async fn the_settings_can_set_the_scopes() {
    let network = FetchFn::new(well_behaved);
    let user = ScriptedUser::consents();
    let scopes = Some(Scopes::parse("mine only").unwrap());
    let settings = AuthorizerSettings {
        scopes,
        ..AuthorizerSettings::default()
    };
    authorizer(&network, &user, settings)
        .authorize(&StartUrl::parse(RESOURCE).unwrap())
        .await
        .unwrap();
    assert_eq!(query(&user.last_visit())["scope"], "mine only");
}

/// If the scopes of the settings are a limit, neither a challenge nor an earlier sign-in adds to
/// them.
#[tokio::test]
async fn the_settings_can_limit_the_scopes() {
    for (scopes_are_limit, expected) in [(true, "mine only"), (false, "mine only more")] {
        let network = FetchFn::new(well_behaved);
        let user = ScriptedUser::consents();
        let scopes = Some(Scopes::parse("mine only").unwrap());
        let settings = AuthorizerSettings {
            scopes,
            scopes_are_limit,
            ..AuthorizerSettings::default()
        };
        let authorizer = authorizer(&network, &user, settings);
        let start = StartUrl::parse(RESOURCE).unwrap();
        let more = Scopes::parse("more").unwrap();
        let challenge = authorizer.probe(&start).await.unwrap().with_scopes(&more);
        let found = authorizer.discover(&start, &challenge).await.unwrap();
        assert_eq!(found.scopes, Scopes::parse(expected).unwrap());
        assert_eq!(authorizer.may_request(&more), !scopes_are_limit);
        assert!(authorizer.may_request(&Scopes::parse("mine").unwrap()));
    }
}
