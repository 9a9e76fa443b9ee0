//! [`ClientAuthenticationMode`]: rules of client authentication that differ between servers.

use portcullis_authorization_server::authentication::SecretMethod;

/// Which client authentication the token, revocation and device authorization endpoints accept. All
/// modes except [`Registered`](Self::Registered) imitate servers that clients meet in practice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAuthenticationMode {
    /// The method that the client registered, and no other one (RFC 6749 section 2.3).
    #[default]
    Registered,
    /// As servers built on the Python SDK for MCP: they list `client_secret_post` and
    /// `client_secret_basic`, register `client_secret_post` whichever of them the client requests,
    /// and require `client_id` in the body of every request
    /// (<https://github.com/modelcontextprotocol/python-sdk/issues/3545>).
    PythonSdk,
    /// The registered secret by any listed method, but `client_secret_basic` fails with
    /// `invalid_client`.
    RejectBasic,
    /// The registered secret by any listed method, but `client_secret_post` fails with
    /// `invalid_client`.
    RejectPost,
    /// The registered secret by any listed method, but `client_secret_basic` together with
    /// `client_id` in the body fails with `invalid_client`
    /// (<https://github.com/modelcontextprotocol/python-sdk/issues/3138>).
    BasicWithoutBody,
}

impl ClientAuthenticationMode {
    /// Checks a request against the rules of the imitated server. Does not check the registered
    /// method. The error is a sentence for the client's developer.
    pub(crate) fn check(
        self,
        method: Option<SecretMethod>,
        has_client_id: bool,
    ) -> Result<(), &'static str> {
        match (self, method) {
            (Self::PythonSdk, _) if !has_client_id => Err("Missing client_id"),
            (Self::RejectBasic, Some(SecretMethod::Basic)) => {
                Err("this server rejects client_secret_basic, which it lists")
            }
            (Self::RejectPost, Some(SecretMethod::Post)) => {
                Err("this server rejects client_secret_post, which it lists")
            }
            (Self::BasicWithoutBody, Some(SecretMethod::Basic)) if has_client_id => {
                Err("this server rejects client_secret_basic together with client_id in the body")
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a client may present its secret by another method than the registered one.
    pub(crate) const fn accepts_any_method(self) -> bool {
        matches!(
            self,
            Self::RejectBasic | Self::RejectPost | Self::BasicWithoutBody
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K1: each mode rejects what it names, and nothing else.
    #[test]
    fn each_mode_rejects_one_request() {
        use ClientAuthenticationMode::*;
        let requests = [
            (Some(SecretMethod::Basic), false),
            (Some(SecretMethod::Basic), true),
            (Some(SecretMethod::Post), true),
            (None, true),
        ];
        for (mode, accepted) in [
            (Registered, [true; 4]),
            (PythonSdk, [false, true, true, true]),
            (RejectBasic, [false, false, true, true]),
            (RejectPost, [true, true, false, true]),
            (BasicWithoutBody, [true, false, true, true]),
        ] {
            let found =
                requests.map(|(method, has_client_id)| mode.check(method, has_client_id).is_ok());
            assert_eq!(found, accepted, "{mode:?}");
        }
    }
}
