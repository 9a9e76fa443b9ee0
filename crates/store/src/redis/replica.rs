//! The task that exchanges records with the other replicas.

mod connection;
mod removal;

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use redis::{RedisError, RedisResult, cmd};
use tokio::time::{Instant, sleep, sleep_until};

use self::connection::Connection;
use super::{
    Inner, Receiver,
    acknowledgements::Batch,
    failure,
    membership::{BEAT_INTERVAL, Generation, MAX_BACKOFF, Membership, Task},
    record::Record,
    script::{Added, BATCH},
};

/// The first time between two attempts to connect.
const MIN_BACKOFF: Duration = Duration::from_millis(50);

/// Exchanges records until the queue is closed.
pub(super) async fn run(inner: Arc<Inner>, receiver: Receiver) {
    let Some(replica) = connection::random_name() else {
        tracing::error!("the operating system returns no random bytes; the ends of sessions are not shared");
        return;
    };
    let mut membership = Membership::default();
    let (mut backoff, mut reported) = (MIN_BACKOFF, None);
    while !inner.queue.is_closed() {
        let error = match connection::connect(&inner, &receiver, &replica).await {
            Ok(connection) => {
                backoff = MIN_BACKOFF;
                let (beat_at, removal) = (Instant::now(), removal::Removal::default());
                let (inner, receiver, membership) = (&*inner, &receiver, &mut membership);
                let connected = Connected { inner, receiver, connection, membership, beat_at, removal };
                match connected.serve().await {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        membership.disconnect();
        inner.queue.disconnect();
        inner.acknowledgements.disconnect();
        let failure = failure::describe(&error);
        if inner.is_connected.swap(false, Ordering::AcqRel) || reported.as_ref() != Some(&failure) {
            tracing::error!(
                redis.address = inner.address,
                "redis cannot be used: {failure}; known sessions continue, and deleting a session fails until it can"
            );
            reported = Some(failure.clone());
        }
        inner.set_failure(Some(failure));
        sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

/// A replica with a connection.
struct Connected<'a> {
    inner: &'a Inner,
    receiver: &'a Receiver,
    connection: Connection,
    membership: &'a mut Membership,
    /// When the next beat is due.
    beat_at: Instant,
    removal: removal::Removal,
}

impl Connected<'_> {
    /// Exchanges records until the connection is lost or the queue is closed.
    async fn serve(mut self) -> RedisResult<()> {
        let mut task = self.beat().await?;
        self.inner.is_connected.store(true, Ordering::Release);
        self.inner.queue.connect();
        self.inner.set_failure(None);
        tracing::info!(redis.address = self.inner.address, "redis is connected");
        loop {
            task = match task {
                Task::Synchronize => {
                    self.read().await?;
                    self.write().await?;
                    self.beat().await?
                }
                Task::Read => {
                    self.read().await?;
                    Task::None
                }
                Task::None => {
                    if self.inner.queue.take_skipped() {
                        self.write().await?;
                    }
                    self.remove_unneeded().await?;
                    tokio::select! {
                        () = self.inner.wake.notified() => {
                            if self.connection.is_lost() {
                                return Err(failed(io::ErrorKind::ConnectionReset));
                            }
                            self.acknowledge().await?;
                            self.flush().await?;
                            self.flush_inactive().await?;
                            self.flush_uses().await?;
                            self.flush_counts().await?;
                            if self.inner.queue.is_closed() {
                                return self.inner.names.leave(&mut self.connection.redis, &self.connection.identity).await;
                            }
                            Task::None
                        }
                        () = sleep_until(self.beat_at) => {
                            self.retry().await?;
                            self.flush().await?;
                            self.beat().await?
                        }
                    }
                }
            };
        }
    }

    /// Writes that this replica lives.
    async fn beat(&mut self) -> RedisResult<Task> {
        let sent = self.inner.clock.monotonic();
        self.beat_at = Instant::now() + BEAT_INTERVAL;
        let answer = self
            .inner
            .names
            .beat(&mut self.connection.redis, &self.connection.identity, self.membership.written())
            .await?;
        let task = self.membership.beat(sent, self.inner.clock.monotonic(), &answer.beat);
        self.removal.note(&answer);
        self.inner.replicas.store(answer.alive, Ordering::Relaxed);
        self.show();
        Ok(task)
    }

    /// Between two parts of long work: beats if it is due, and writes the ends that wait.
    ///
    /// # Errors
    /// Fails if the connection fails or the data has another generation.
    async fn keep_alive(&mut self, generation: Generation) -> RedisResult<()> {
        self.acknowledge().await?;
        if Instant::now() >= self.beat_at {
            self.retry().await?;
            self.flush().await?;
            // What it asks for happens later: the work in progress is part of it.
            self.beat().await?;
            if self.membership.generation() != Some(generation) {
                return Err(failed(io::ErrorKind::ConnectionReset));
            }
        }
        Ok(())
    }

    /// Reads all records and last uses.
    async fn read(&mut self) -> RedisResult<()> {
        let generation = self.generation()?;
        let was_settled = self.membership.is_settled();
        let inner = self.inner;
        let mut cursor = 0;
        loop {
            let (next, members) = self.scan(inner.names.ends(), cursor).await?;
            for (member, _) in members {
                if let Some(record) = Record::decode(&member) {
                    inner.import(self.receiver, &record);
                }
            }
            if next == 0 {
                break;
            }
            cursor = next;
            self.keep_alive(generation).await?;
        }
        let mut cursor = 0;
        loop {
            let (next, members) = self.scan(inner.names.uses(), cursor).await?;
            let uses: Vec<_> = members.into_iter().filter_map(removal::last_use).collect();
            self.receiver.sessions.import_last_uses(&uses);
            if next == 0 {
                break;
            }
            cursor = next;
            self.keep_alive(generation).await?;
        }
        self.membership.read(generation, was_settled, inner.clock.monotonic());
        self.show();
        Ok(())
    }

    /// Writes all records that this replica knows.
    async fn write(&mut self) -> RedisResult<()> {
        let generation = self.generation()?;
        let inner = self.inner;
        let ends = self.receiver.sessions.ends().into_iter().map(Record::End);
        let records: Vec<_> = ends.chain(inner.drops.since(self.oldest_end())).collect();
        for batch in records.chunks(BATCH) {
            let Connection { redis, identity, .. } = &mut self.connection;
            let added = inner.names.add_records(redis, generation, identity, batch.iter(), None).await?;
            if let Added::OtherGeneration = added {
                return Err(failed(io::ErrorKind::ConnectionReset));
            }
            self.keep_alive(generation).await?;
        }
        self.membership.wrote(generation);
        Ok(())
    }

    /// Publishes the records that wait. They are confirmed when all live replicas have acknowledged them.
    async fn flush(&mut self) -> RedisResult<()> {
        let mut left = self.inner.queue.take_records(self.inner.acknowledgements.free());
        while !left.is_empty() {
            let waiting = left.split_off(left.len().saturating_sub(BATCH));
            let records: Vec<_> = waiting.iter().map(|waiting| waiting.record).collect();
            let batch = self.inner.acknowledgements.publish(waiting);
            self.publish(batch, &records).await?;
        }
        Ok(())
    }

    /// Publishes the records again that are not confirmed: a replica has not received them, or is gone.
    async fn retry(&mut self) -> RedisResult<()> {
        for (batch, records) in self.inner.acknowledgements.unconfirmed(self.inner.clock.monotonic()) {
            self.publish(batch, &records).await?;
        }
        Ok(())
    }

    async fn publish(&mut self, batch: Batch, records: &[Record]) -> RedisResult<()> {
        let generation = self.generation()?;
        let Connection { redis, identity, .. } = &mut self.connection;
        match self.inner.names.add_records(redis, generation, identity, records.iter(), Some(batch)).await? {
            Added::Sent(connections) => self.inner.acknowledgements.expect(batch, connections),
            // Published again at the next beat, which finds another generation.
            Added::Unsettled | Added::OtherGeneration => {}
        }
        Ok(())
    }

    /// Tells other replicas that their records were received.
    async fn acknowledge(&mut self) -> RedisResult<()> {
        let Connection { redis, identity, .. } = &mut self.connection;
        let owed = self.inner.acknowledgements.take_owed();
        if owed.is_empty() {
            return Ok(());
        }
        self.inner.names.acknowledge(redis, identity, &owed).await
    }

    /// Publishes the tokens that were found inactive here.
    async fn flush_inactive(&mut self) -> RedisResult<()> {
        let tokens = self.inner.queue.take_inactive();
        for (position, batch) in tokens.chunks(BATCH).enumerate() {
            let published = self.inner.names.publish_inactive(&mut self.connection.redis, batch).await;
            if published.is_err() {
                tokens[position * BATCH..].iter().for_each(|token| self.inner.queue.add_inactive(*token));
                // The next connection publishes them.
                self.inner.wake.notify_one();
            }
            published?;
        }
        Ok(())
    }

    async fn flush_uses(&mut self) -> RedisResult<()> {
        let generation = self.generation()?;
        loop {
            let uses = self.inner.queue.take_uses(BATCH);
            if uses.is_empty() {
                return Ok(());
            }
            let written = self.inner.names.add_uses(&mut self.connection.redis, &uses).await;
            if written.is_err() {
                self.inner.queue.add_uses(&uses);
            }
            written?;
            self.keep_alive(generation).await?;
        }
    }

    /// Publishes what this replica has counted for limits.
    async fn flush_counts(&mut self) -> RedisResult<()> {
        let generation = self.generation()?;
        for uses in self.inner.queue.take_limit_uses().chunks(BATCH) {
            let Connection { redis, identity, .. } = &mut self.connection;
            self.inner.names.publish_limit_uses(redis, identity, uses).await?;
            self.keep_alive(generation).await?;
        }
        for sessions in self.inner.queue.take_announced().chunks(BATCH) {
            let Connection { redis, identity, .. } = &mut self.connection;
            self.inner.names.publish_announced(redis, identity, sessions).await?;
            self.keep_alive(generation).await?;
        }
        Ok(())
    }

    async fn scan(&mut self, key: &str, cursor: u64) -> RedisResult<(u64, Vec<(Vec<u8>, u64)>)> {
        let mut command = cmd("ZSCAN");
        command.arg(key).arg(cursor).arg("COUNT").arg(BATCH);
        Ok(super::script::scanned(command.query_async(&mut self.connection.redis).await?))
    }

    fn generation(&self) -> RedisResult<Generation> {
        self.membership.generation().ok_or_else(|| failed(io::ErrorKind::NotConnected))
    }

    /// Publishes the lease to the threads of requests.
    fn show(&self) {
        let until = self.membership.complete_until().map_or(0, |until| until.as_millis() as u64);
        let before = self.inner.complete_until.swap(until, Ordering::AcqRel);
        if until > 0 && before == 0 {
            self.inner.was_complete.store(true, Ordering::Release);
            tracing::info!("the ends of the sessions of all replicas are known");
        } else if until == 0 && before > 0 {
            tracing::warn!("redis was unreachable for too long: the ends of other replicas may be missing");
        }
    }
}

fn failed(kind: io::ErrorKind) -> RedisError {
    RedisError::from(io::Error::from(kind))
}
