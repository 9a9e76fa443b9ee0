use http::HeaderValue;
use portcullis_metadata::{ClientRegistrationResponse, Issuer, Secret, UnixTime, client_secret_basic};

use crate::ClientError;

/// A client's credentials at one authorization server, and at no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The authorization server that gave them.
    pub issuer: Issuer,
    /// The client's name there.
    pub client_id: String,
    /// How the client authenticates at the token endpoint.
    pub authentication: ClientAuthentication,
}

/// How a client authenticates at the token endpoint (RFC 6749 section 2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Not at all: a public client.
    None,
    /// `client_secret_basic`: in the `Authorization` header.
    SecretBasic(Secret),
    /// `client_secret_post`: in the form.
    SecretPost(Secret),
}

/// What a registration gave, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) credentials: ClientCredentials,
    pub(crate) redirect_uri: String,
    secret_expires: Option<UnixTime>,
}

impl ClientAuthentication {
    /// The `Authorization` header of `client_secret_basic`, both parts form-encoded first (RFC 6749 section 2.3.1).
    pub(crate) fn basic_header(&self, client_id: &str) -> Option<HeaderValue> {
        let Self::SecretBasic(secret) = self else { return None };
        client_secret_basic(client_id, secret)
    }
}

impl Registered {
    /// Takes a registration's answer. A method that the answer does not name follows from whether there is a secret
    /// (RFC 7591 section 2: `client_secret_basic` is the default).
    pub(crate) fn new(
        issuer: Issuer,
        redirect_uri: String,
        response: ClientRegistrationResponse,
    ) -> Result<Self, ClientError> {
        let method = response.metadata.token_endpoint_auth_method.as_deref();
        let authentication = match (method, response.client_secret) {
            (Some("none"), _) | (None, None) => ClientAuthentication::None,
            (Some("client_secret_post"), Some(secret)) => ClientAuthentication::SecretPost(secret),
            (None | Some("client_secret_basic"), Some(secret)) => ClientAuthentication::SecretBasic(secret),
            _ => return Err(ClientError::AuthenticationMethod),
        };
        let credentials = ClientCredentials { issuer, client_id: response.client_id, authentication };
        Ok(Self { credentials, redirect_uri, secret_expires: response.client_secret_expires_at })
    }

    /// Whether it can still be used for an answer to `redirect_uri`.
    pub(crate) fn serves(&self, redirect_uri: &str, now: UnixTime) -> bool {
        self.redirect_uri == redirect_uri && self.secret_expires.is_none_or(|end| end > now)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    fn registered(answer: &str) -> Result<Registered, ClientError> {
        let issuer = Issuer::parse("https://auth.example.com").unwrap();
        let response = ClientRegistrationResponse::parse(answer.as_bytes()).unwrap();
        Registered::new(issuer, "http://127.0.0.1:1/callback".into(), response)
    }

    fn authentication(answer: &str) -> ClientAuthentication {
        registered(answer).unwrap().credentials.authentication
    }

    /// The answer of the registration says how the client authenticates.
    #[test]
    fn the_registration_says_how_to_authenticate() {
        use ClientAuthentication::{None, SecretBasic, SecretPost};
        let secret = || Secret::new("s");
        assert_eq!(authentication(r#"{"client_id":"c"}"#), None);
        assert_eq!(
            authentication(r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#),
            None
        );
        assert_eq!(authentication(r#"{"client_id":"c","client_secret":"s"}"#), SecretBasic(secret()));
        let post = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#;
        assert_eq!(authentication(post), SecretPost(secret()));
        for unknown in [
            r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}"#,
            r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}"#,
        ] {
            assert_eq!(registered(unknown).unwrap_err().code(), "client.authentication_method");
        }
    }

    /// An expired secret, or another redirect, wants a new registration.
    #[test]
    fn a_registration_serves_until_its_secret_ends() {
        let registered = registered(r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":100}"#).unwrap();
        assert!(registered.serves("http://127.0.0.1:1/callback", UnixTime::from_secs(99)));
        assert!(!registered.serves("http://127.0.0.1:1/callback", UnixTime::from_secs(100)));
        assert!(!registered.serves("http://127.0.0.1:2/callback", UnixTime::from_secs(99)));
    }

    /// J2: a secret shows neither in Debug nor in a header's Debug.
    #[test]
    fn secrets_are_redacted() {
        let basic = ClientAuthentication::SecretBasic(Secret::new("hu sh"));
        let header = basic.basic_header("a:b").unwrap();
        assert_eq!(header, &format!("Basic {}", STANDARD.encode("a%3Ab:hu+sh")));
        assert!(!format!("{basic:?} {header:?}").contains("hu"));
    }
}
