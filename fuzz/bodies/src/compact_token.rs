//! Feeds input to the parser of compact tokens.

use portcullis_jose::{AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::{AccessTokenClaims, JwkSet, unverified_issuer};

const MAX_TOKEN: usize = 16 * 1024;

/// Parses a token. An accepted token has exactly one spelling, and an empty key set does not verify
/// it.
pub fn compact_token(data: &[u8]) {
    let Ok(token) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(compact) = CompactJws::parse(token, MAX_TOKEN) else {
        return;
    };
    assert!(token.len() <= MAX_TOKEN);
    assert_eq!(token.matches('.').count(), 2);
    assert!(CompactJws::parse(token, token.len() - 1).is_err());

    for altered in [
        format!("{token}."),
        format!(" {token}"),
        token.replacen('.', "=.", 1),
        token.replacen('.', " .", 1),
    ] {
        assert!(
            CompactJws::parse(&altered, MAX_TOKEN).is_err(),
            "{altered:?}"
        );
    }
    if let Ok((keys, _)) = KeySet::from_jwks(&JwkSet::default(), AlgorithmSet::default()) {
        assert!(keys.verify(&compact).is_err());
    }
    if let Ok(claims) = AccessTokenClaims::parse(compact.unverified_payload()) {
        assert_eq!(
            unverified_issuer(compact.unverified_payload()),
            Ok(claims.iss)
        );
    }
}
