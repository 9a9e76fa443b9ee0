//! Checks that a token is an access token that any bearer may use (RFC 9068, RFC 8725 section
//! 3.11).

use super::statement::{AudienceMatch, Statement};
use crate::error::VerifyError;

/// Values of the `typ` claim in Keycloak's tokens that are not access tokens.
const FOREIGN_TYPES: [&str; 4] = ["ID", "Refresh", "Offline", "Logout"];

/// Values of `token_use` in access tokens: Amazon Cognito's, and that of servers which name it as
/// RFC 8693 does.
const ACCESS_USES: [&str; 2] = ["access", "access_token"];

/// Checks the header's `typ`: it must be missing, `JWT` or `at+jwt`, in any case, with or without
/// `application/`. `require_at_jwt` excludes the first two.
pub(crate) fn check_header_type(
    typ: Option<&str>,
    require_at_jwt: bool,
) -> Result<(), VerifyError> {
    let is_allowed = match typ.map(without_prefix) {
        Some(typ) if typ.eq_ignore_ascii_case("at+jwt") => true,
        Some(typ) => !require_at_jwt && typ.eq_ignore_ascii_case("JWT"),
        None => !require_at_jwt,
    };
    if is_allowed {
        Ok(())
    } else {
        Err(VerifyError::TypeNotAllowed)
    }
}

/// Removes `application/`, which senders of a media type may omit (RFC 7515 section 4.1.9).
fn without_prefix(typ: &str) -> &str {
    const PREFIX: &str = "application/";
    match typ.get(..PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => &typ[PREFIX.len()..],
        _ => typ,
    }
}

/// Rejects tokens whose claims are those of another token type, and sender-constrained tokens.
///
/// If the audience is the issuer's own name for the resource, the token must also have a claim of
/// access tokens: an ID token of Microsoft Entra ID has the same `aud`.
pub(crate) fn check_claims(statement: &Statement<'_>) -> Result<(), VerifyError> {
    let is_foreign = |typ: &str| {
        FOREIGN_TYPES
            .iter()
            .any(|foreign| foreign.eq_ignore_ascii_case(typ))
    };
    let is_other_use = statement
        .token_use
        .is_some_and(|token_use| !ACCESS_USES.contains(&token_use));
    if statement.has_foreign_claim || statement.typ.is_some_and(is_foreign) || is_other_use {
        return Err(VerifyError::NotAnAccessToken);
    }
    if statement.audience == Some(AudienceMatch::Application) && !statement.has_access_claim {
        return Err(VerifyError::NotAnAccessToken);
    }
    if statement.has_cnf {
        Err(VerifyError::SenderConstrained)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(typ: Option<&str>, require_at_jwt: bool) -> Option<&'static str> {
        check_header_type(typ, require_at_jwt)
            .err()
            .map(|error| error.code())
    }

    /// C4: absent, `JWT` and `at+jwt` are accepted, in any case, with or without `application/`.
    #[test]
    fn access_token_types_are_accepted() {
        for typ in [
            "JWT",
            "jwt",
            "at+jwt",
            "AT+JWT",
            "application/jwt",
            "Application/At+Jwt",
        ] {
            assert_eq!(code(Some(typ), false), None, "{typ}");
        }
        assert_eq!(code(None, false), None);
    }

    /// C4: with `require_at_jwt`, only `at+jwt` is accepted.
    #[test]
    fn at_jwt_can_be_required() {
        for typ in ["at+jwt", "application/at+jwt", "AT+JWT"] {
            assert_eq!(code(Some(typ), true), None, "{typ}");
        }
        for typ in [None, Some("JWT"), Some("application/jwt")] {
            assert_eq!(code(typ, true), Some("token.type_not_allowed"), "{typ:?}");
        }
    }

    /// C4: every other type is rejected, including similar ones.
    #[test]
    fn other_types_are_rejected() {
        for typ in [
            "",
            "logout+jwt",
            "dpop+jwt",
            "secevent+jwt",
            "refresh+jwt",
            "JOSE",
            "id_token+jwt",
            "token-introspection+jwt",
            "at+jwt ",
            " JWT",
            "application/",
            "application/application/jwt",
            "text/jwt",
            // The same length as the optional prefix.
            "applic4tion/jwt",
            "message/jwt+at+jwt",
            "at jwt",
            "jwté",
            "é",
        ] {
            assert_eq!(
                code(Some(typ), false),
                Some("token.type_not_allowed"),
                "{typ:?}"
            );
        }
    }
}
