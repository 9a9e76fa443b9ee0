//! Lists of grants, page by page.

use portcullis_authorization_server::StoreError;
use portcullis_metadata::UnixTime;
use portcullis_state_store::records::{StoredRecord, Table};

use super::{
    BrokerStore,
    codes::{index_key, user_prefix},
    sealed_records::failed,
};
use crate::{
    grants::{EndGrantsError, EndedGrants, GrantFilter, GrantPage, GrantSummary, MAX_EXAMINED},
    records::{GRANTS, GRANTS_OF_USERS, GrantRecord, SIGN_INS, SignInRecord},
};

/// A grant that may match a filter.
struct Candidate {
    id: Box<str>,
    /// `None` if it is not read yet.
    stored: Option<StoredRecord>,
}

/// What is stored for a candidate.
enum Examined {
    Grant(GrantSummary),
    Unreadable,
    /// The grant has ended meanwhile.
    Absent,
}

impl BrokerStore {
    /// Returns the grants that match a filter, at most `limit`, and at least one if there are any
    /// among those that are examined.
    pub(crate) async fn list_grants(
        &self,
        filter: &GrantFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<GrantPage, StoreError> {
        let candidates = self.candidates(filter, after).await?;
        let has_more = candidates.len() >= MAX_EXAMINED;
        let mut page = GrantPage::default();
        let mut last = None;
        for candidate in candidates {
            if page.grants.len() >= limit.max(1) {
                page.next = last;
                return Ok(page);
            }
            last = Some(candidate.id.clone());
            match self.examine(candidate).await? {
                Examined::Grant(grant) if filter.matches(&grant) => page.grants.push(grant),
                Examined::Grant(_) | Examined::Absent => {}
                Examined::Unreadable => page.unreadable += 1,
            }
        }
        page.next = last.filter(|_| has_more);
        Ok(page)
    }

    /// Ends the grants of one page.
    pub(crate) async fn end_matching(
        &self,
        filter: &GrantFilter,
        after: Option<&str>,
    ) -> Result<EndedGrants, EndGrantsError> {
        let mut ended = 0;
        let page = self.list_grants(filter, after, MAX_EXAMINED).await;
        let page = page.map_err(|error| EndGrantsError { ended, error })?;
        for grant in &page.grants {
            let result = self.end(&grant.id).await;
            result.map_err(|error| EndGrantsError { ended, error })?;
            ended += 1;
        }
        Ok(EndedGrants {
            ended,
            unreadable: page.unreadable,
            next: page.next,
        })
    }

    /// Returns the next grants of the narrowest index that a filter allows, at most
    /// [`MAX_EXAMINED`].
    async fn candidates(
        &self,
        filter: &GrantFilter,
        after: Option<&str>,
    ) -> Result<Vec<Candidate>, StoreError> {
        if let Some(id) = &filter.id {
            let is_next = after.is_none_or(|after| after < &**id);
            let id = is_next.then(|| Candidate {
                id: id.clone(),
                stored: None,
            });
            return Ok(id.into_iter().collect());
        }
        let Some(subject) = &filter.subject else {
            let after = after.map(str::as_bytes);
            let grants = self.scan(GRANTS, &[], after).await?;
            let grants = grants
                .into_iter()
                .filter_map(|(key, stored)| candidate(&key, Some(stored)));
            return Ok(grants.collect());
        };
        let prefix = user_prefix(subject);
        let after = after.map(|after| index_key(&prefix, after));
        let entries = self
            .scan(GRANTS_OF_USERS, &prefix, after.as_deref())
            .await?;
        let grants = entries
            .iter()
            .filter_map(|(key, _)| candidate(key.get(prefix.len()..)?, None));
        Ok(grants.collect())
    }

    async fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
    ) -> Result<Vec<(Box<[u8]>, StoredRecord)>, StoreError> {
        let store = self.records.plain();
        let found = store.scan(table, prefix, after, MAX_EXAMINED).await;
        found.map_err(failed)
    }

    async fn examine(&self, candidate: Candidate) -> Result<Examined, StoreError> {
        let Candidate { id, stored } = candidate;
        let stored = match stored {
            Some(stored) => stored,
            None => match self.get(GRANTS, &id).await? {
                Some(stored) => stored,
                None => return Ok(Examined::Absent),
            },
        };
        let Some(grant) = self.open::<GrantRecord>(GRANTS, &id, stored) else {
            return Ok(Examined::Unreadable);
        };
        let provider = match self.get(SIGN_INS, &id).await? {
            None => None,
            Some(stored) => match self.open::<SignInRecord>(SIGN_INS, &id, stored) {
                Some(sign_in) => Some(sign_in.provider),
                None => return Ok(Examined::Unreadable),
            },
        };
        Ok(Examined::Grant(GrantSummary {
            id,
            subject: grant.terms.subject,
            client_id: grant.terms.client_id,
            provider,
            scopes: grant.terms.scopes,
            resource: grant.terms.audience,
            begun: UnixTime::from_secs(grant.begun),
            last_used: UnixTime::from_secs(grant.last_used),
        }))
    }

    async fn get(&self, table: Table, id: &str) -> Result<Option<StoredRecord>, StoreError> {
        let stored = self.records.plain().get(table, id.as_bytes()).await;
        stored.map_err(failed)
    }

    /// Opens a record. `None` if no key opens it.
    fn open<T: serde::de::DeserializeOwned>(
        &self,
        table: Table,
        id: &str,
        stored: StoredRecord,
    ) -> Option<T> {
        let StoredRecord { value, expires } = stored;
        let opened = self.records.open::<T>(table, id.as_bytes(), value, expires);
        opened.ok().map(|current| current.value)
    }
}

/// Identifiers are ASCII. `None` for a key that this server did not write.
fn candidate(id: &[u8], stored: Option<StoredRecord>) -> Option<Candidate> {
    let id = std::str::from_utf8(id).ok()?.into();
    Some(Candidate { id, stored })
}
