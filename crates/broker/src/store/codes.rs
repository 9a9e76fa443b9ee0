//! Authorization codes, and the beginning of grants.

use std::error::Error;

use portcullis_authorization_server::{
    AuthorizationCode, ErrorResponse, Redemption, StoreError, random_secret,
};
use portcullis_metadata::{Secret, UnixTime};

use super::{
    BrokerStore, CODE_LIFETIME, MAX_ATTEMPTS, MAX_CODES, MAX_GRANTS, MAX_GRANTS_OF_USER,
    MAX_GRANTS_OF_USER_AND_CLIENT, MAX_SURPLUS, RefreshToken, USED_CODE_LIFETIME, contention, hash,
    malformed, sealed_records::SealedChange,
};
use crate::{
    keys::Purpose,
    observer::EndReason,
    records::{
        CODES, CodeRecord, ENDS, GRANTS, GRANTS_OF_SIGN_INS, GRANTS_OF_USERS, GrantRecord,
        GrantTerms, SIGN_INS, SignInRecord,
    },
};

/// The length of the hash that begins the keys of an index.
pub(super) const INDEX_PREFIX: usize = 16;

impl BrokerStore {
    pub(super) async fn store_code(&self, code: &AuthorizationCode) -> Result<Secret, StoreError> {
        let text = random_secret(32)?;
        let key = hash(&[text.secret()]);
        let mut change = self.records.change();
        change.expect_below(CODES, MAX_CODES);
        let expires = self.now().saturating_add(CODE_LIFETIME);
        change.put(CODES, &key, &CodeRecord::new(code), expires)?;
        match change.commit().await? {
            true => Ok(text),
            false => Err(contention()),
        }
    }

