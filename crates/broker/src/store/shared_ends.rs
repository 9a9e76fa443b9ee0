//! The ends that processes tell each other through the store.

use std::time::Duration;

use portcullis_authorization_server::StoreError;
use portcullis_metadata::UnixTime;
use portcullis_state_store::records::{KeyedRecord, Table};

use super::{
    BrokerStore, MAX_ENDS,
    sealed_records::{SealedChange, failed},
};
use crate::records::{ENDS, ENDS_BY_TIME, SharedEndRecord};

/// By how much the entries are older that are read again: the difference of two clocks, and the
/// time of a write.
const OVERLAP: Duration = Duration::from_secs(10);
/// The number of entries that are read at a time.
const PAGE: usize = 1000;
/// The number of bytes of a time.
const TIME: usize = 8;

impl BrokerStore {
    /// Reads the ends of all processes.
    pub(crate) async fn load_ends(&self) -> Result<(), StoreError> {
        let started = self.now();
        let mut after = None;
        while let Some(page) = self.page_of_ends(ENDS, &mut after).await? {
            for (key, record) in &page {
                if let Ok(id) = std::str::from_utf8(key) {
                    self.ends.add(id, record.expires, self.now());
                }
            }
        }
        self.ends.set_read(started);
        Ok(())
    }

    /// Reads the ends that other processes have added since the last time, or all of them if there
    /// was none.
    pub(crate) async fn refresh_ends(&self) -> Result<(), StoreError> {
        let Some(last) = self.ends.last_read() else {
            // Nothing was opened yet that ends now.
            return self.load_ends().await;
        };
        let started = self.now();
        let mut after = Some(time_bytes(last.saturating_sub(OVERLAP)).into());
        while let Some(page) = self.page_of_ends(ENDS_BY_TIME, &mut after).await? {
            page.into_iter().for_each(|entry| self.receive_end(entry));
        }
        self.ends.set_read(started);
        Ok(())
    }

    /// Adds an entry for the other processes to a change. Entries of equal identifiers do not
    /// replace each other, so a repeated end must not add one.
    pub(super) fn share_end(
        &self,
        change: &mut SealedChange<'_>,
        id: &str,
        end: SharedEndRecord,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let key = [&time_bytes(now), id.as_bytes()].concat();
        change.expect_below(ENDS_BY_TIME, MAX_ENDS);
        change.put(ENDS_BY_TIME, &key, &end, self.end_expiry(now))
    }

    /// Returns whether the end of a grant or of an access token is stored.
    pub(super) async fn is_stored_end(&self, id: &str) -> Result<bool, StoreError> {
        let stored = self.records.plain().get(ENDS, id.as_bytes()).await;
        Ok(stored.map_err(failed)?.is_some())
    }

    /// Adds the end of an entry, if it is not known.
    fn receive_end(&self, (key, record): KeyedRecord) {
        let Some((time, id)) = key.split_first_chunk::<TIME>() else {
            return;
        };
        let Ok(id) = std::str::from_utf8(id) else {
            return;
        };
        if self.ends.contains(id) {
            return;
        }
        // The key is enough for the end, as in the table of all ends.
        self.ends.add(id, record.expires, self.now());
        let at = UnixTime::from_millis(u64::from_be_bytes(*time));
        let end =
            self.records
                .open::<SharedEndRecord>(ENDS_BY_TIME, &key, record.value, record.expires);
        match end.map(|end| end.value.grant) {
            Ok(Some(grant)) => self.listener.grant_ended_elsewhere(id, at, Some(&grant)),
            Ok(None) => {}
            Err(_) => self.listener.grant_ended_elsewhere(id, at, None),
        }
    }

    /// Returns the entries after the last one that was returned. `None` if there are none.
    async fn page_of_ends(
        &self,
        table: Table,
        after: &mut Option<Box<[u8]>>,
    ) -> Result<Option<Vec<KeyedRecord>>, StoreError> {
        let store = self.records.plain();
        let page = store.scan(table, &[], after.as_deref(), PAGE).await;
        let page = page.map_err(failed)?;
        let Some((last, _)) = page.last() else {
            return Ok(None);
        };
        *after = Some(last.clone());
        Ok(Some(page))
    }
}

fn time_bytes(time: UnixTime) -> [u8; TIME] {
    time.as_millis().to_be_bytes()
}
