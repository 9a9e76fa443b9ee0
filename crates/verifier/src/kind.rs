//! Whether a token is an access token that a plain bearer may use (RFC 9068, RFC 8725 section 3.11).

use crate::{VerifyError, claims::Statement};

/// Claims that only other kinds of token carry: ID tokens (OpenID Connect Core 3.3.2.11) and security events (RFC 8417).
pub(crate) const TELLING_CLAIMS: [&str; 4] = ["at_hash", "c_hash", "s_hash", "events"];
/// What Keycloak writes into a `typ` claim of tokens that are for itself or for the client alone.
const OTHER_KINDS: [&str; 4] = ["ID", "Refresh", "Offline", "Logout"];

/// Judges the header's `typ`: absent, `JWT` or `at+jwt`, in any case, with or without `application/`.
pub(crate) fn judge_type(typ: Option<&str>, require_at_jwt: bool) -> Result<(), VerifyError> {
    let allowed = match typ.map(without_prefix) {
        Some(typ) if typ.eq_ignore_ascii_case("at+jwt") => true,
        Some(typ) => !require_at_jwt && typ.eq_ignore_ascii_case("JWT"),
        None => !require_at_jwt,
    };
    if allowed { Ok(()) } else { Err(VerifyError::TypeNotAllowed) }
}

fn without_prefix(typ: &str) -> &str {
    const PREFIX: &str = "application/";
    match typ.get(..PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => &typ[PREFIX.len()..],
        _ => typ,
    }
}

/// Refuses what the claims show to be another kind of token, and tokens that are bound to their sender.
pub(crate) fn judge_claims(said: &Statement<'_>) -> Result<(), VerifyError> {
    let is_other_kind = |typ: &str| OTHER_KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(typ));
    if said.tells_another_kind || said.typ.is_some_and(is_other_kind) {
        return Err(VerifyError::NotAnAccessToken);
    }
    if said.has_cnf { Err(VerifyError::SenderConstrained) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(typ: Option<&str>, require_at_jwt: bool) -> Option<&'static str> {
        judge_type(typ, require_at_jwt).err().map(|error| error.code())
    }

    /// C4: absent, `JWT` and `at+jwt` are accepted, in any case, with or without `application/`.
    #[test]
    fn access_token_types_are_accepted() {
        for typ in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/jwt", "Application/At+Jwt"] {
            assert_eq!(code(Some(typ), false), None, "{typ}");
        }
        assert_eq!(code(None, false), None);
    }

    /// C4: `require_at_jwt` narrows it to `at+jwt`.
    #[test]
    fn at_jwt_can_be_required() {
        for typ in ["at+jwt", "application/at+jwt", "AT+JWT"] {
            assert_eq!(code(Some(typ), true), None, "{typ}");
        }
        for typ in [None, Some("JWT"), Some("application/jwt")] {
            assert_eq!(code(typ, true), Some("token.type_not_allowed"), "{typ:?}");
        }
    }

    /// C4: every other type is refused, near ones included.
    #[test]
    fn other_types_are_refused() {
        for typ in [
            "",
            "logout+jwt",
            "dpop+jwt",
            "secevent+jwt",
            "id_token+jwt",
            "token-introspection+jwt",
            "at+jwt ",
            " JWT",
            "application/",
            "application/application/jwt",
            "text/jwt",
            // As long as the prefix that may be there.
            "applic4tion/jwt",
            "message/jwt+at+jwt",
            "at jwt",
            "jwté",
            "é",
        ] {
            assert_eq!(code(Some(typ), false), Some("token.type_not_allowed"), "{typ:?}");
        }
    }
}
