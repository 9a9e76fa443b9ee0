//! Hostile authorization requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderMap;
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params,
    authorization::{
        Authorization, AuthorizationError, AuthorizationRequest, User, Users, authorize,
        error_location,
    },
};
use portcullis_metadata::{UnixTime, authorization::PkceVerifier};
use proptest::prelude::*;

use crate::support::{REDIRECT, RESOURCE, Server, form};

/// Approves everything, and counts.
#[derive(Default)]
struct Anyone(AtomicUsize);

impl Users for Anyone {
    type Reply = ();
    type Error = std::convert::Infallible;

    async fn identify(
        &self,
        request: AuthorizationRequest,
        _headers: &HeaderMap,
    ) -> Result<Authorization<()>, Self::Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let user = User {
            subject: "alice".into(),
            auth_time: UnixTime::from_secs(0),
        };
        Ok(Authorization::Approved(Box::new(request), user))
    }
}

/// Sends a valid request with some parameters replaced, or removed if they are empty.
async fn send(changes: &[(&str, &str)]) -> (Authorization<()>, usize) {
    let challenge = PkceVerifier::generate().unwrap().challenge();
    let mut pairs = vec![
        ("client_id", "client-a"),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("state", "xyz"),
        ("resource", RESOURCE),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    pairs.retain(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
    pairs.extend(changes);
    let users = Anyone::default();
    let server = Server::new();
    let answer = authorize(&server, &server, &users, &form(&pairs), &HeaderMap::new()).await;
    (answer.unwrap(), users.0.into_inner())
}

#[tokio::test]
async fn a_valid_request_asks_the_user() {
    let (answer, asked) = send(&[]).await;
    assert!(matches!(answer, Authorization::Approved(..)));
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn nothing_is_redirected_before_client_and_redirect_uri_are_valid() {
    for changes in [
        &[("client_id", "")][..],
        &[("client_id", "unknown")],
        &[("redirect_uri", "https://attacker.example/callback")],
        &[("redirect_uri", "http://127.0.0.1:4321/callback/")],
        &[("redirect_uri", "http://127.0.0.1:4321/callback?a=b")],
        &[("redirect_uri", "http://localhost:4321/callback")],
        &[("redirect_uri", "javascript:alert(1)")],
        // Even together with another error, which would otherwise be sent there.
        &[
            ("redirect_uri", "https://attacker.example/"),
            ("scope", "\u{1}"),
        ],
    ] {
        let (answer, asked) = send(changes).await;
        let is_page = matches!(
            answer,
            Authorization::Rejected(AuthorizationError::Untrusted(_))
        );
        assert!(is_page, "{changes:?}");
        assert_eq!(asked, 0);
    }
}

#[tokio::test]
async fn a_repeated_client_or_redirect_uri_is_not_redirected() {
    let server = Server::new();
    for name in [
        "client_id=client-a",
        "redirect_uri=http://127.0.0.1:1/callback",
    ] {
        let query = format!("client_id=client-a&redirect_uri={REDIRECT}&{name}");
        let params = Params::parse(query.as_bytes());
        let parsed =
            AuthorizationRequest::parse(&server, &server, &params, &HeaderMap::new()).await;
        assert!(
            matches!(parsed, Err(AuthorizationError::Untrusted(_))),
            "{name}"
        );
    }
}

#[tokio::test]
async fn other_errors_are_sent_to_the_client_without_asking_the_user() {
    for (changes, code) in [
        // The PKCE challenge is removed or weakened.
        (&[("code_challenge", "")][..], ErrorCode::InvalidRequest),
        (&[("code_challenge_method", "")], ErrorCode::InvalidRequest),
        (
            &[("code_challenge_method", "plain")],
            ErrorCode::InvalidRequest,
        ),
        (&[("code_challenge", "short")], ErrorCode::InvalidRequest),
        // A token is requested in the browser.
        (
            &[("response_type", "token")],
            ErrorCode::UnsupportedResponseType,
        ),
        (
            &[("response_type", "code id_token")],
            ErrorCode::UnsupportedResponseType,
        ),
        (&[("response_mode", "fragment")], ErrorCode::InvalidRequest),
        // A request object makes the server fetch something.
        (&[("request", "x")], ErrorCode::RequestNotSupported),
        (
            &[("request_uri", "https://attacker.example/")],
            ErrorCode::RequestUriNotSupported,
        ),
        // A foreign scope or a malformed resource.
        (&[("scope", "root")], ErrorCode::InvalidScope),
        (&[("resource", "mcp.example.com")], ErrorCode::InvalidTarget),
        (&[("state", "a"), ("state", "b")], ErrorCode::InvalidRequest),
    ] {
        let (answer, asked) = send(changes).await;
        let Authorization::Rejected(AuthorizationError::Returned {
            redirect, error, ..
        }) = answer
        else {
            panic!("{changes:?}");
        };
        assert_eq!(
            (redirect.as_str(), error.code),
            (REDIRECT, code),
            "{changes:?}"
        );
        assert_eq!(asked, 0);
    }
}

#[tokio::test]
async fn each_response_names_the_issuer() {
    let server = Server::new();
    let request = server
        .request(&PkceVerifier::generate().unwrap(), "mcp:tools")
        .await;
    let iss = "&iss=https%3A%2F%2Fmcp.example.com";
    assert_eq!(
        request.code_location("c", None, Some(&server.issuer)),
        format!("{REDIRECT}?code=c&state=xyz{iss}")
    );
    let error = ErrorResponse::new(ErrorCode::AccessDenied, "no");
    assert_eq!(
        error_location(&request.redirect, Some("xyz"), error, Some(&server.issuer)),
        format!("{REDIRECT}?error=access_denied&error_description=no&state=xyz{iss}")
    );
}

proptest! {
    /// The error of any request goes to a registered redirect URI, or is not redirected.
    #[test]
    fn no_request_is_redirected_elsewhere(
        redirect in "(http|https|javascript)://(127\\.0\\.0\\.1|localhost|attacker\\.example)[:@.0-9a-z]{0,6}/callback[/?#@]{0,1}|http://127\\.0\\.0\\.1(:[0-9]{1,4})?/callback",
        further in "[ -~]{0,60}",
    ) {
        let server = Server::new();
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("client_id", "client-a").append_pair("redirect_uri", &redirect);
        let query = format!("{}&{further}", query.finish());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let parsed = runtime.block_on(AuthorizationRequest::parse(
            &server,
            &server,
            &Params::parse(query.as_bytes()),
            &HeaderMap::new(),
        ));
        if let Err(AuthorizationError::Returned { redirect, .. }) = parsed {
            let rest = redirect.as_str().strip_prefix("http://127.0.0.1").unwrap();
            let port = rest.strip_suffix("/callback").unwrap();
            prop_assert!(port.is_empty() || port.starts_with(':'), "{}", redirect.as_str());
            prop_assert!(port.chars().skip(1).all(|digit| digit.is_ascii_digit()));
        }
    }
}
