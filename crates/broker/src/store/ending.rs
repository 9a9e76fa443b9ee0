//! The end of grants.

use portcullis_authorization_server::StoreError;
use portcullis_metadata::UnixTime;

use super::{
    BrokerStore, LEEWAY, MAX_ATTEMPTS, MAX_ENDS,
    codes::{
        index_key, provider_session_prefix, provider_user_prefix, sign_in_prefixes, user_prefix,
    },
    contention,
    sealed_records::SealedChange,
};
use crate::{
    observer::EndReason,
    records::{
        ENDS, EndRecord, GRANTS, GRANTS_OF_SIGN_INS, GRANTS_OF_USERS, GrantTerms, OwnerRecord,
        SIGN_INS, SharedEndRecord, SharedGrantEnd, SignInRecord,
    },
};

/// A grant that has ended now.
#[derive(Debug)]
pub(crate) struct EndedGrant {
    /// `None` if the code was not exchanged yet.
    pub(crate) terms: Option<GrantTerms>,
    /// The sign-in whose tokens can be revoked at the provider.
    pub(crate) sign_in: Option<SignInRecord>,
}

impl EndedGrant {
    /// Returns whether anything of the grant was stored.
    fn existed(&self) -> bool {
        self.terms.is_some() || self.sign_in.is_some()
    }

    fn owner(&self) -> Option<OwnerRecord> {
        self.terms.as_ref().map(|terms| OwnerRecord {
            subject: terms.subject.clone(),
            client_id: terms.client_id.clone(),
        })
    }

    fn shared(&self, reason: EndReason) -> SharedEndRecord {
        SharedEndRecord {
            grant: Some(SharedGrantEnd {
                owner: self.owner(),
                reason,
            }),
        }
    }
}

impl BrokerStore {
    /// Ends a grant. The access tokens that were issued for it are rejected from now on, even if
    /// this fails; after a failure, only in this process and until it ends.
    pub(crate) async fn end(&self, id: &str) -> Result<(), StoreError> {
        let now = self.now();
        self.ends.add(id, self.end_expiry(now), now);
        let mut owner = None;
        match self.store_end(id, &mut owner).await {
            Ok(ended) => {
                self.listener.grant_ended(id, ended, self.reason);
                Ok(())
            }
            Err(error) => {
                self.listener.end_not_stored(id, owner, self.reason);
                Err(error)
            }
        }
    }

    /// Removes a grant and stores its end. `owner` becomes its owner as soon as it is known.
    async fn store_end(
        &self,
        id: &str,
        owner: &mut Option<OwnerRecord>,
    ) -> Result<EndedGrant, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut change = self.records.change();
            let ended = self.delete_grant(&mut change, id).await?;
            *owner = ended.owner();
            let is_first = ended.existed() || !self.is_stored_end(id).await?;
            self.put_end(&mut change, id)?;
            if is_first {
                self.share_end(&mut change, id, ended.shared(self.reason))?;
            }
            if change.commit().await? {
                return Ok(ended);
            }
        }
        Err(contention())
    }

    /// Ends an access token. It is rejected from now on, even if this fails; after a failure, only
    /// in this process and until it ends.
    pub(super) async fn end_access_token(&self, id: &str) -> Result<(), StoreError> {
        let now = self.now();
        self.ends.add(id, self.end_expiry(now), now);
        let mut change = self.records.change();
        self.put_end(&mut change, id)?;
        if !self.is_stored_end(id).await? {
            self.share_end(&mut change, id, SharedEndRecord { grant: None })?;
        }
        if !change.commit().await? {
            return Err(contention());
        }
        Ok(())
    }

    /// Returns until when an access token can be valid that ends now.
    pub(super) fn end_expiry(&self, now: UnixTime) -> UnixTime {
        now.saturating_add(self.lifetimes.access_token + LEEWAY)
    }

    fn put_end(&self, change: &mut SealedChange<'_>, id: &str) -> Result<(), StoreError> {
        let now = self.now();
        let end = EndRecord { at: now.as_secs() };
        change.expect_below(ENDS, MAX_ENDS);
        change.put(ENDS, id.as_bytes(), &end, self.end_expiry(now))
    }

    /// Removes a grant, its sign-in and their entries in the indexes. They must be those that were
    /// read.
    pub(super) async fn delete_grant(
        &self,
        change: &mut SealedChange<'_>,
        id: &str,
    ) -> Result<EndedGrant, StoreError> {
        let grant = self.read_grant(id).await?;
        let sign_in = self.read_sign_in(id).await?;
        match &grant {
            Some(grant) => {
                change.expect(GRANTS, id.as_bytes(), grant);
                let key = index_key(&user_prefix(&grant.value.terms.subject), id);
                change.delete(GRANTS_OF_USERS, &key);
                change.delete(GRANTS, id.as_bytes());
            }
            None => change.expect_absent(GRANTS, id.as_bytes()),
        }
        if let Some(sign_in) = &sign_in {
            change.expect(SIGN_INS, id.as_bytes(), sign_in);
            for prefix in sign_in_prefixes(&sign_in.value) {
                change.delete(GRANTS_OF_SIGN_INS, &index_key(&prefix, id));
            }
            change.delete(SIGN_INS, id.as_bytes());
        }
        Ok(EndedGrant {
            terms: grant.map(|grant| grant.value.terms),
            sign_in: sign_in.map(|sign_in| sign_in.value),
        })
    }

    /// Returns the identifiers of the grants of a user, at most `limit`.
    pub(crate) async fn grants_of_user(
        &self,
        subject: &str,
        limit: usize,
    ) -> Result<Vec<Box<str>>, StoreError> {
        self.ids(GRANTS_OF_USERS, &user_prefix(subject), limit)
            .await
    }

    /// Returns the identifiers of the grants of a session at a provider, or of a user if there is
    /// no session, at most `limit`. With both, the grants of the user whose session is not known
    /// are among them, because the provider may name the session at the logout only.
    pub(crate) async fn grants_of_sign_in(
        &self,
        provider: &str,
        session: Option<&str>,
        subject: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Box<str>>, StoreError> {
        let of_user = match subject {
            Some(subject) => {
                let prefix = provider_user_prefix(provider, subject);
                self.ids(GRANTS_OF_SIGN_INS, &prefix, limit).await?
            }
            None => Vec::new(),
        };
        let Some(session) = session else {
            return Ok(of_user);
        };
        let prefix = provider_session_prefix(provider, session);
        let mut found = self.ids(GRANTS_OF_SIGN_INS, &prefix, limit).await?;
        for id in of_user {
            if let Some(sign_in) = self.read_sign_in(&id).await?
                && sign_in.value.provider_session.is_none()
                && found.len() < limit
            {
                found.push(id);
            }
        }
        Ok(found)
    }

    async fn ids(
        &self,
        table: portcullis_state_store::records::Table,
        prefix: &[u8],
        limit: usize,
    ) -> Result<Vec<Box<str>>, StoreError> {
        let keys = self.records.keys_after_prefix(table, prefix, limit).await?;
        let ids = keys.iter().filter_map(|key| std::str::from_utf8(key).ok());
        Ok(ids.map(Box::from).collect())
    }
}
