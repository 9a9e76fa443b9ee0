//! [`UnverifiedToken`]: what a token says, without any check.

use portcullis_jose::CompactJws;
use portcullis_metadata::{AccessToken, AccessTokenClaims, UnixTime};

use crate::{Finding, Rule, text};

const SHOWN: Rule = Rule { id: "token.shown", source: "RFC 9068 section 2" };

/// The maximum length of a token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// The unverified header and claims of the token.
pub(super) struct UnverifiedToken {
    /// The algorithm, the key identifier and the type.
    header: String,
    pub(super) claims: AccessTokenClaims,
}

impl UnverifiedToken {
    /// Parses a JWT. `None` for an opaque token, and for one that is malformed or longer than [`MAX_TOKEN`].
    pub(super) fn parse(token: &AccessToken) -> Option<Self> {
        let jws = CompactJws::parse(token.secret(), MAX_TOKEN).ok()?;
        let header = jws.header();
        let kid = header.kid().unwrap_or("none");
        let typ = header.typ().unwrap_or("none");
        let header = format!("alg {}, kid {}, typ {}", header.alg(), text::quoted(kid), text::quoted(typ));
        Some(Self { header, claims: AccessTokenClaims::parse(jws.unverified_payload()).ok()? })
    }

    /// The header and the claims that concern the resource, as information.
    pub(super) fn findings(&self, now: UnixTime) -> Vec<Finding> {
        let claims = &self.claims;
        let note = |name: &str, value: Option<String>| {
            Finding::note(SHOWN, format!("{name}: {}", value.unwrap_or("none".into())))
        };
        let quoted = |value: &Option<String>| value.as_deref().map(text::quoted);
        vec![
            note("header", Some(self.header.clone())),
            note("iss", quoted(&claims.iss)),
            note("sub", quoted(&claims.sub)),
            note("aud", claims.aud.as_ref().map(|audience| text::list(audience.iter()))),
            note("client", quoted(&claims.client_id).or_else(|| quoted(&claims.azp))),
            note("scope", Some(text::list(claims.scope.iter())).filter(|scopes| !scopes.is_empty())),
            note("exp", claims.exp.map(|exp| distance(exp, now))),
        ]
    }
}

/// A time in seconds, and its distance from now.
fn distance(exp: UnixTime, now: UnixTime) -> String {
    if exp > now {
        format!("{} ({} s from now)", exp.as_secs(), exp.saturating_duration_since(now).as_secs())
    } else {
        format!("{} ({} s ago)", exp.as_secs(), now.saturating_duration_since(exp).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_has_a_direction() {
        let now = UnixTime::from_secs(100);
        assert_eq!(distance(UnixTime::from_secs(160), now), "160 (60 s from now)");
        assert_eq!(distance(UnixTime::from_secs(100), now), "100 (0 s ago)");
        assert_eq!(distance(UnixTime::from_secs(40), now), "40 (60 s ago)");
    }

    #[test]
    fn an_opaque_token_is_not_parsed() {
        for token in ["", "opaque", "a.b.c", "e30.e30."] {
            assert!(UnverifiedToken::parse(&AccessToken::new(token)).is_none(), "{token}");
        }
    }
}
