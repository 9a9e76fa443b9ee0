//! [`JournalState`]: what the methods of the journal and its task have in common.

use std::{sync::Arc, time::Duration};

use portcullis_metadata::Clock;
use portcullis_session::EndTicket;
use redis::Client;
use tokio::sync::Notify;

use super::{
    acknowledgements::Acknowledgements,
    commands::Commands,
    queue::Queue,
    record::{KnownDrops, Record},
    settings::{RedisSettings, RedisSettingsError},
    status::Status,
};
use crate::Retention;

/// How late the last uses of other replicas can arrive: they are recorded at least once a minute.
pub(crate) const PEER_DELAY: Duration = Duration::from_secs(60);

/// The state of a journal. The journal's methods fill the queue, and its task empties it.
pub(crate) struct JournalState {
    pub(crate) client: Client,
    /// Host and port, for the log.
    pub(crate) address: String,
    pub(crate) commands: Commands,
    pub(crate) retention: Retention,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queue: Queue,
    pub(crate) drops: KnownDrops,
    pub(crate) acknowledgements: Acknowledgements,
    /// Wakes the task: there is something in the queue or to acknowledge, or the connection may be
    /// lost.
    pub(crate) wake: Notify,
    pub(crate) status: Status,
}

impl JournalState {
    /// Returns the state before the first connection. Fails if the URL or the certificates cannot
    /// be used.
    pub(crate) fn new(
        settings: &RedisSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RedisSettingsError> {
        let client = settings.client()?;
        Ok(Self {
            address: client.get_connection_info().addr().to_string(),
            client,
            commands: Commands::new(&settings.prefix),
            retention: settings.retention,
            clock,
            queue: Queue::default(),
            drops: KnownDrops::default(),
            acknowledgements: Acknowledgements::default(),
            wake: Notify::new(),
            status: Status::default(),
        })
    }

    /// Queues a record for all replicas. The ticket completes when every live replica has
    /// acknowledged it.
    pub(crate) fn record(&self, record: Record) -> EndTicket {
        let ticket = self.queue.add_record(record, self.clock.monotonic());
        self.wake.notify_one();
        ticket
    }
}