    pub(super) async fn redeem(
        &self,
        code: &str,
        check: impl Fn(&AuthorizationCode) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Redemption, StoreError> {
        let key = hash(&[code]);
        for _ in 0..MAX_ATTEMPTS {
            let Some(current) = self.records.read::<CodeRecord>(CODES, &key).await? else {
                return Ok(Redemption::Unknown);
            };
            let code = current.value.code().ok_or_else(malformed)?;
            if let Err(error) = check(&code) {
                return Ok(Redemption::Rejected(error));
            }
            if current.value.is_used {
                return Ok(Redemption::Used(code.grant));
            }
            let id = code.grant.id.as_bytes();
            let Some(sign_in) = self.read_sign_in(&code.grant.id).await? else {
                return Err(StoreError::GrantEnded);
            };
            let now = self.now();
            let expires = now.saturating_add(self.lifetimes.grant);
            let (epoch, _) = self
                .records
                .keys()
                .current(Purpose::RefreshTokens)
                .ok_or_else(malformed)?;
            let refresh_token = RefreshToken {
                epoch,
                grant_id: code.grant.id.clone(),
                generation: 0,
            };
            let grant = GrantRecord {
                terms: GrantTerms::new(&code.grant),
                begun: now.as_secs(),
                last_used: now.as_secs(),
                generation: code.is_refreshable.then_some(0),
                rotations: Vec::new(),
            };
            let used = CodeRecord {
                is_used: true,
                ..CodeRecord::new(&code)
            };
            let mut change = self.records.change();
            change.expect(CODES, &key, &current);
            change.expect(SIGN_INS, id, &sign_in);
            change.expect_absent(ENDS, id);
            change.expect_absent(GRANTS, id);
            change.expect_below(GRANTS, MAX_GRANTS);
            change.put(CODES, &key, &used, now.saturating_add(USED_CODE_LIFETIME))?;
            self.put_grant(&mut change, &code.grant.id, &grant, expires)?;
            self.put_sign_in(&mut change, &code.grant.id, &sign_in.value, expires)?;
            if change.commit().await? {
                if let Err(error) = self.end_surplus_grants(&code.grant.id, &grant.terms).await {
                    tracing::warn!(error = &error as &dyn Error, "a surplus grant did not end");
                }
                let refresh_token = match code.is_refreshable {
                    true => Some(
                        refresh_token
                            .to_secret(self.records.keys())
                            .ok_or_else(malformed)?,
                    ),
                    false => None,
                };
                return Ok(Redemption::Redeemed {
                    grant: code.grant,
                    refresh_token,
                });
            }
            // The code was used meanwhile, the grant has ended, or the check of the user wrote.
            if self.ends.contains(&code.grant.id) {
                return Err(StoreError::GrantEnded);
            }
        }
        Err(contention())
    }

    /// Writes a grant and its entry in the index of users.
    pub(super) fn put_grant(
        &self,
        change: &mut SealedChange<'_>,
        id: &str,
        grant: &GrantRecord,
        expires: UnixTime,
    ) -> Result<(), StoreError> {
        change.put(GRANTS, id.as_bytes(), grant, expires)?;
        let key = index_key(&user_prefix(&grant.terms.subject), id);
        change.put_plain(GRANTS_OF_USERS, &key, Vec::new(), expires);
        Ok(())
    }

    /// Writes a sign-in and its entries in the index of sign-ins.
    pub(super) fn put_sign_in(
        &self,
        change: &mut SealedChange<'_>,
        grant_id: &str,
        sign_in: &SignInRecord,
        expires: UnixTime,
    ) -> Result<(), StoreError> {
        change.put(SIGN_INS, grant_id.as_bytes(), sign_in, expires)?;
        for prefix in sign_in_prefixes(sign_in) {
            let key = index_key(&prefix, grant_id);
            change.put_plain(GRANTS_OF_SIGN_INS, &key, Vec::new(), expires);
        }
        Ok(())
    }

    /// Ends the grants of a user that are too many with this client, or in total, after the grant
    /// `new` has begun. Those end that were not used for the longest time, and never the new one.
    /// One user with many clients cannot fill the table. Grants that begin at the same time are all
    /// counted, because each has begun before it counts.
    async fn end_surplus_grants(&self, new: &str, terms: &GrantTerms) -> Result<(), StoreError> {
        let limit = MAX_GRANTS_OF_USER + MAX_SURPLUS;
        let ids = self.grants_of_user(&terms.subject, limit).await?;
        if ids.len() <= MAX_GRANTS_OF_USER_AND_CLIENT {
            return Ok(());
        }
        let (mut all, mut same_client) = (Vec::new(), Vec::new());
        for id in ids.into_iter().filter(|id| **id != *new) {
            if let Some(grant) = self.read_grant(&id).await? {
                if grant.value.terms.client_id == terms.client_id {
                    same_client.push((grant.value.last_used, id.clone()));
                }
                all.push((grant.value.last_used, id));
            }
        }
        let (mut earlier, max) = if same_client.len() >= MAX_GRANTS_OF_USER_AND_CLIENT {
            (same_client, MAX_GRANTS_OF_USER_AND_CLIENT)
        } else {
            (all, MAX_GRANTS_OF_USER)
        };
        earlier.sort_unstable();
        // With the new one, as many remain as there may be.
        let surplus = (earlier.len() + 1).saturating_sub(max);
        let store = self.ending_for(EndReason::Evicted);
        for (_, id) in earlier.into_iter().take(surplus) {
            // Another request may have ended it meanwhile.
            if !self.ends.contains(&id) {
                store.end(&id).await?;
            }
        }
        Ok(())
    }
}

/// Returns the beginning of the keys in the index of users.
pub(super) fn user_prefix(subject: &str) -> [u8; INDEX_PREFIX] {
    prefix(&["user", subject])
}

/// Returns the beginnings of the keys in the index of sign-ins: that of the user at the provider,
/// and that of the session, if the provider names it.
pub(super) fn sign_in_prefixes(sign_in: &SignInRecord) -> Vec<[u8; INDEX_PREFIX]> {
    let user = provider_user_prefix(&sign_in.provider, &sign_in.provider_subject);
    let session = sign_in.provider_session.as_deref();
    let session = session.map(|session| provider_session_prefix(&sign_in.provider, session));
    [user].into_iter().chain(session).collect()
}

pub(super) fn provider_user_prefix(provider: &str, subject: &str) -> [u8; INDEX_PREFIX] {
    prefix(&["provider user", provider, subject])
}

pub(super) fn provider_session_prefix(provider: &str, session: &str) -> [u8; INDEX_PREFIX] {
    prefix(&["provider session", provider, session])
}

fn prefix(texts: &[&str]) -> [u8; INDEX_PREFIX] {
    let mut prefix = [0; INDEX_PREFIX];
    prefix.copy_from_slice(&hash(texts)[..INDEX_PREFIX]);
    prefix
}

pub(super) fn index_key(prefix: &[u8], id: &str) -> Vec<u8> {
    [prefix, id.as_bytes()].concat()
}
