use crate::Issuer;

/// Why an authorization response must not be used (RFC 9207 section 2.4).
///
/// It never repeats the `iss` that was received: whoever sent it may be an attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseIssuerError {
    /// The server says that it always sends `iss`, and there is none.
    #[error("the authorization response has no `iss`, which its server promises to send")]
    Missing,
    /// `iss` names another issuer than the one that was asked.
    #[error("the authorization response comes from another issuer")]
    Mismatch,
}

impl ResponseIssuerError {
    /// A stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "response.issuer_missing",
            Self::Mismatch => "response.issuer_mismatch",
        }
    }
}

/// Judges the `iss` parameter of an authorization response, success or error, before anything else of the
/// response is used (RFC 9207 section 2.4).
///
/// `expected` is the issuer kept beside the request; `advertised` is its metadata's
/// `authorization_response_iss_parameter_supported`; `received` is the parameter after form decoding.
///
/// | advertised | received | outcome |
/// |---|---|---|
/// | yes | yes | must be identical |
/// | yes | no | refused |
/// | no | yes | must be identical |
/// | no | no | accepted |
///
/// Identical means byte for byte; no URL normalization takes part.
///
/// # Errors
/// As the table says. None of the response's members may then be acted on or shown.
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

    /// I2: the four rows.
    #[test]
    fn the_table_holds() {
        let issuer = Issuer::parse("https://issuer.example/a").unwrap();
        let same = Some("https://issuer.example/a");
        let other = Some("https://evil.example/a");
        assert_eq!(check_response_issuer(&issuer, true, same), Ok(()));
        assert_eq!(check_response_issuer(&issuer, true, other), Err(ResponseIssuerError::Mismatch));
        assert_eq!(check_response_issuer(&issuer, true, None), Err(ResponseIssuerError::Missing));
        assert_eq!(check_response_issuer(&issuer, false, same), Ok(()));
        assert_eq!(check_response_issuer(&issuer, false, other), Err(ResponseIssuerError::Mismatch));
        assert_eq!(check_response_issuer(&issuer, false, None), Ok(()));
    }

    #[test]
    fn the_codes_tell_the_errors_apart() {
        assert_eq!(ResponseIssuerError::Missing.code(), "response.issuer_missing");
        assert_eq!(ResponseIssuerError::Mismatch.code(), "response.issuer_mismatch");
    }

    /// I2: no normalization, so each of these is another issuer.
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
