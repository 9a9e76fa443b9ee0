//! [`Connected`]: a replica with a connection, and the order in which it works.

use std::io;

use redis::RedisResult;
use tokio::time::{Instant, sleep_until};

use super::{
    super::{
        failure,
        generation::Generation,
        membership::{BEAT_INTERVAL, Membership, Task},
        receiver::Receiver,
        state::JournalState,
        status::Change,
    },
    connection::Connection,
    removal_schedule::RemovalSchedule,
};

/// A replica with a connection. Its other methods are in the files `synchronizing`, `sending` and
/// `removal`.
pub(super) struct Connected<'a> {
    pub(super) state: &'a JournalState,
    pub(super) receiver: &'a Receiver,
    pub(super) connection: Connection,
    pub(super) membership: &'a mut Membership,
    /// When the next beat is due.
    pub(super) beat_at: Instant,
    pub(super) removal: RemovalSchedule,
}

impl<'a> Connected<'a> {
    /// Returns a replica whose first beat is due.
    pub(super) fn new(
        state: &'a JournalState,
        receiver: &'a Receiver,
        connection: Connection,
        membership: &'a mut Membership,
    ) -> Self {
        let beat_at = Instant::now();
        let removal = RemovalSchedule::default();
        Self {
            state,
            receiver,
            connection,
            membership,
            beat_at,
            removal,
        }
    }

    /// Exchanges records until the queue is closed, and then leaves the other replicas. Fails when
    /// the connection is lost, or another server process is behind it.
    pub(super) async fn serve(mut self) -> RedisResult<()> {
        let mut task = self.beat().await?;
        self.state.queue.connect();
        self.state.status.connect();
        tracing::info!(redis.address = self.state.address, "redis is connected");
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
                    if self.state.queue.take_skipped() {
                        self.write().await?;
                    }
                    self.remove_unneeded().await?;
                    tokio::select! {
                        () = self.state.wake.notified() => {
                            self.send_queued().await?;
                            if self.state.queue.is_closed() {
                                let Connection { redis, identity, .. } = &mut self.connection;
                                return self.state.commands.leave(redis, identity).await;
                            }
                            Task::None
                        }
                        () = sleep_until(self.beat_at) => {
                            self.send_unconfirmed().await?;
                            self.send_records().await?;
                            self.beat().await?
                        }
                    }
                }
            };
        }
    }

    /// Renews the beat of this replica, and returns what it must do next.
    async fn beat(&mut self) -> RedisResult<Task> {
        let sent = self.state.clock.monotonic();
        self.beat_at = Instant::now() + BEAT_INTERVAL;
        let Connection {
            redis, identity, ..
        } = &mut self.connection;
        let response = self
            .state
            .commands
            .beat(redis, identity, self.membership.written())
            .await?;
        let task = self
            .membership
            .beat(sent, self.state.clock.monotonic(), &response.beat);
        self.removal.update(&response);
        self.state.status.set_alive(response.alive);
        self.publish_lease();
        Ok(task)
    }

    /// Call this between two parts of long work: beats if it is due, and sends the ends that wait.
    /// Fails if the connection fails, or the data is not of this generation any more.
    pub(super) async fn keep_alive(&mut self, generation: Generation) -> RedisResult<()> {
        self.acknowledge().await?;
        if Instant::now() >= self.beat_at {
            self.send_unconfirmed().await?;
            self.send_records().await?;
            // The task that it returns is not needed: a new generation is an error here, and a list
            // that must be read again is still due at the next beat.
            self.beat().await?;
            if self.membership.generation() != Some(generation) {
                return Err(failure::io_error(io::ErrorKind::ConnectionReset));
            }
        }
        Ok(())
    }

    /// Returns the generation of the last beat. Fails before the first beat.
    pub(super) fn generation(&self) -> RedisResult<Generation> {
        self.membership
            .generation()
            .ok_or_else(|| failure::io_error(io::ErrorKind::NotConnected))
    }

    /// Publishes the lease to the threads of requests.
    pub(super) fn publish_lease(&self) {
        match self
            .state
            .status
            .set_complete_until(self.membership.complete_until())
        {
            Change::Completed => {
                tracing::info!("the ends of the sessions of all replicas are known")
            }
            Change::Interrupted => {
                tracing::warn!(
                    "redis was unreachable for too long: the ends of other replicas may be missing"
                );
            }
            Change::None => {}
        }
    }
}
