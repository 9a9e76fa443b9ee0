//! [`BrokerStore`]: codes, grants, refresh tokens, ends and assertions in a store of records.

mod clients;
mod codes;
mod ending;
mod listing;
mod refresh_token;
mod rotation;
pub(crate) mod sealed_records;
mod shared_ends;
#[cfg(test)]
mod tests;

use std::{error::Error as _, sync::Arc, time::Duration};

use portcullis_authorization_server::{
    AuthorizationCode, ErrorResponse, Grant, IssuedToken, Redemption, Rotation, Store, StoreError,
    authentication::MAX_ASSERTION_LIFETIME, client::ClientRegistration,
};
use portcullis_metadata::{Secret, UnixTime};
use portcullis_state_store::records::Table;
use portcullis_verifier::LogoutToken;
use portcullis_verifier::RevokedTokens as _;
use sha2::{Digest as _, Sha256};

use self::sealed_records::{Current, SealedRecords};
pub(crate) use self::{ending::EndedGrant, refresh_token::RefreshToken};
use crate::{
    ends::Ends,
    observer::EndReason,
    records::{
        ASSERTIONS, GRANTS, GrantRecord, LOGOUT_TOKENS, OwnerRecord, SIGN_INS, SharedGrantEnd,
        SignInRecord,
    },
    settings::{BrokerSettings, Lifetimes},
};

/// The time in which a code must be exchanged.
const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// How long a code is remembered after its use, so that a second use is noticed.
const USED_CODE_LIFETIME: Duration = Duration::from_secs(600);
/// How often an operation is tried if other requests change the same records meanwhile.
const MAX_ATTEMPTS: usize = 16;
const MAX_CODES: u64 = 10_000;
const MAX_GRANTS: u64 = 100_000;
const MAX_ENDS: u64 = 200_000;
/// The maximum number of assertions, and that of logout tokens, which are remembered.
const MAX_USED_TOKENS: u64 = 10_000;
/// The maximum number of grants of one user.
const MAX_GRANTS_OF_USER: usize = 500;
/// The maximum number of grants of one user and one client.
const MAX_GRANTS_OF_USER_AND_CLIENT: usize = 50;
/// How many grants of one user are ended at a time that begin beyond the maximum.
const MAX_SURPLUS: usize = 50;
/// By how much the clock of a guard may differ.
const LEEWAY: Duration = Duration::from_secs(60);

/// Codes, grants, refresh tokens, ends and assertions in a store of records.
#[derive(Clone)]
pub(crate) struct BrokerStore {
    records: SealedRecords,
    lifetimes: Lifetimes,
    ends: Arc<Ends>,
    listener: Arc<dyn EndListener>,
    /// Why the grants end that this value ends.
    reason: EndReason,
    max_clients: u64,
}

/// Is told which grants have ended.
pub(crate) trait EndListener: Send + Sync {
    fn grant_ended(&self, id: &str, ended: EndedGrant, reason: EndReason);

    /// Called for a grant whose end cannot be stored. `owner` is `None` if it cannot be read.
    fn end_not_stored(&self, id: &str, owner: Option<OwnerRecord>, reason: EndReason);

    /// Called for a grant that has ended at another replica. `end` is `None` if it cannot be read.
    fn grant_ended_elsewhere(&self, id: &str, at: UnixTime, end: Option<&SharedGrantEnd>);
}

/// The ends of other replicas are not known yet.
#[derive(Debug, thiserror::Error)]
#[error("the ends of sign-ins at other replicas are not known yet")]
struct EndsUnknown;

/// Other requests changed the same records too often.
#[derive(Debug, thiserror::Error)]
#[error("too many requests change the same records")]
struct Contention;

/// A record has a value that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("a record of the broker is malformed")]
struct MalformedRecord;

impl BrokerStore {
    pub(crate) fn new(
        records: SealedRecords,
        settings: &BrokerSettings,
        ends: Arc<Ends>,
        listener: Arc<dyn EndListener>,
    ) -> Self {
        Self {
            records,
            lifetimes: settings.lifetimes,
            ends,
            listener,
            reason: EndReason::Revoked,
            max_clients: settings.clients.max_registered as u64,
        }
    }

    /// Returns the same store, whose ends have another reason.
    pub(crate) fn ending_for(&self, reason: EndReason) -> Self {
        Self {
            reason,
            ..self.clone()
        }
    }

    /// Stores the sign-in of a user, before the code of its grant is issued. It is forgotten if the
    /// code is not exchanged. A logout at the provider ends it from now on.
    pub(crate) async fn add_sign_in(
        &self,
        grant_id: &str,
        sign_in: &SignInRecord,
    ) -> Result<(), StoreError> {
        let expires = self.now().saturating_add(USED_CODE_LIFETIME);
        let mut change = self.records.change();
        change.expect_absent(SIGN_INS, grant_id.as_bytes());
        change.expect_below(SIGN_INS, MAX_GRANTS + MAX_CODES);
        self.put_sign_in(&mut change, grant_id, sign_in, expires)?;
        change.commit().await?.then_some(()).ok_or_else(contention)
    }

    /// Returns the grant with this identifier and the sign-in on which it depends.
    pub(crate) async fn find_grant(
        &self,
        id: &str,
    ) -> Result<Option<(Current<GrantRecord>, SignInRecord)>, StoreError> {
        let grant = self.read_grant(id).await?;
        let sign_in = self.read_sign_in(id).await?;
        Ok(grant
            .zip(sign_in)
            .map(|(grant, sign_in)| (grant, sign_in.value)))
    }

