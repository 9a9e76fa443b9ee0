//! Attacks on the sign-in at the provider, and by it (PR).

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use portcullis_broker::BrokerSettings;
use portcullis_discovery::FetchResponse;
use portcullis_guard::authorize::{ClaimRule, ClaimTest};
use portcullis_identity_provider::ProviderKind;
use portcullis_testkit::{TestIssuer, TokenBuilder};
use serde_json::{Value, json};
use url::Url;

use crate::{
    log::Log,
    support::{
        Browser, Client, ISSUER, PROVIDER, Setup, json_of, location, param, provider, reference_of,
        text_of,
    },
};

const OTHER: &str = "https://other.example";

pub(crate) fn two_providers(settings: &mut BrokerSettings) {
    settings
        .providers
        .push(provider("other", ProviderKind::Oidc, OTHER));
}

pub(crate) fn rule(claim: &str, values: &[&str]) -> ClaimRule {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    ClaimRule::new(claim, ClaimTest::OneOf(values)).unwrap()
}

/// Follows a sign-in to the redirect to the client. Returns its error, or `None` if it has a code.
pub(crate) async fn outcome(setup: &Setup) -> Option<String> {
    let client = setup.client().await;
    let target = Browser::new(setup).sign_in(&client).await;
    assert!(target.as_str().starts_with(&client.redirect_uri));
    assert_eq!(param(&target, "iss").as_deref(), Some(ISSUER));
    assert_eq!(param(&target, "state").as_deref(), Some("client-state"));
    let error = param(&target, "error");
    assert_eq!(param(&target, "code").is_some(), error.is_none());
    error
}

async fn at_provider(browser: &mut Browser<'_>, client: &Client) -> Url {
    let page = browser.authorize(&client.request()).await;
    browser.approve(&page).await
}

fn error_at_client(response: &Response<Bytes>) -> Option<String> {
    let target = location(response);
    assert!(
        target
            .as_str()
            .starts_with("http://127.0.0.1:4321/callback?")
    );
    assert_eq!(param(&target, "code"), None);
    param(&target, "error")
}

/// PR1: the code of the provider is sent with the verifier of this sign-in, and its ID token must
/// have the nonce of it.
#[tokio::test]
async fn a_code_of_another_sign_in() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut victim = Browser::new(&setup);
    at_provider(&mut victim, &client).await;
    let nonce_of_victim = setup.provider.nonce.lock().clone();
    let mut attacker = Browser::new(&setup);
    let url = at_provider(&mut attacker, &client).await;
    // The provider answers with what it issued to the victim.
    *setup.provider.nonce.lock() = nonce_of_victim;
    let response = attacker.return_from(&url).await;
    assert!(error_at_client(&response).is_some());
    let requests = setup.network.requests(setup.provider.endpoint("token"));
    let form = portcullis_testkit::form(&requests[0]);
    assert!(form["code_verifier"].len() >= 43);
    assert_eq!(
        form["redirect_uri"],
        "https://mcp.example.com/oauth/callback/idp"
    );
    let challenge = param(&url, "code_challenge").unwrap();
    let verifier = portcullis_metadata::authorization::PkceChallenge::parse(&challenge).unwrap();
    assert!(verifier.matches(&form["code_verifier"]));
}

/// PR1: the callback answers only a `state` of this server, once, with a code.
#[tokio::test]
async fn callbacks_that_were_not_requested() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let url = at_provider(&mut browser, &client).await;
    let state = param(&url, "state").unwrap();
    for params in [
        vec![("code", "a")],
        vec![("code", "a"), ("state", "")],
        vec![("code", "a"), ("state", "unknown")],
        vec![("code", "a"), ("state", "client-state")],
        vec![("code", "a"), ("state", &state[1..])],
        vec![("code", "a"), ("state", &state), ("state", &state)],
        vec![("error", "access_denied"), ("state", "unknown")],
    ] {
        let response = browser.callback(&params).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{params:?}");
        assert!(!response.headers().contains_key("location"));
    }
    assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 0);
    assert_eq!(
        browser.return_from(&url).await.status(),
        StatusCode::SEE_OTHER
    );
    let again = browser.return_from(&url).await;
    assert_eq!(again.status(), StatusCode::BAD_REQUEST);
    assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 1);
}

/// PR1: a callback with two codes, or none, is not completed.
#[tokio::test]
async fn callbacks_with_ambiguous_parameters() {
    for extra in [
        vec![],
        vec![("code", "a"), ("code", "b")],
        vec![("code", "a"), ("error", "access_denied")],
        vec![("code", "a"), ("error", "a"), ("error", "b")],
        vec![("code", "a"), ("iss", PROVIDER), ("iss", OTHER)],
    ] {
        let setup = Setup::new();
        let client = setup.client().await;
        let mut browser = Browser::new(&setup);
        let url = at_provider(&mut browser, &client).await;
        let state = param(&url, "state").unwrap();
        let mut params = vec![("state", state.as_str())];
        params.extend(&extra);
        let response = browser.callback(&params).await;
        assert!(error_at_client(&response).is_some(), "{extra:?}");
        assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 0);
    }
}

