//! [`ClientCredentials`], [`ClientAuthentication`], and the stored form of a registration.

use http::HeaderValue;
use portcullis_metadata::{
    ClientMetadata, ClientRegistrationResponse, Issuer, Scopes, Secret, UnixTime, client_secret_basic,
};

use crate::{ClientError, ClientKey, TokenAuthMethod};

/// A client's credentials at one authorization server, and at no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The authorization server that issued them.
    pub issuer: Issuer,
    /// The client identifier.
    pub client_id: String,
    /// How the client authenticates at the token endpoint.
    pub authentication: ClientAuthentication,
}

/// A manually registered client, without its authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInformation {
    /// The client identifier.
    pub client_id: String,
    /// How the client authenticates at the token endpoint.
    pub authentication: ClientAuthentication,
}

/// How a client authenticates at the token endpoint (RFC 6749 section 2.3, RFC 7523 section 2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Not at all: a public client.
    None,
    /// With a secret, by the method that the server lists: `client_secret_post` if it lists that, otherwise
    /// `client_secret_basic`.
    Secret(Secret),
    /// `client_secret_basic`: in the `Authorization` header.
    SecretBasic(Secret),
    /// `client_secret_post`: in the form.
    SecretPost(Secret),
    /// `private_key_jwt`: with an assertion that the key signs.
    PrivateKey(ClientKey),
}

/// A stored registration.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) issuer: Issuer,
    /// The redirect URI that was registered. None for a client that was registered manually.
    pub(crate) redirect_uri: Option<String>,
    /// The scopes of the registration request, to which a server may limit the client. Empty if there were none.
    pub(crate) asked: Scopes,
    /// The registration response.
    pub(crate) response: ClientRegistrationResponse,
}

impl ClientAuthentication {
    /// Selects the method for a server that lists these.
    pub(crate) fn resolved(&self, listed: Option<&[String]>) -> Self {
        match self {
            Self::Secret(secret) if TokenAuthMethod::ClientSecretPost.is_listed(listed) => {
                Self::SecretPost(secret.clone())
            }
            Self::Secret(secret) => Self::SecretBasic(secret.clone()),
            other => other.clone(),
        }
    }

    /// The same credentials with the method that the user chose. A client without a secret stays public, and a key
    /// stays a key.
    pub(crate) fn by_method(&self, method: TokenAuthMethod) -> Self {
        match (self, method) {
            (Self::None | Self::PrivateKey(_), _) => self.clone(),
            (_, TokenAuthMethod::None) => Self::None,
            (Self::Secret(secret) | Self::SecretBasic(secret) | Self::SecretPost(secret), method) => match method {
                TokenAuthMethod::ClientSecretBasic => Self::SecretBasic(secret.clone()),
                _ => Self::SecretPost(secret.clone()),
            },
        }
    }

    /// The client's secret, if it has one.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Secret(secret) | Self::SecretBasic(secret) | Self::SecretPost(secret) => Some(secret),
            Self::None | Self::PrivateKey(_) => None,
        }
    }

    /// The other method for the secret, if the server lists it.
    pub(crate) fn alternative(&self, listed: Option<&[String]>) -> Option<Self> {
        let (other, secret) = match self {
            Self::SecretBasic(secret) => (TokenAuthMethod::ClientSecretPost, secret),
            Self::SecretPost(secret) => (TokenAuthMethod::ClientSecretBasic, secret),
            _ => return None,
        };
        other.is_listed(listed).then(|| Self::Secret(secret.clone()).by_method(other))
    }

    /// The `Authorization` header of `client_secret_basic`, both parts form-encoded first (RFC 6749 section 2.3.1).
    pub(crate) fn basic_header(&self, client_id: &str) -> Option<HeaderValue> {
        let Self::SecretBasic(secret) = self else { return None };
        client_secret_basic(client_id, secret)
    }
}

impl ClientInformation {
    pub(crate) fn at(self, issuer: Issuer) -> ClientCredentials {
        ClientCredentials { issuer, client_id: self.client_id, authentication: self.authentication }
    }
}

