//! [`GoogleImitation`]: an OpenID Connect provider with Google's opaque access tokens and its claim
//! `hd`.

use std::sync::Arc;

use http::{StatusCode, header};
use parking_lot::Mutex;
use portcullis_metadata::SystemClock;
use portcullis_scenarios::{Peer, PeerRequest, PeerResponse};
use portcullis_testkit::TestIssuer;
use serde_json::{Value, json};
use url::form_urlencoded;

/// The account that signs in.
#[derive(Clone, Copy)]
pub(super) struct Account {
    pub(super) name: &'static str,
    /// The domain of the Google Workspace; personal accounts have none.
    pub(super) hosted_domain: Option<&'static str>,
}

/// An OpenID Connect provider that signs one account in, without a page.
///
/// The sources are Google's discovery document and its pages on OpenID Connect
/// (<https://developers.google.com/identity/openid-connect/openid-connect>).
pub(super) struct GoogleImitation(Peer);

impl GoogleImitation {
    /// The opaque access token of every account.
    pub(super) const ACCESS_TOKEN: &'static str = "ya29.a0AfH6SMBx-an-opaque-token-of-tests";
    const CLIENT: &'static str = "web";
    const SECRET: &'static str = "a-secret-of-tests";

    pub(super) async fn start(account: Arc<Mutex<Account>>) -> Self {
        let issuer = TestIssuer::new("https://accounts.google.com").with_clock(SystemClock::new());
        let script = move |request: &PeerRequest| {
            let account = *account.lock();
            respond(&issuer, account, request)
        };
        Self(Peer::start(script).await)
    }

    /// Returns the settings of Keycloak's identity provider.
    pub(super) fn settings(&self) -> Value {
        json!({
            "issuer": self.0.url(""),
            "authorizationUrl": self.0.url("/o/oauth2/v2/auth"),
            "tokenUrl": self.0.url("/token"),
            "userInfoUrl": self.0.url("/v1/userinfo"),
            "jwksUrl": self.0.url("/oauth2/v3/certs"),
            "useJwksUrl": "true", "validateSignature": "true",
            "clientId": Self::CLIENT, "clientSecret": Self::SECRET, "clientAuthMethod": "client_secret_post",
            "defaultScope": "openid profile email", "syncMode": "FORCE",
        })
    }
}

fn respond(issuer: &TestIssuer, account: Account, request: &PeerRequest) -> Option<PeerResponse> {
    match request.path.as_str() {
        "/o/oauth2/v2/auth" => {
            let text = |name: &str| request.query.get(name).cloned().unwrap_or_default();
            // The code is the nonce, which the ID token repeats.
            let parameters = [
                ("state", text("state")),
                ("code", format!("4/{}", text("nonce"))),
            ];
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(parameters)
                .finish();
            let mut response = PeerResponse::new(String::new());
            *response.status_mut() = StatusCode::FOUND;
            let location = format!("{}?{query}", text("redirect_uri")).parse().ok()?;
            response.headers_mut().insert(header::LOCATION, location);
            Some(response)
        }
        "/token" => {
            let form = request.form();
            let has = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
            if !has("client_id", GoogleImitation::CLIENT)
                || !has("client_secret", GoogleImitation::SECRET)
            {
                return Some(request.json(json!({ "error": "invalid_client" })));
            }
            let nonce = form
                .get("code")
                .and_then(|code| code.strip_prefix("4/"))
                .unwrap_or_default();
            let mut token = issuer.token().header("typ", "JWT").issuer(&request.base);
            token = token
                .claim("aud", GoogleImitation::CLIENT)
                .claim("azp", GoogleImitation::CLIENT)
                .without("client_id");
            for (name, value) in claims(account).as_object().into_iter().flatten() {
                token = token.claim(name, value.clone());
            }
            token = token.claim("nonce", nonce);
            Some(request.json(json!({
                "access_token": GoogleImitation::ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 3599,
                "scope": "openid https://www.googleapis.com/auth/userinfo.email", "id_token": token.sign(),
            })))
        }
        "/v1/userinfo" => Some(request.json(claims(account))),
        "/oauth2/v3/certs" => Some(request.json(issuer.jwks_json())),
        _ => None,
    }
}

fn claims(
    Account {
        name,
        hosted_domain,
    }: Account,
) -> Value {
    let mut claims = json!({
        "sub": format!("1036{name}"), "email": format!("{name}@example.com"), "email_verified": true,
        "name": name, "given_name": name, "family_name": "Example",
    });
    if let Some(domain) = hosted_domain {
        claims["hd"] = domain.into();
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only accounts of a Google Workspace have the claim.
    #[test]
    fn personal_accounts_have_no_hosted_domain() {
        assert!(
            claims(Account {
                name: "a",
                hosted_domain: None
            })
            .get("hd")
            .is_none()
        );
        assert_eq!(
            claims(Account {
                name: "a",
                hosted_domain: Some("example.com")
            })["hd"],
            "example.com"
        );
    }
}
