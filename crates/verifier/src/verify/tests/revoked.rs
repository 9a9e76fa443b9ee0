//! Tokens that an issuer in the same process has revoked.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::RwLock;

use super::*;
use crate::RevokedTokens;

#[derive(Debug, Default)]
struct Revoked {
    ids: RwLock<HashSet<String>>,
    is_incomplete: AtomicBool,
}

impl RevokedTokens for Revoked {
    fn is_revoked(&self, sid: Option<&str>, jti: Option<&str>) -> bool {
        let mut ids = sid.into_iter().chain(jti);
        ids.any(|id| self.ids.read().contains(id))
    }

    fn is_complete(&self) -> bool {
        !self.is_incomplete.load(Ordering::Relaxed)
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
        revoked.ids.write().insert(id.to_owned());
        fixture.issuer.drop_cached_tokens();
    };
    revoke("t2");
    assert_eq!(fixture.rejection(&first).await, None);
    assert_eq!(fixture.rejection(&second).await, Some("token.revoked"));
    revoke("s1");
    assert_eq!(fixture.rejection(&first).await, Some("token.revoked"));
    assert_eq!(fixture.rejection(&third).await, None);
}

/// While revocations may be missing, a token is not rejected, but not accepted either.
#[tokio::test(start_paused = true)]
async fn tokens_wait_until_all_revocations_are_known() {
    let revoked = Arc::new(Revoked::default());
    revoked.is_incomplete.store(true, Ordering::Relaxed);
    revoked.ids.write().insert("t2".to_owned());
    let known = Arc::clone(&revoked);
    let fixture = Fixture::with(|settings| settings.revoked = Some(known));
    fixture.issuer.refresh_now().await.unwrap();
    let token = |jti: &str| fixture.test_issuer.token().claim("jti", jti).sign();
    let (valid, ended) = (token("t1"), token("t2"));
    assert_eq!(fixture.rejection(&valid).await, Some("issuer.unavailable"));
    assert_eq!(fixture.rejection(&ended).await, Some("token.revoked"));
    revoked.is_incomplete.store(false, Ordering::Relaxed);
    assert_eq!(fixture.rejection(&valid).await, None);
    assert_eq!(fixture.rejection(&ended).await, Some("token.revoked"));
}
