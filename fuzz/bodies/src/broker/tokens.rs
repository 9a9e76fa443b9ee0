//! Tokens and keys.

use std::cell::OnceCell;

use http::{Method, StatusCode};
use portcullis_broker::BrokerKeys;

use super::{
    FORM, changed,
    prepared::{self, Prepared},
    request,
    support::{encode, json_of},
};

/// The input is the form of a request to the token, revocation and introspection endpoints.
/// `REFRESH` is a refresh token of `CLIENT`, which alone gets tokens for it.
pub fn broker_token_forms(data: &[u8]) {
    prepared::with(|prepared| {
        let form = prepared.text(data);
        let has_token = form.contains(&prepared.refresh_token);
        let headers = [("content-type", FORM)];
        for path in ["/oauth/introspect", "/oauth/token", "/oauth/revoke"] {
            let Some(request) = request(Method::POST, path, &headers, form.clone()) else {
                return;
            };
            let response = prepared.send(request);
            let status = response.status();
            assert!(
                status == StatusCode::OK || status.is_client_error(),
                "{response:?}"
            );
            if has_token || status != StatusCode::OK {
                continue;
            }
            let body = json_of(&response);
            assert!(body.get("access_token").is_none(), "{body}");
            assert!(
                body.get("active").is_none_or(|active| active == false),
                "{body}"
            );
        }
        if has_token {
            // It may be revoked now.
            prepared.inputs = usize::MAX;
        }
    });
}

/// The input changes a refresh token. Tokens are issued for the unchanged one alone, and the
/// changed one does not end its grant.
pub fn broker_refresh_token(data: &[u8]) {
    prepared::with(|prepared| {
        let token = changed(&prepared.refresh_token, data);
        let is_issued = prepared.refresh(&token).status() == StatusCode::OK;
        assert_eq!(is_issued, token == prepared.refresh_token, "{token}");
        assert_no_grant_ended(prepared);
    });
}

/// The input is a logout token, and the form of one. Without a signature of the provider, no grant
/// ends.
pub fn broker_logout_token(data: &[u8]) {
    prepared::with(|prepared| {
        let text = prepared.text(data);
        for form in [encode(&[("logout_token", &*text)]), text] {
            let headers = [("content-type", FORM)];
            let Some(request) = request(Method::POST, "/oauth/logout/idp", &headers, form) else {
                continue;
            };
            assert_eq!(prepared.send(request).status(), StatusCode::BAD_REQUEST);
        }
        assert_no_grant_ended(prepared);
    });
}

fn assert_no_grant_ended(prepared: &Prepared) {
    assert!(!prepared.setup.events.contains("GrantEnded"));
}

thread_local! {
    static GENERATED: OnceCell<String> = const { OnceCell::new() };
}

/// The input is a file of keys, in which `GENERATED` are valid ones. Accepted keys have a public
/// key, and are not accepted a second time in the same file.
pub fn broker_keys(data: &[u8]) {
    let generated = GENERATED.with(|generated| {
        let generate =
            || BrokerKeys::generate().map_or_else(|_| String::new(), |keys| keys.to_string());
        generated.get_or_init(generate).clone()
    });
    let text = String::from_utf8_lossy(data).replace("GENERATED", &generated);
    let parsed = BrokerKeys::parse(&text);
    match parsed {
        Ok(keys) => {
            assert!(!keys.public_keys().keys.is_empty());
            assert!(BrokerKeys::parse(&format!("{text}\n{text}")).is_err());
        }
        Err(error) => {
            // The error has no part of a key.
            let message = error.to_string();
            let mut parts = generated.split_whitespace().filter(|part| part.len() > 32);
            assert!(parts.all(|part| !message.contains(part)), "{message}");
        }
    }
}
