//! [`ClientCredentials`] and [`ClientAuthentication`]: a client, and how it authenticates.

use http::HeaderValue;
use portcullis_metadata::{Issuer, Secret, client::client_secret_basic};

use crate::{ClientKey, TokenAuthMethod};

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
    /// With a secret, by the method that the server lists: `client_secret_post` if it lists that,
    /// otherwise `client_secret_basic`.
    Secret(Secret),
    /// `client_secret_basic`: in the `Authorization` header.
    SecretBasic(Secret),
    /// `client_secret_post`: in the form.
    SecretPost(Secret),
    /// `private_key_jwt`: with an assertion that the key signs.
    PrivateKey(ClientKey),
}

impl ClientAuthentication {
    /// Selects the method for a server that lists these methods. Only a secret without a method has
    /// a choice.
    pub(crate) fn resolved(&self, listed: Option<&[String]>) -> Self {
        match self {
            Self::Secret(secret) if TokenAuthMethod::ClientSecretPost.is_listed(listed) => {
                Self::SecretPost(secret.clone())
            }
            Self::Secret(secret) => Self::SecretBasic(secret.clone()),
            other => other.clone(),
        }
    }

    /// The same credentials with the method that the user chose. A client without a secret stays
    /// public, and a key stays a key.
    pub(crate) fn by_method(&self, method: TokenAuthMethod) -> Self {
        let Some(secret) = self.secret() else {
            return self.clone();
        };
        match method {
            TokenAuthMethod::None => Self::None,
            TokenAuthMethod::ClientSecretPost => Self::SecretPost(secret.clone()),
            TokenAuthMethod::ClientSecretBasic => Self::SecretBasic(secret.clone()),
        }
    }

    /// The client's secret, if it has one.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Secret(secret) | Self::SecretBasic(secret) | Self::SecretPost(secret) => {
                Some(secret)
            }
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
        other
            .is_listed(listed)
            .then(|| Self::Secret(secret.clone()).by_method(other))
    }

    /// The `Authorization` header of `client_secret_basic`, both parts form-encoded first (RFC 6749
    /// section 2.3.1). `None` for the other methods.
    pub(crate) fn basic_header(&self, client_id: &str) -> Option<HeaderValue> {
        let Self::SecretBasic(secret) = self else {
            return None;
        };
        client_secret_basic(client_id, secret)
    }
}

impl ClientInformation {
    /// The credentials of this client at an authorization server.
    pub(crate) fn at(self, issuer: Issuer) -> ClientCredentials {
        ClientCredentials {
            issuer,
            client_id: self.client_id,
            authentication: self.authentication,
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    /// I4: a secret without a method is sent by the method that the server lists, in the header by
    /// default.
    #[test]
    fn a_secret_is_sent_by_the_listed_method() {
        let secret = ClientAuthentication::Secret(Secret::new("s"));
        let at = |listed: Option<&[&str]>| {
            let listed = listed.map(|listed| {
                listed
                    .iter()
                    .map(|one| (*one).to_owned())
                    .collect::<Vec<_>>()
            });
            secret.resolved(listed.as_deref())
        };
        let basic = ClientAuthentication::SecretBasic(Secret::new("s"));
        let post = ClientAuthentication::SecretPost(Secret::new("s"));
        assert_eq!(at(None), basic);
        assert_eq!(at(Some(&["none"])), basic);
        assert_eq!(
            at(Some(&["client_secret_basic", "client_secret_post"])),
            post
        );
        assert_eq!(at(Some(&["client_secret_basic"])), basic);
        assert_eq!(at(Some(&["none", "client_secret_post"])), post);
        assert_eq!(post.resolved(None), post);
    }

    /// I4: the other listed method is the alternative; the user's choice is exact.
    #[test]
    fn a_secret_has_one_alternative() {
        use ClientAuthentication::{None as Public, Secret as Any, SecretBasic, SecretPost};
        let secret = || Secret::new("s");
        let both = [
            "client_secret_basic".to_owned(),
            "client_secret_post".to_owned(),
        ];
        assert_eq!(
            SecretBasic(secret()).alternative(Some(&both)),
            Some(SecretPost(secret()))
        );
        assert_eq!(
            SecretPost(secret()).alternative(Some(&both)),
            Some(SecretBasic(secret()))
        );
        assert_eq!(SecretBasic(secret()).alternative(Some(&both[..1])), None);

        // Without a list, a server supports basic.
        assert_eq!(
            SecretPost(secret()).alternative(None),
            Some(SecretBasic(secret()))
        );
        assert_eq!(SecretBasic(secret()).alternative(None), None);
        assert_eq!(Public.alternative(Some(&both)), None);

        for held in [Any(secret()), SecretBasic(secret()), SecretPost(secret())] {
            assert_eq!(held.by_method(TokenAuthMethod::None), Public);
            assert_eq!(
                held.by_method(TokenAuthMethod::ClientSecretPost),
                SecretPost(secret())
            );
            assert_eq!(
                held.by_method(TokenAuthMethod::ClientSecretBasic),
                SecretBasic(secret())
            );
        }
        assert_eq!(Public.by_method(TokenAuthMethod::ClientSecretBasic), Public);
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
