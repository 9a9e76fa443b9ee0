//! [`Registered`]: a registered client, as it is stored.

use std::collections::HashSet;

use portcullis_metadata::{
    Issuer, Scopes, UnixTime,
    client::{ClientMetadata, ClientRegistrationResponse},
};

use crate::{
    ClientAuthentication, ClientCredentials, ClientError, ClientInformation, TokenAuthMethod,
};

/// A client of one authorization server, as it is stored: dynamically registered, or entered by the
/// user.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    /// The authorization server.
    pub(crate) issuer: Issuer,
    /// The redirect URI that was registered. None for a client that was registered manually.
    pub(crate) redirect_uri: Option<String>,
    /// The scopes of the registration request, to which a server may limit the client. Empty if
    /// there were none.
    pub(crate) asked: Scopes,
    pub(crate) response: ClientRegistrationResponse,
}

impl Registered {
    /// The client that the user entered, as a registration. None for a key, which is not stored.
    pub(crate) fn by_hand(issuer: Issuer, details: &ClientInformation) -> Option<Self> {
        let (method, secret) = match &details.authentication {
            ClientAuthentication::None => (Some("none"), None),
            ClientAuthentication::Secret(secret) => (None, Some(secret.clone())),
            ClientAuthentication::SecretBasic(secret) => {
                (Some("client_secret_basic"), Some(secret.clone()))
            }
            ClientAuthentication::SecretPost(secret) => {
                (Some("client_secret_post"), Some(secret.clone()))
            }
            ClientAuthentication::PrivateKey(_) => return None,
        };
        let metadata = ClientMetadata {
            token_endpoint_auth_method: method.map(str::to_owned),
            ..ClientMetadata::default()
        };
        let response = ClientRegistrationResponse::new(&details.client_id, secret, metadata);
        Some(Self {
            issuer,
            redirect_uri: None,
            asked: Scopes::empty(),
            response,
        })
    }

    /// The credentials. If the response names no method, a client with a secret uses the one that
    /// the server lists. Fails with [`ClientError::UnsupportedAuthenticationMethod`] when the
    /// response names another method, or one that needs a secret and there is none.
    pub(crate) fn credentials(&self) -> Result<ClientCredentials, ClientError> {
        let method = self.response.metadata.token_endpoint_auth_method.as_deref();
        let authentication = match (method, self.response.client_secret.clone()) {
            (Some("none"), _) | (None, None) => ClientAuthentication::None,
            (Some("client_secret_post"), Some(secret)) => ClientAuthentication::SecretPost(secret),
            (Some("client_secret_basic"), Some(secret)) => {
                ClientAuthentication::SecretBasic(secret)
            }
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
        self.redirect_uri
            .as_deref()
            .is_none_or(|registered| registered == redirect_uri)
            && !self.response.secret_has_expired(now)
    }

    /// Whether it can authenticate with the method that the user chose.
    pub(crate) fn authenticates_by(&self, chosen: Option<TokenAuthMethod>) -> bool {
        chosen.is_none_or(|method| {
            (method == TokenAuthMethod::None) != self.response.client_secret.is_some()
        })
    }

    /// Whether the client can request these scopes: a server may limit it to those of its
    /// registration (RFC 7591 section 2).
    pub(crate) fn may_ask_for(&self, scopes: &Scopes) -> bool {
        self.missing_scopes(scopes).is_empty()
    }

    /// The scopes that the registration did not name.
    pub(crate) fn missing_scopes(&self, scopes: &Scopes) -> Scopes {
        if self.asked.is_empty() {
            return Scopes::empty();
        }
        // A server can name any number of them.
        let named: HashSet<&str> = self
            .response
            .metadata
            .scope
            .iter()
            .flat_map(|scope| scope.split(' '))
            .collect();
        let is_named = |scope: &str| self.asked.contains(scope) || named.contains(scope);
        scopes.filter(|scope| !is_named(scope))
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::Secret;

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
            authentication(
                r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#
            ),
            None
        );
        assert_eq!(
            authentication(r#"{"client_id":"c","client_secret":"s"}"#),
            Any(secret())
        );

        let post = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#;
        assert_eq!(authentication(post), SecretPost(secret()));
        let basic = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#;
        assert_eq!(authentication(basic), SecretBasic(secret()));

        for unknown in [
            r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}"#,
            r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}"#,
        ] {
            assert_eq!(
                registered(unknown).credentials().unwrap_err().code(),
                "client.authentication_method"
            );
        }
    }

    /// H3: an expired secret or another redirect URI requires a new registration.
    #[test]
    fn a_registration_serves_until_its_secret_ends() {
        let registered =
            registered(r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":100}"#);
        assert!(registered.serves("http://127.0.0.1:1/callback", UnixTime::from_secs(99)));
        assert!(!registered.serves("http://127.0.0.1:1/callback", UnixTime::from_secs(100)));
        assert!(!registered.serves("http://127.0.0.1:2/callback", UnixTime::from_secs(99)));
    }

    /// H2: a registration with scopes allows these and those that the server added; one without
    /// scopes allows all.
    #[test]
    fn a_registration_serves_its_scopes() {
        let mut registered = registered(r#"{"client_id":"c","scope":"b c"}"#);
        let may = |registered: &Registered, scopes: &str| {
            registered.may_ask_for(&Scopes::parse(scopes).unwrap())
        };
        assert!(may(&registered, "a"));
        assert!(may(&registered, "a b c"));
        assert!(may(&registered, ""));
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
            let details = ClientInformation {
                client_id: "c".into(),
                authentication,
            };
            let kept = Registered::by_hand(issuer.clone(), &details).unwrap();
            assert!(kept.serves("anything", UnixTime::from_secs(u64::MAX)));
            assert_eq!(kept.credentials().unwrap(), details.at(issuer.clone()));
        }
    }
}