impl Registered {
    /// The client that the user entered, as a registration. None for a key, which is not stored.
    pub(crate) fn by_hand(issuer: Issuer, details: &ClientInformation) -> Option<Self> {
        let (method, secret) = match &details.authentication {
            ClientAuthentication::None => (Some("none"), None),
            ClientAuthentication::Secret(secret) => (None, Some(secret.clone())),
            ClientAuthentication::SecretBasic(secret) => (Some("client_secret_basic"), Some(secret.clone())),
            ClientAuthentication::SecretPost(secret) => (Some("client_secret_post"), Some(secret.clone())),
            ClientAuthentication::PrivateKey(_) => return None,
        };
        let response = ClientRegistrationResponse {
            client_id: details.client_id.clone(),
            client_secret: secret,
            client_id_issued_at: None,
            client_secret_expires_at: None,
            registration_access_token: None,
            registration_client_uri: None,
            metadata: ClientMetadata {
                token_endpoint_auth_method: method.map(str::to_owned),
                ..ClientMetadata::default()
            },
        };
        Some(Self { issuer, redirect_uri: None, asked: Scopes::empty(), response })
    }

    /// The credentials. If the response names no method, a client with a secret uses the one that the server lists.
    pub(crate) fn credentials(&self) -> Result<ClientCredentials, ClientError> {
        let method = self.response.metadata.token_endpoint_auth_method.as_deref();
        let authentication = match (method, self.response.client_secret.clone()) {
            (Some("none"), _) | (None, None) => ClientAuthentication::None,
            (Some("client_secret_post"), Some(secret)) => ClientAuthentication::SecretPost(secret),
            (Some("client_secret_basic"), Some(secret)) => ClientAuthentication::SecretBasic(secret),
            (None, Some(secret)) => ClientAuthentication::Secret(secret),
            _ => return Err(ClientError::UnsupportedAuthenticationMethod),
        };
        Ok(ClientCredentials {
            issuer: self.issuer.clone(),
            client_id: self.response.client_id.clone(),
            authentication,
        })
    }

    /// Whether it can be used for `redirect_uri` and its secret has not expired.
    pub(crate) fn serves(&self, redirect_uri: &str, now: UnixTime) -> bool {
        self.redirect_uri.as_deref().is_none_or(|registered| registered == redirect_uri)
            && !self.response.secret_has_expired(now)
    }

    /// Whether it can authenticate with the method that the user chose.
    pub(crate) fn authenticates_by(&self, chosen: Option<TokenAuthMethod>) -> bool {
        chosen.is_none_or(|method| (method == TokenAuthMethod::None) != self.response.client_secret.is_some())
    }

    /// Whether the client can request these scopes: a server may limit it to those of its registration (RFC 7591
    /// section 2).
    pub(crate) fn may_ask_for(&self, scopes: &Scopes) -> bool {
        self.missing_scopes(scopes).is_empty()
    }