/// PR2: the answer of one provider at the redirect URI of another is refused.
#[tokio::test]
async fn a_mix_up_of_two_providers() {
    let setup = Setup::with(two_providers);
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let url = at_provider(&mut browser, &client).await;
    browser.provider = "other";
    let response = browser.return_from(&url).await;
    assert_eq!(error_at_client(&response).as_deref(), Some("access_denied"));
    for provider in &setup.providers {
        assert_eq!(setup.network.hits(provider.endpoint("token")), 0);
    }
    // The same with the names of the issuers.
    for (iss, expected) in [
        (PROVIDER, None),
        (OTHER, Some("access_denied")),
        ("https://idp.example/", Some("access_denied")),
        ("https://IDP.example", Some("access_denied")),
    ] {
        let mut browser = Browser::new(&setup);
        let url = at_provider(&mut browser, &client).await;
        let state = param(&url, "state").unwrap();
        let params = [("code", "a"), ("state", state.as_str()), ("iss", iss)];
        let response = browser.callback(&params).await;
        let error = param(&location(&response), "error");
        assert_eq!(error.as_deref(), expected, "{iss}");
    }
}

/// PR2: an error of another provider is not taken for one of this provider (RFC 9207 section 2.4).
#[tokio::test]
async fn an_error_of_another_provider() {
    let setup = Setup::with(two_providers);
    let client = setup.client().await;
    for (iss, expected, code) in [
        (PROVIDER, "temporarily_unavailable", "provider.unreachable"),
        (OTHER, "access_denied", "provider.issuer_mismatch"),
    ] {
        let mut browser = Browser::new(&setup);
        let url = at_provider(&mut browser, &client).await;
        let state = param(&url, "state").unwrap();
        let params = [
            ("error", "temporarily_unavailable"),
            ("state", state.as_str()),
            ("iss", iss),
        ];
        let response = browser.callback(&params).await;
        assert_eq!(error_at_client(&response).as_deref(), Some(expected));
        assert!(setup.events.contains(code), "{iss}: {code}");
    }
}

/// PR2: a provider that announces `iss` sends it with errors as well.
#[tokio::test]
async fn an_error_without_the_announced_issuer() {
    let setup = Setup::new();
    let metadata = setup.provider.issuer.metadata_json();
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["authorization_response_iss_parameter_supported"] = json!(true);
    for path in ["openid-configuration", "oauth-authorization-server"] {
        let url = format!("{PROVIDER}/.well-known/{path}");
        setup.network.serve(url, 200, metadata.to_string());
    }
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let url = at_provider(&mut browser, &client).await;
    let state = param(&url, "state").unwrap();
    let params = [("error", "server_error"), ("state", state.as_str())];
    let response = browser.callback(&params).await;
    assert_eq!(error_at_client(&response).as_deref(), Some("access_denied"));
    assert!(setup.events.contains("provider.issuer_mismatch"));
}

/// PR3: an ID token of another client, issuer, sign-in, key or time signs no user in.
#[tokio::test]
async fn forged_id_tokens() {
    type Forge = Box<dyn Fn(TokenBuilder) -> String + Send>;
    let foreign = TestIssuer::new(OTHER).key();
    let attacker = TestIssuer::new(OTHER).key();
    let attacks: Vec<(&str, Forge)> = vec![
        ("aud", Box::new(|token| token.audience("other").sign())),
        ("resource", Box::new(|token| token.audience(ISSUER).sign())),
        (
            "several audiences",
            Box::new(|token| token.audience(json!(["broker-at-idp", "other"])).sign()),
        ),
        ("no aud", Box::new(|token| token.without("aud").sign())),
        ("azp", Box::new(|token| token.claim("azp", "other").sign())),
        (
            "nonce",
            Box::new(|token| token.claim("nonce", "other").sign()),
        ),
        ("no nonce", Box::new(|token| token.without("nonce").sign())),
        ("iss", Box::new(|token| token.issuer(OTHER).sign())),
        (
            "slash",
            Box::new(|token| token.issuer("https://idp.example/").sign()),
        ),
        ("expired", Box::new(|token| token.expires_in(-3600).sign())),
        ("no exp", Box::new(|token| token.without("exp").sign())),
        ("future", Box::new(|token| token.issued_in(3600).sign())),
        ("no sub", Box::new(|token| token.without("sub").sign())),
        ("empty sub", Box::new(|token| token.subject("").sign())),
        ("none", Box::new(|token| token.unsigned("none"))),
        ("None", Box::new(|token| token.unsigned("None"))),
        (
            "foreign key",
            Box::new(move |token| token.signed_by(foreign.clone()).sign()),
        ),
        (
            "key in the header",
            Box::new(move |token| token.self_signed(&attacker)),
        ),
        (
            "confusion",
            Box::new(|token| token.hmac_with_public_key().remove(0)),
        ),
        ("access token", Box::new(|token| token.typ("at+jwt").sign())),
        (
            "logout token",
            Box::new(|token| token.typ("logout+jwt").sign()),
        ),
        ("not a token", Box::new(|_| "a.b.c".to_owned())),
        ("empty", Box::new(|_| String::new())),
    ];
    for (name, forge) in attacks {
        let setup = Setup::new();
        *setup.provider.sign.lock() = forge;
        assert!(outcome(&setup).await.is_some(), "{name}");
        assert!(!setup.events.contains("SignedIn"), "{name}");
    }
    let setup = Setup::new();
    *setup.provider.response.lock() = json!({ "id_token": null });
    assert!(outcome(&setup).await.is_some(), "no ID token");
}