    pub(crate) async fn read_grant(
        &self,
        id: &str,
    ) -> Result<Option<Current<GrantRecord>>, StoreError> {
        self.records.read(GRANTS, id.as_bytes()).await
    }

    pub(crate) async fn read_sign_in(
        &self,
        grant_id: &str,
    ) -> Result<Option<Current<SignInRecord>>, StoreError> {
        self.records.read(SIGN_INS, grant_id.as_bytes()).await
    }

    /// Replaces a sign-in if it is still the one that was read. Returns whether it was.
    pub(crate) async fn replace_sign_in(
        &self,
        grant_id: &str,
        current: &Current<SignInRecord>,
        new: &SignInRecord,
    ) -> Result<bool, StoreError> {
        let mut change = self.records.change();
        change.expect(SIGN_INS, grant_id.as_bytes(), current);
        change.put(SIGN_INS, grant_id.as_bytes(), new, current.expires)?;
        change.commit().await
    }

    /// Returns whether a logout token of a provider was used.
    pub(crate) async fn is_logout_token_used(
        &self,
        provider: &str,
        jti: &str,
    ) -> Result<bool, StoreError> {
        let key = hash(&[provider, jti]);
        let record = self.records.plain().get(LOGOUT_TOKENS, &key).await;
        Ok(record.map_err(sealed_records::failed)?.is_some())
    }

    /// Records that a logout token of a provider was used.
    pub(crate) async fn use_logout_token(
        &self,
        provider: &str,
        token: &LogoutToken,
    ) -> Result<(), StoreError> {
        self.use_once(LOGOUT_TOKENS, provider, &token.jti, token.expires)
            .await
            .map(drop)
    }

    /// Records the identifier of a token until it expires. Returns `false` if it is recorded
    /// already.
    async fn use_once(
        &self,
        table: Table,
        issuer: &str,
        jti: &str,
        expires: UnixTime,
    ) -> Result<bool, StoreError> {
        let key = hash(&[issuer, jti]);
        let mut change = self.records.change();
        change.expect_absent(table, &key);
        change.expect_below(table, MAX_USED_TOKENS);
        change.put_plain(table, &key, Vec::new(), expires);
        change.commit().await
    }

    pub(crate) fn now(&self) -> UnixTime {
        self.records.now()
    }

    pub(crate) fn records(&self) -> &SealedRecords {
        &self.records
    }

    /// Parses a refresh token of this server, without looking for its grant.
    pub(crate) fn parse_refresh_token(&self, token: &str) -> Option<RefreshToken> {
        RefreshToken::parse(self.records.keys(), token)
    }
}

impl Store for BrokerStore {
    async fn register_client(&self, registration: &ClientRegistration) -> Result<(), StoreError> {
        logged(self.store_client(registration).await)
    }

    async fn issue_code(&self, code: AuthorizationCode) -> Result<Secret, StoreError> {
        self.store_code(&code).await
    }

    async fn redeem_code(
        &self,
        code: &str,
        _: Option<&str>,
        check: impl Fn(&AuthorizationCode) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Redemption, StoreError> {
        logged(self.redeem(code, check).await)
    }

    async fn rotate_refresh_token(
        &self,
        token: &str,
        check: impl Fn(&Grant) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Rotation, StoreError> {
        logged(self.rotate(token, check).await)
    }

    async fn find_refresh_token(&self, token: &str) -> Result<Option<Grant>, StoreError> {
        let Some(token) = self.parse_refresh_token(token) else {
            return Ok(None);
        };
        let grant = self.read_grant(&token.grant_id).await?;
        Ok(grant.and_then(|grant| grant.value.terms.grant(&token.grant_id)))
    }

    async fn end_grant(&self, id: &str) -> Result<(), StoreError> {
        logged(self.end(id).await)
    }

    async fn revoke_access_token(&self, id: &str) -> Result<(), StoreError> {
        logged(self.end_access_token(id).await)
    }

    async fn is_active(&self, token: &IssuedToken) -> Result<bool, StoreError> {
        if !self.ends.is_complete() {
            return Err(sealed_records::failed(EndsUnknown));
        }
        let mut ids = token.grant_id.iter().chain(&token.id);
        Ok(!ids.any(|id| self.ends.contains(id)))
    }

    async fn use_assertion(&self, issuer: &str, jti: &str) -> Result<bool, StoreError> {
        let expires = self.now().saturating_add(MAX_ASSERTION_LIFETIME);
        logged(self.use_once(ASSERTIONS, issuer, jti, expires).await)
    }
}

/// Logs a failure: the endpoints that call these operations return only what the client learns.
fn logged<T>(result: Result<T, StoreError>) -> Result<T, StoreError> {
    result.inspect_err(|error| {
        if !matches!(error, StoreError::GrantEnded) {
            log_failure(error, None);
        }
    })
}

/// Logs that the store failed, with the reference that the user sees, if there is one.
pub(crate) fn log_failure(error: &StoreError, reference: Option<&str>) {
    let source = error.source().unwrap_or(error);
    tracing::error!(
        error.code = error.code(),
        error = source,
        page.reference = reference,
        "the broker cannot use its store: {error}"
    );
}

/// Returns the hash of texts, each of which is preceded by its length.
pub(crate) fn hash(texts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

fn contention() -> StoreError {
    sealed_records::failed(Contention)
}

fn malformed() -> StoreError {
    sealed_records::failed(MalformedRecord)
}
