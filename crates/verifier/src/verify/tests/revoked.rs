//! Tokens that an issuer in the same process has revoked.

use std::collections::HashSet;

use parking_lot::RwLock;

use super::*;
use crate::RevokedTokens;

#[derive(Debug, Default)]
struct Revoked(RwLock<HashSet<String>>);

impl RevokedTokens for Revoked {
    fn is_revoked(&self, sid: Option<&str>, jti: Option<&str>) -> bool {
        let mut ids = sid.into_iter().chain(jti);
        ids.any(|id| self.0.read().contains(id))
    }
}

/// A revoked token is rejected, also if it was cached. Other tokens stay valid.
#[tokio::test(start_paused = true)]
async fn a_revoked_token_is_rejected() {
    let revoked = Arc::new(Revoked::default());
    let known = Arc::clone(&revoked);
    let fixture = Fixture::with(|settings| settings.revoked = Some(known));
    fixture.issuer.refresh_now().await.unwrap();
    let token = |sid: &str, jti: &str| {
        let token = fixture.test_issuer.token();
        token.claim("sid", sid).claim("jti", jti).sign()
    };
    let (first, second, third) = (token("s1", "t1"), token("s1", "t2"), token("s2", "t3"));
    for token in [&first, &second, &third] {
        assert_eq!(fixture.rejection(token).await, None);
    }
    let revoke = |id: &str| {
        revoked.0.write().insert(id.to_owned());
        fixture.issuer.drop_cached_tokens();
    };
    revoke("t2");
    assert_eq!(fixture.rejection(&first).await, None);
    assert_eq!(fixture.rejection(&second).await, Some("token.revoked"));
    revoke("s1");
    assert_eq!(fixture.rejection(&first).await, Some("token.revoked"));
    assert_eq!(fixture.rejection(&third).await, None);
}