/// PR7: errors and texts of the provider do not reach the client.
#[tokio::test]
async fn the_error_text_of_the_provider() {
    for (error, expected) in [
        ("access_denied", "access_denied"),
        ("consent_required", "access_denied"),
        ("server_error", "server_error"),
        ("temporarily_unavailable", "temporarily_unavailable"),
        ("invalid_client_secret_abc", "server_error"),
        ("<script>", "server_error"),
    ] {
        let setup = Setup::new();
        let client = setup.client().await;
        let mut browser = Browser::new(&setup);
        let url = at_provider(&mut browser, &client).await;
        let state = param(&url, "state").unwrap();
        let params = [
            ("state", state.as_str()),
            ("error", error),
            ("error_description", "canary text"),
            ("error_uri", "https://idp.example/canary"),
        ];
        let response = browser.callback(&params).await;
        let target = response.headers()["location"].to_str().unwrap();
        assert!(
            !target.contains("canary") && !target.contains("%3C"),
            "{target}"
        );
        assert!(!target.contains("idp.example"), "{target}");
        assert_eq!(
            error_at_client(&response).as_deref(),
            Some(expected),
            "{error}"
        );
    }
    for (status, expected) in [(500, "temporarily_unavailable"), (400, "access_denied")] {
        let setup = Setup::new();
        let body = json!({ "error": "invalid_grant", "error_description": "canary" });
        let token = setup.provider.endpoint("token");
        setup.network.serve(token, status, body.to_string());
        let client = setup.client().await;
        let target = Browser::new(&setup).sign_in(&client).await;
        assert!(!target.as_str().contains("canary"));
        assert_eq!(param(&target, "error").as_deref(), Some(expected));
    }
}

/// A user learns whether the sign-in was not completed or this account may not use the server, and
/// what to do, but not the rule. One line of the log has the reference that the user sees.
#[tokio::test]
async fn a_user_learns_what_to_do() {
    let (log, _guard) = Log::here();
    let setup = Setup::with(|settings| {
        settings.providers[0].allow = vec![rule("department", &["secret-project"])];
    });
    let client = setup.client().await;
    for (params, code, words) in [
        (
            Some(("error", "access_denied")),
            "provider.denied",
            ["not completed at the identity provider", "start again"],
        ),
        (
            None,
            "broker.user_not_allowed",
            ["another account", "ask the operator"],
        ),
        (
            Some(("error", "server_error")),
            "provider.error",
            ["answered with an error", "tell the operator"],
        ),
    ] {
        let before = log.lines().len();
        let mut browser = Browser::new(&setup);
        let url = at_provider(&mut browser, &client).await;
        let response = match params {
            Some(error) => {
                let state = param(&url, "state").unwrap();
                browser.callback(&[("state", state.as_str()), error]).await
            }
            None => browser.return_from(&url).await,
        };
        let description = param(&location(&response), "error_description").unwrap();
        for word in words {
            assert!(description.contains(word), "{code}: {description}");
        }
        assert!(!description.contains("department") && !description.contains("secret"));
        let lines = log.lines().split_off(before);
        let about: Vec<_> = lines.iter().filter(|line| line.contains(code)).collect();
        assert_eq!(about.len(), 1, "{lines:?}");
        assert!(about[0].contains(reference_of(&description)), "{about:?}");
    }
}

