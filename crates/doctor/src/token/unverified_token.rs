//! [`UnverifiedToken`]: what a token says, without any check.

use portcullis_jose::{CompactJws, JoseError};
use portcullis_metadata::{AccessToken, Scopes, UnixTime, UnverifiedClaims};
use portcullis_verifier::{VerifierSettings, VerifyError};

use crate::{Finding, Rule, text};

const SHOWN: Rule = Rule {
    id: "token.shown",
    source: "RFC 9068 section 2",
};

/// A JWT whose signature is not verified.
pub(super) struct UnverifiedToken {
    /// The header and the claims that concern the resource, as information.
    pub(super) notes: Vec<Finding>,
    pub(super) scopes: Scopes,
}

/// Why a token is not parsed.
pub(super) enum NotParsed {
    /// It does not have the form of a JWT.
    Opaque,
    /// It is not a well-formed signed JWT, or is too long.
    Malformed(VerifyError),
}

impl UnverifiedToken {
    /// Parses a JWT. It is malformed if it violates the verifier's rule
    /// [`Form`](portcullis_verifier::TokenRule::Form).
    pub(super) fn parse(token: &AccessToken, now: UnixTime) -> Result<Self, NotParsed> {
        let token = token.secret();
        let jws = CompactJws::parse(token, VerifierSettings::DEFAULT_MAX_TOKEN_BYTES).map_err(
            |error| match error {
                JoseError::TooLarge { .. } => NotParsed::Malformed(error.into()),
                // The header of a JWT is an encoded JSON object, which begins with `{"` or `{ `.
                _ if token.starts_with("ey") && token.contains('.') => {
                    NotParsed::Malformed(error.into())
                }
                _ => NotParsed::Opaque,
            },
        )?;
        let malformed = |error| NotParsed::Malformed(VerifyError::Claims(error));
        let claims = UnverifiedClaims::parse(jws.unverified_payload()).map_err(malformed)?;
        let scopes = claims.scopes().map_err(malformed)?;

        let header = jws.header();
        let kid = header.kid().unwrap_or("none");
        let typ = header.typ().unwrap_or("none");
        let header = format!(
            "alg {}, kid {}, typ {}",
            header.alg(),
            text::quoted(kid),
            text::quoted(typ)
        );
        let note = |name: &str, value: Option<String>| {
            Finding::note(SHOWN, format!("{name}: {}", value.unwrap_or("none".into())))
        };
        let notes = vec![
            note("header", Some(header)),
            note("iss", claims.iss().map(text::quoted)),
            note("sub", claims.sub().map(text::quoted)),
            note("aud", claims.audience().map(text::list)),
            note(
                "client",
                claims.client_id().or(claims.azp()).map(text::quoted),
            ),
            note(
                "scope",
                Some(text::list(scopes.iter())).filter(|scopes| !scopes.is_empty()),
            ),
            note("exp", claims.exp().map(|exp| distance(exp, now))),
        ];
        Ok(Self { notes, scopes })
    }
}

/// A time in seconds, and its distance from now.
fn distance(exp: UnixTime, now: UnixTime) -> String {
    if exp > now {
        format!(
            "{} ({} s from now)",
            exp.as_secs(),
            exp.saturating_duration_since(now).as_secs()
        )
    } else {
        format!(
            "{} ({} s ago)",
            exp.as_secs(),
            now.saturating_duration_since(exp).as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_has_a_direction() {
        let now = UnixTime::from_secs(100);
        assert_eq!(
            distance(UnixTime::from_secs(160), now),
            "160 (60 s from now)"
        );
        assert_eq!(distance(UnixTime::from_secs(100), now), "100 (0 s ago)");
        assert_eq!(distance(UnixTime::from_secs(40), now), "40 (60 s ago)");
    }

    #[test]
    fn only_a_jwt_can_be_malformed() {
        let code = |token: &str| match UnverifiedToken::parse(
            &AccessToken::new(token),
            UnixTime::from_secs(0),
        ) {
            Ok(_) => "parsed",
            Err(NotParsed::Opaque) => "opaque",
            Err(NotParsed::Malformed(error)) => error.code(),
        };
        for (token, expected) in [
            ("", "opaque"),
            ("eyJvcGFxdWU", "opaque"),
            ("v4.public.AAAA.AAAA", "opaque"),
            ("a.b.c.d.e", "opaque"),
            (&"x".repeat(20_000), "token.too_large"),
            // The header is {"alg":"RS256"} or {"alg":"HS256"}, and the payload is {}, [] or
            // {"scope":1}.
            ("eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "parsed"),
            ("eyJhbGciOiJSUzI1NiJ9.e30", "token.malformed"),
            ("eyJhbGciOiJSUzI1NiJ9.W10.c2ln", "claims.not_an_object"),
            ("eyJhbGciOiJSUzI1NiJ9.eyJzY29wZSI6MX0.c2ln", "claims.type"),
            (
                "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
                "token.algorithm_unsupported",
            ),
            ("eyJhbGciOiJSUzI1NiJ9.a.b.c.d", "token.encrypted"),
        ] {
            assert_eq!(code(token), expected, "{token}");
        }
    }
}
