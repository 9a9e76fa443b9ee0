//! The secrets of recorded exchanges, which must not be in logs.

use http::header;
use portcullis_testkit::Canaries;
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{expect, recorder::Exchange};

/// Secret parameters of authorization requests, redirects and token requests.
const PARAMETERS: &[&str] = &["code", "code_verifier", "refresh_token", "state"];
/// Secret members of token and registration responses.
const MEMBERS: &[&str] = &[
    "access_token",
    "client_secret",
    "refresh_token",
    "registration_access_token",
];
/// Shorter strings can occur by chance.
const MIN_LEN: usize = 16;

/// Returns the secrets of all exchanges with their names.
pub(crate) fn canaries(exchanges: &[Exchange]) -> Canaries {
    let mut found = Canaries::default();
    for exchange in exchanges {
        of_exchange(exchange, &mut |what, text: &str| {
            if text.len() >= MIN_LEN {
                found.add(what, text);
            }
        });
    }
    found
}

/// Calls `found` with each secret of an exchange.
fn of_exchange(exchange: &Exchange, found: &mut dyn FnMut(&'static str, &str)) {
    for headers in [&exchange.request_headers, &exchange.headers] {
        if let Ok(identifier) = expect::header(headers, "mcp-session-id") {
            found("session identifier", identifier);
        }
    }
    if let Ok(authorization) = expect::header(&exchange.request_headers, "authorization")
        && let Some(token) = authorization.strip_prefix("Bearer ")
    {
        found("access token", token);
    }
    of_form(exchange.url.query().unwrap_or_default(), found);
    of_form(
        std::str::from_utf8(&exchange.request_body).unwrap_or_default(),
        found,
    );
    if let Ok(location) = expect::header(&exchange.headers, header::LOCATION.as_str())
        && let Ok(location) = Url::parse(location)
    {
        of_form(location.query().unwrap_or_default(), found);
    }
    if let Ok(document) = serde_json::from_slice::<Value>(&exchange.body) {
        for member in MEMBERS {
            found(member, document[member].as_str().unwrap_or_default());
        }
    }
}

/// Calls `found` with each secret of a form or query.
fn of_form(form: &str, found: &mut dyn FnMut(&'static str, &str)) {
    for (name, value) in form_urlencoded::parse(form.as_bytes()) {
        if let Some(what) = PARAMETERS.iter().find(|what| **what == name) {
            // Keycloak appends the session and the client after a dot. They are not secret.
            let secret = if *what == "code" {
                value.split('.').next().unwrap_or_default()
            } else {
                &value
            };
            found(what, secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, Method, StatusCode};

    use super::*;

    fn exchange() -> Exchange {
        Exchange {
            method: Method::POST,
            url: Url::parse(
                "http://127.0.0.1/authorize?state=state-state-state&client_id=client-client-client",
            )
            .unwrap(),
            request_headers: HeaderMap::new(),
            request_body: Bytes::new(),
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    #[test]
    fn secrets_are_collected_from_every_part() {
        let mut exchange = exchange();
        exchange.request_headers.insert(
            "authorization",
            "Bearer header-part.payload-part.signature-part-16"
                .parse()
                .unwrap(),
        );
        exchange
            .headers
            .insert("mcp-session-id", "session-session-session".parse().unwrap());
        exchange.headers.insert(
            "location",
            "http://127.0.0.1/callback?code=code-code-code-code"
                .parse()
                .unwrap(),
        );
        exchange.request_body =
            Bytes::from_static(b"code_verifier=verifier-verifier&grant_type=authorization_code");
        exchange.body = Bytes::from_static(br#"{"access_token":"token-token-token-token"}"#);
        let found = canaries(&[exchange]);
        for secret in [
            "code-code-code-code",
            "session-session-session",
            "signature-part-16",
            "state-state-state",
            "token-token-token-token",
            "verifier-verifier",
        ] {
            assert_eq!(found.leaks(secret).len(), 1, "{secret}");
        }
        assert_eq!(
            found
                .leaks("header-part.payload-part.signature-part-16")
                .len(),
            2,
            "the token and its signature"
        );
        assert!(
            found
                .leaks("client-client-client authorization_code")
                .is_empty()
        );
    }

    #[test]
    fn short_strings_are_not_canaries() {
        let mut exchange = exchange();
        exchange.url.set_query(Some("state=a"));
        assert!(canaries(&[exchange]).is_empty());
    }
}