/// PR8: no response, event or page contains a token of the provider.
#[tokio::test]
async fn a_token_of_the_provider_in_a_response() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let continuing = browser.decide(&page, "allow:idp").await;
    let url = crate::support::continued(&continuing);
    *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
    let returned = browser.return_from(&url).await;
    let code = param(&location(&returned), "code").unwrap();
    let exchanged = setup.exchange(&client, &code).await;
    let refresh_token = json_of(&exchanged)["refresh_token"].clone();
    setup.pass(setup.settings.lifetimes.recheck);
    let refreshed = setup
        .refresh(&client, refresh_token.as_str().unwrap())
        .await;
    assert_eq!(refreshed.status(), StatusCode::OK);
    for response in [page, continuing, returned, exchanged, refreshed] {
        let all = format!("{:?} {}", response.headers(), text_of(&response));
        assert!(!all.contains("provider-"), "{all}");
    }
    // Tokens of the provider are not accepted either.
    let foreign = setup.provider.issuer.token().sign();
    let response = setup.refresh(&client, &foreign).await;
    assert_eq!(json_of(&response)["error"], "invalid_grant");
}

/// PR9: a provider that redirects, or sends too much, is not followed.
#[tokio::test]
async fn a_provider_that_redirects_or_sends_too_much() {
    let setup = Setup::new();
    let token = setup.provider.endpoint("token");
    setup.network.respond(token, |_| {
        let mut headers = HeaderMap::new();
        let elsewhere = "https://attacker.example/token".parse().unwrap();
        headers.insert(header::LOCATION, elsewhere);
        Ok(FetchResponse {
            status: StatusCode::TEMPORARY_REDIRECT,
            headers,
            body: Bytes::new(),
            sent: Default::default(),
        })
    });
    assert!(outcome(&setup).await.is_some());
    assert_eq!(setup.network.hits("https://attacker.example/token"), 0);
    let setup = Setup::new();
    *setup.provider.response.lock() = json!({ "padding": "a".repeat(70_000) });
    assert!(outcome(&setup).await.is_some());
    let setup = Setup::new();
    setup.network.time_out(setup.provider.endpoint("token"));
    assert_eq!(
        outcome(&setup).await.as_deref(),
        Some("temporarily_unavailable")
    );
}

/// PR9: a provider that is down at the beginning is a page, and no transaction.
#[tokio::test]
async fn a_provider_that_is_down_at_the_beginning() {
    let setup = Setup::new();
    for path in ["openid-configuration", "oauth-authorization-server"] {
        setup.network.fail(format!("{PROVIDER}/.well-known/{path}"));
    }
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let (log, _guard) = Log::here();
    let response = browser.decide(&page, "allow:idp").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let text = text_of(&response);
    assert!(!text.contains("idp.example"));
    assert!(!response.headers().contains_key("set-cookie"));
    // The log has one line about it, with its cause.
    let lines = log.lines();
    let about: Vec<_> = lines
        .iter()
        .filter(|line| !line.starts_with("DEBUG"))
        .collect();
    assert_eq!(about.len(), 1, "{lines:?}");
    let issuer = format!("provider.issuer=\"{PROVIDER}\"");
    for word in ["WARN", "provider.unreachable", "cannot connect", &issuer] {
        assert!(about[0].contains(word), "{word}: {about:?}");
    }
    let (_, reference) = text.split_once("give this reference: <code>").unwrap();
    let (reference, _) = reference.split_once("</code>").unwrap();
    assert!(about[0].contains(reference), "{about:?}");
}

/// PR3: metadata of the provider that name another issuer are not used.
#[tokio::test]
async fn metadata_of_another_provider() {
    let setup = Setup::new();
    let other = TestIssuer::new(OTHER);
    for path in ["openid-configuration", "oauth-authorization-server"] {
        let url = format!("{PROVIDER}/.well-known/{path}");
        setup.network.serve(url, 200, other.metadata_json());
    }
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let response = browser.decide(&page, "allow:idp").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!text_of(&response).contains("other.example"));
}

/// OR5: the endpoints of a provider are `https`.
#[tokio::test]
async fn a_provider_without_tls() {
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
        let setup = Setup::new();
        let metadata = setup.provider.issuer.metadata_json();
        let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
        let endpoint = format!("http://idp.example/{name}");
        metadata[name] = json!(endpoint);
        for path in ["openid-configuration", "oauth-authorization-server"] {
            let url = format!("{PROVIDER}/.well-known/{path}");
            setup.network.serve(url, 200, metadata.to_string());
        }
        let client = setup.client().await;
        let mut browser = Browser::new(&setup);
        let page = browser.authorize(&client.request()).await;
        let response = browser.decide(&page, "allow:idp").await;
        if response.status().is_success() {
            let url = crate::support::continued(&response);
            assert_eq!(url.scheme(), "https", "{name}");
            *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
            let target = location(&browser.return_from(&url).await);
            assert_eq!(param(&target, "code"), None, "{name}");
        }
        assert_eq!(setup.network.hits(&endpoint), 0, "{name}");
    }
}
