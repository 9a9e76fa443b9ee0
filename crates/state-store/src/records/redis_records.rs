//! [`RedisRecords`]: records in Redis or Valkey, for several replicas.

mod commands;
mod link;

use std::{fmt, sync::Arc, time::Duration};

use portcullis_metadata::Clock;
use tokio::time::timeout;

use self::{
    commands::Commands,
    link::{Failure, Link, Redis},
};
use super::{
    BoxFuture, Change, KeyedRecord, MAX_SWEPT, Outcome, RecordError, RecordStore, StoredRecord,
    Table,
};
use crate::{
    RedisSettings, RedisSettingsError,
    redis::{failure, keys::name_with},
};

/// The maximum time of one operation, with a new connection.
const MAX_TIME: Duration = Duration::from_secs(2);
/// The maximum number of records that one script reads or removes, so that it delays no other
/// client for long.
const BATCH: usize = 256;

/// Records in Redis (6.2 or later) or Valkey, which several replicas change.
///
/// **Durability.** Redis answers a change after it is on disk if it has `appendonly yes` and
/// `appendfsync always`. Each new connection checks this, and that Redis removes no records when
/// its memory is full; otherwise everything fails. A failover to a replica of Redis can lose the
/// last changes, which were answered.
///
/// **Failures.** Every method fails after at most 2 s. The next call connects again, at most every
/// 250 ms. A read on a connection that has ended is repeated once on a new one, so that a restart
/// of Redis fails no later read. After a failure, a change may have been made nevertheless.
///
/// **Clocks.** A record expires by the clock of the replica that reads or removes it, so the clocks
/// must be synchronized.
///
/// All keys begin with the prefix in braces, so that they are in one hash slot. Does not support
/// Redis Cluster.
pub struct RedisRecords {
    link: Link,
    commands: Commands,
    clock: Arc<dyn Clock>,
}

impl RedisRecords {
    /// Returns a store that is not connected. The first operation connects it, and needs a runtime
    /// with time and I/O.
    ///
    /// # Errors
    /// Fails if the URL or the certificates cannot be used.
    pub fn new(
        settings: &RedisSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RedisSettingsError> {
        Ok(Self {
            link: Link::new(settings.client()?, Arc::clone(&clock)),
            commands: Commands::new(name_with(&settings.prefix, "records")),
            clock,
        })
    }

    /// Does not check whether Redis keeps records in a crash and when its memory is full, because
    /// its operator has confirmed it: for a user that cannot read the configuration.
    #[must_use]
    pub fn assume_durable(mut self) -> Self {
        self.link.assumes_durable = true;
        self
    }

    /// Connects, if the store is not connected. A server calls it at its start, to report settings
    /// of Redis that must be changed.
    ///
    /// # Errors
    /// Fails if Redis cannot be reached, or can lose records.
    pub async fn connect(&self) -> Result<(), RecordError> {
        self.run(|_| async { Ok(()) }).await
    }

    /// Runs commands on the connection, within the maximum time.
    async fn run<T, F>(&self, commands: impl FnOnce(Redis) -> F) -> Result<T, RecordError>
    where
        F: Future<Output = Result<T, RecordError>>,
    {
        in_time(async { self.link.run(commands).await.map_err(Failure::into) }).await
    }

    /// Runs commands that change nothing. If the connection has ended, runs them once more on a new
    /// one.
    async fn read<T, F>(&self, commands: impl Fn(Redis) -> F) -> Result<T, RecordError>
    where
        F: Future<Output = Result<T, RecordError>>,
    {
        in_time(async {
            match self.link.run(&commands).await {
                Err(Failure::ConnectionLost(_)) => self.link.run(&commands).await,
                result => result,
            }
            .map_err(Failure::into)
        })
        .await
    }
}

/// Fails if an operation takes longer than the maximum time.
async fn in_time<T>(
    operation: impl Future<Output = Result<T, RecordError>>,
) -> Result<T, RecordError> {
    let too_late = |_| Err(failure::io_error(std::io::ErrorKind::TimedOut).into());
    timeout(MAX_TIME, operation).await.unwrap_or_else(too_late)
}

impl RecordStore for RedisRecords {
    fn get(
        &self,
        table: Table,
        key: &[u8],
    ) -> BoxFuture<'_, Result<Option<StoredRecord>, RecordError>> {
        let key = Box::<[u8]>::from(key);
        Box::pin(async move {
            let (commands, key) = (&self.commands, &*key);
            let now = self.clock.now();
            let get = |mut redis| async move { commands.get(&mut redis, table, key).await };
            let record = self.read(get).await?;
            Ok(record.filter(|record| record.expires > now))
        })
    }

    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Outcome, RecordError>> {
        Box::pin(async move {
            change.check_size()?;
            let now = self.clock.now();
            let (commands, change) = (&self.commands, &change);
            let commit = |mut redis| async move { commands.change(&mut redis, change, now).await };
            self.run(commit).await
        })
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<KeyedRecord>, RecordError>> {
        let prefix = Box::<[u8]>::from(prefix);
        let mut after = after.map(Box::<[u8]>::from);
        Box::pin(async move {
            let now = self.clock.now();
            let (commands, prefix) = (&self.commands, &*prefix);
            let mut records = Vec::new();
            while records.len() < limit {
                let count = BATCH.min(limit - records.len());
                let start = after.as_deref();
                let scan = |mut redis| async move {
                    commands.scan(&mut redis, table, prefix, start, count).await
                };
                let page = self.read(scan).await?;
                let is_last = page.len() < count;
                after = page.last().map(|(key, _)| key.clone());
                records.extend(page.into_iter().filter(|(_, record)| record.expires > now));
                if is_last {
                    break;
                }
            }
            Ok(records)
        })
    }

    fn count(&self, table: Table) -> BoxFuture<'_, Result<u64, RecordError>> {
        Box::pin(async move {
            let commands = &self.commands;
            let count = |mut redis| async move { commands.count(&mut redis, table).await };
            self.read(count).await
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async move {
            let now = self.clock.now();
            for _ in 0..MAX_SWEPT / BATCH {
                let commands = &self.commands;
                let sweep = |mut redis| async move { commands.sweep(&mut redis, now).await };
                if self.run(sweep).await? < BATCH {
                    break;
                }
            }
            Ok(())
        })
    }
}

impl fmt::Debug for RedisRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRecords").finish_non_exhaustive()
    }
}
