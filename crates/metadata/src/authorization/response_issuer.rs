use crate::identifier::Issuer;

/// Why an authorization response must be rejected (RFC 9207 section 2.4).
///
/// The error does not contain the received `iss`, which an attacker may have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseIssuerError {
    /// The server's metadata announces `iss`, but the response has none.
    #[error("the authorization response has no `iss`, although the server's metadata announces it")]
    Missing,
    /// `iss` is not the issuer to which the request was sent.
    #[error("the authorization response comes from another issuer")]
    Mismatch,
}

impl ResponseIssuerError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "response.issuer_missing",
            Self::Mismatch => "response.issuer_mismatch",
        }
    }
}

/// Validates the `iss` parameter of an authorization response (RFC 9207 section 2.4). Call it for
/// success and error responses, before any other parameter is used.
///
/// `expected` is the issuer to which the request was sent. `advertised` is
/// `authorization_response_iss_parameter_supported` from its metadata. `received` is the parameter
/// after form decoding.
///
/// | advertised | received | result |
/// |---|---|---|
/// | yes | yes | accepted if identical |
/// | yes | no | rejected |
/// | no | yes | accepted if identical |
/// | no | no | accepted |
///
/// Issuers are compared byte for byte, without URL normalization.
///
/// # Errors
/// Fails as in the table. The caller must then neither use nor display any parameter of the
/// response.
pub fn check_response_issuer(
    expected: &Issuer,
    advertised: bool,
    received: Option<&str>,
) -> Result<(), ResponseIssuerError> {
    match received {
        Some(received) if received == expected.as_str() => Ok(()),
        Some(_) => Err(ResponseIssuerError::Mismatch),
        None if advertised => Err(ResponseIssuerError::Missing),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I2: the four rows of the table.
    #[test]
    fn all_four_combinations() {
        let issuer = Issuer::parse("https://issuer.example/a").unwrap();
        let same = Some("https://issuer.example/a");
        let other = Some("https://evil.example/a");
        assert_eq!(check_response_issuer(&issuer, true, same), Ok(()));
        assert_eq!(
            check_response_issuer(&issuer, true, other),
            Err(ResponseIssuerError::Mismatch)
        );
        assert_eq!(
            check_response_issuer(&issuer, true, None),
            Err(ResponseIssuerError::Missing)
        );
        assert_eq!(check_response_issuer(&issuer, false, same), Ok(()));
        assert_eq!(
            check_response_issuer(&issuer, false, other),
            Err(ResponseIssuerError::Mismatch)
        );
        assert_eq!(check_response_issuer(&issuer, false, None), Ok(()));
    }

    #[test]
    fn codes_are_distinct() {
        assert_eq!(
            ResponseIssuerError::Missing.code(),
            "response.issuer_missing"
        );
        assert_eq!(
            ResponseIssuerError::Mismatch.code(),
            "response.issuer_mismatch"
        );
    }

    /// I2: issuers are not normalized, so equivalent URLs are rejected.
    #[test]
    fn equivalent_urls_do_not_match() {
        let issuer = Issuer::parse("https://issuer.example/a").unwrap();
        for received in [
            "https://issuer.example/a/",
            "https://ISSUER.example/a",
            "HTTPS://issuer.example/a",
            "https://issuer.example:443/a",
            "https://issuer.example/%61",
            "",
        ] {
            assert_eq!(
                check_response_issuer(&issuer, true, Some(received)),
                Err(ResponseIssuerError::Mismatch),
                "{received}"
            );
        }
    }
}