    /// The scopes that the registration did not name.
    pub(crate) fn missing_scopes(&self, scopes: &Scopes) -> Scopes {
        if self.asked.is_empty() {
            return Scopes::empty();
        }
        let named = self.response.metadata.scope.as_deref().unwrap_or_default();
        let is_named = |scope: &str| self.asked.contains(scope) || named.split(' ').any(|named| named == scope);
        // They are names of a set already.
        Scopes::from_names(scopes.iter().filter(|scope| !is_named(scope))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    fn registered(answer: &str) -> Registered {
        Registered {
            issuer: Issuer::parse("https://auth.example.com").unwrap(),
            redirect_uri: Some("http://127.0.0.1:1/callback".into()),
            asked: Scopes::parse("a b").unwrap(),
            response: ClientRegistrationResponse::parse(answer.as_bytes()).unwrap(),
        }
    }

    fn authentication(answer: &str) -> ClientAuthentication {
        registered(answer).credentials().unwrap().authentication
    }

    /// I4: the registration response determines the authentication method.
    #[test]
    fn the_registration_determines_the_method() {
        use ClientAuthentication::{None, Secret as Any, SecretBasic, SecretPost};
        let secret = || Secret::new("s");
        assert_eq!(authentication(r#"{"client_id":"c"}"#), None);
        assert_eq!(
            authentication(r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#),
            None
        );
        assert_eq!(authentication(r#"{"client_id":"c","client_secret":"s"}"#), Any(secret()));
        let post = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#;
        assert_eq!(authentication(post), SecretPost(secret()));
        let basic = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#;
        assert_eq!(authentication(basic), SecretBasic(secret()));
        for unknown in [
            r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}"#,
            r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}"#,
        ] {
            assert_eq!(registered(unknown).credentials().unwrap_err().code(), "client.authentication_method");
        }
    }

    /// I4: a secret without a method is sent by the method that the server lists, in the header by default.
    #[test]
    fn a_secret_is_sent_by_the_listed_method() {
        let secret = ClientAuthentication::Secret(Secret::new("s"));
        let at = |listed: Option<&[&str]>| {
            let listed = listed.map(|listed| listed.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
            secret.resolved(listed.as_deref())
        };
        let (basic, post) =
            (ClientAuthentication::SecretBasic(Secret::new("s")), ClientAuthentication::SecretPost(Secret::new("s")));
        assert_eq!(at(None), basic);
        assert_eq!(at(Some(&["none"])), basic);
        assert_eq!(at(Some(&["client_secret_basic", "client_secret_post"])), post);
        assert_eq!(at(Some(&["client_secret_basic"])), basic);
        assert_eq!(at(Some(&["none", "client_secret_post"])), post);
        assert_eq!(post.resolved(None), post);
    }

    /// I4: the other listed method is the alternative; the user's choice is exact.
    #[test]
    fn a_secret_has_one_alternative() {
        use ClientAuthentication::{None as Public, Secret as Any, SecretBasic, SecretPost};
        let secret = || Secret::new("s");
        let both = ["client_secret_basic".to_owned(), "client_secret_post".to_owned()];
        assert_eq!(SecretBasic(secret()).alternative(Some(&both)), Some(SecretPost(secret())));
        assert_eq!(SecretPost(secret()).alternative(Some(&both)), Some(SecretBasic(secret())));
        assert_eq!(SecretBasic(secret()).alternative(Some(&both[..1])), None);
        // Without a list, a server supports basic.
        assert_eq!(SecretPost(secret()).alternative(None), Some(SecretBasic(secret())));
        assert_eq!(SecretBasic(secret()).alternative(None), None);
        assert_eq!(Public.alternative(Some(&both)), None);
        for held in [Any(secret()), SecretBasic(secret()), SecretPost(secret())] {
            assert_eq!(held.by_method(TokenAuthMethod::None), Public);
            assert_eq!(held.by_method(TokenAuthMethod::ClientSecretPost), SecretPost(secret()));
            assert_eq!(held.by_method(TokenAuthMethod::ClientSecretBasic), SecretBasic(secret()));
        }
        assert_eq!(Public.by_method(TokenAuthMethod::ClientSecretBasic), Public);
    }

    /// H3: an expired secret or another redirect URI requires a new registration.
    #[test]
    fn a_registration_serves_until_its_secret_ends() {
        let registered = registered(r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":100}"#);
        assert!(registered.serves("http://127.0.0.1:1/callback", UnixTime::from_secs(99)));
        assert!(!registered.serves("http://127.0.0.1:1/callback", UnixTime::from_secs(100)));
        assert!(!registered.serves("http://127.0.0.1:2/callback", UnixTime::from_secs(99)));
    }

    /// H2: a registration with scopes allows these and those that the server added; one without scopes allows all.
    #[test]
    fn a_registration_serves_its_scopes() {
        let mut registered = registered(r#"{"client_id":"c","scope":"b c"}"#);
        let may = |registered: &Registered, scopes: &str| registered.may_ask_for(&Scopes::parse(scopes).unwrap());
        assert!(may(&registered, "a") && may(&registered, "a b c") && may(&registered, ""));
        assert!(!may(&registered, "a d"));
        registered.asked = Scopes::empty();
        assert!(may(&registered, "d"));
    }

    /// The entered client is stored without change.
    #[test]
    fn details_keep_their_method() {
        let issuer = Issuer::parse("https://auth.example.com").unwrap();
        for authentication in [
            ClientAuthentication::None,
            ClientAuthentication::Secret(Secret::new("s")),
            ClientAuthentication::SecretBasic(Secret::new("s")),
            ClientAuthentication::SecretPost(Secret::new("s")),
        ] {
            let details = ClientInformation { client_id: "c".into(), authentication };
            let kept = Registered::by_hand(issuer.clone(), &details).unwrap();
            assert!(kept.serves("anything", UnixTime::from_secs(u64::MAX)));
            assert_eq!(kept.credentials().unwrap(), details.at(issuer.clone()));
        }
    }

    /// J2: neither Debug nor a header's Debug shows a secret.
    #[test]
    fn secrets_are_redacted() {
        let basic = ClientAuthentication::SecretBasic(Secret::new("hu sh"));
        let header = basic.basic_header("a:b").unwrap();
        assert_eq!(header, &format!("Basic {}", STANDARD.encode("a%3Ab:hu+sh")));
        assert!(!format!("{basic:?} {header:?}").contains("hu"));
    }
}
