//! What an issuer's tokens have in common: read once, and recognized from then on.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use arc_swap::ArcSwapOption;
use portcullis_jose::{CompactJws, KnownHeader};
use portcullis_metadata::{ClaimsError, Scopes, UnverifiedClaims};

/// Of so many tokens that look different, one is learnt: an issuer with many kinds of token causes few changes.
const PATIENCE: u32 = 16;

/// The protected header and the scopes of most tokens of one issuer.
///
/// Only what was verified is learnt. What was learnt speeds up, and decides nothing: a text that is the same byte for byte
/// is read the same.
#[derive(Default)]
pub(crate) struct Usual {
    header: Learnt<KnownHeader>,
    scopes: Learnt<KnownScopes>,
}

struct KnownScopes {
    text: Box<str>,
    scopes: Scopes,
}

impl Usual {
    /// The usual header, if that of this token is the same.
    pub(crate) fn header_of(&self, token: &str) -> Option<Arc<KnownHeader>> {
        self.header.held.load().as_ref().filter(|header| header.is_that_of(token)).cloned()
    }

    /// Takes note of the header of a verified token that has another one than the usual.
    pub(crate) fn learn_header(&self, token: &CompactJws<'_>) {
        self.header.learn(|| KnownHeader::of(token));
    }

    /// The scopes of a token whose signature was verified.
    ///
    /// # Errors
    /// Those of [`UnverifiedClaims::scopes`].
    pub(crate) fn scopes_of(&self, claims: &UnverifiedClaims<'_>) -> Result<Scopes, ClaimsError> {
        let Some(text) = claims.scope_str() else { return claims.scopes() };
        if let Some(known) = self.scopes.held.load().as_ref().filter(|known| *known.text == *text) {
            return Ok(known.scopes.clone());
        }
        let scopes = claims.scopes()?;
        self.scopes.learn(|| KnownScopes { text: text.into(), scopes: scopes.clone() });
        Ok(scopes)
    }
}

struct Learnt<T> {
    held: ArcSwapOption<T>,
    others: AtomicU32,
}

impl<T> Learnt<T> {
    fn learn(&self, make: impl FnOnce() -> T) {
        if self.others.fetch_add(1, Ordering::Relaxed).is_multiple_of(PATIENCE) {
            self.held.store(Some(Arc::new(make())));
        }
    }
}

impl<T> Default for Learnt<T> {
    fn default() -> Self {
        Self { held: ArcSwapOption::empty(), others: AtomicU32::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes_of(usual: &Usual, payload: &str) -> Result<String, &'static str> {
        let claims = UnverifiedClaims::parse(payload.as_bytes()).unwrap();
        usual.scopes_of(&claims).map(|scopes| scopes.to_string()).map_err(|error| error.code())
    }

    fn known(usual: &Usual) -> Option<String> {
        usual.scopes.held.load().as_ref().map(|known| known.text.to_string())
    }

    /// The scopes of a token are its own, whatever those of others were.
    #[test]
    fn scopes_are_those_of_the_token() {
        let usual = Usual::default();
        for _ in 0..3 * PATIENCE {
            assert_eq!(scopes_of(&usual, r#"{"scope":"b a"}"#).unwrap(), "a b");
            assert_eq!(scopes_of(&usual, r#"{"scope":"b a admin"}"#).unwrap(), "a admin b");
            assert_eq!(scopes_of(&usual, r#"{"scope":"b"}"#).unwrap(), "b");
            assert_eq!(scopes_of(&usual, r#"{"scope":""}"#).unwrap(), "");
            assert_eq!(scopes_of(&usual, r#"{"scp":"b a"}"#).unwrap(), "a b");
            assert_eq!(scopes_of(&usual, r#"{"scp":["b","c"]}"#).unwrap(), "b c");
            assert_eq!(scopes_of(&usual, "{}").unwrap(), "");
            assert_eq!(scopes_of(&usual, r#"{"scope":"a\"b"}"#), Err("claims.scope"));
            assert_eq!(scopes_of(&usual, r#"{"scope":7}"#), Err("claims.type"));
        }
    }

    /// What most tokens have is known at some point, and one that differs does not change it.
    #[test]
    fn what_is_usual_is_learnt() {
        let usual = Usual::default();
        scopes_of(&usual, r#"{"scope":"first"}"#).unwrap();
        assert_eq!(known(&usual).as_deref(), Some("first"));
        for _ in 1..PATIENCE {
            scopes_of(&usual, r#"{"scope":"usual"}"#).unwrap();
            assert_eq!(known(&usual).as_deref(), Some("first"));
        }
        scopes_of(&usual, r#"{"scope":"usual"}"#).unwrap();
        assert_eq!(known(&usual).as_deref(), Some("usual"));
        scopes_of(&usual, r#"{"scope":"seldom"}"#).unwrap();
        assert_eq!(known(&usual).as_deref(), Some("usual"));
    }

    /// What is malformed is not learnt.
    #[test]
    fn malformed_scopes_are_not_learnt() {
        let usual = Usual::default();
        assert_eq!(scopes_of(&usual, r#"{"scope":"\t"}"#), Err("claims.scope"));
        assert_eq!(known(&usual), None);
    }
}
