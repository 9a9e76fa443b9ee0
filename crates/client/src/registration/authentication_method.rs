//! [`TokenAuthMethod`]: the client authentication methods that a user can choose.

/// A client authentication method of the token endpoint (RFC 7591 section 2,
/// `token_endpoint_auth_method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenAuthMethod {
    /// `none`: a public client, which has no secret.
    None,
    /// `client_secret_post`: the secret is in the form (RFC 6749 section 2.3.1).
    ClientSecretPost,
    /// `client_secret_basic`: the secret is in the `Authorization` header (RFC 6749 section 2.3.1).
    ClientSecretBasic,
}

impl TokenAuthMethod {
    /// Every method, in the order in which the client prefers them.
    pub const ALL: [Self; 3] = [Self::None, Self::ClientSecretPost, Self::ClientSecretBasic];

    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretPost => "client_secret_post",
            Self::ClientSecretBasic => "client_secret_basic",
        }
    }

    /// The method with this registered name. `None` if the client does not support it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether the server lists it. Without a list, a server supports `client_secret_basic` (RFC
    /// 8414 section 2).
    pub(crate) fn is_listed(self, listed: Option<&[String]>) -> bool {
        match listed {
            Some(listed) => listed.iter().any(|name| name == self.name()),
            None => self == Self::ClientSecretBasic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_their_registered_names() {
        for method in TokenAuthMethod::ALL {
            assert_eq!(TokenAuthMethod::from_name(method.name()), Some(method));
        }
        assert_eq!(TokenAuthMethod::from_name("private_key_jwt"), None);
        let names = ["client_secret_post".to_owned()];
        let listed = |listed| TokenAuthMethod::ALL.map(|method| method.is_listed(listed));
        assert_eq!(listed(Some(&names)), [false, true, false]);
        assert_eq!(listed(None), [false, false, true]);
    }
}
