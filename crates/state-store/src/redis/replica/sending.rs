//! How a replica sends what waits in the queue.

use std::io;

use redis::RedisResult;

use super::{
    super::{
        acknowledgements::Batch,
        commands::{Added, BATCH},
        failure,
        record::Record,
    },
    connected::Connected,
    connection::Connection,
};

impl Connected<'_> {
    /// Sends everything that waits: acknowledgements and records first, because DELETE requests
    /// wait for them. Fails if the connection fails. Records then fail, and counts of limits are
    /// lost. Last uses and inactive tokens wait for the next connection.
    pub(super) async fn send_queued(&mut self) -> RedisResult<()> {
        if self.connection.is_lost() {
            return Err(failure::io_error(io::ErrorKind::ConnectionReset));
        }
        self.acknowledge().await?;
        self.send_records().await?;
        self.send_inactive_tokens().await?;
        self.send_last_uses().await?;
        self.send_counts().await
    }

    /// Sends the records that wait. They are confirmed when all live replicas have acknowledged
    /// them.
    pub(super) async fn send_records(&mut self) -> RedisResult<()> {
        let acknowledgements = &self.state.acknowledgements;
        let mut waiting = self.state.queue.take_records(acknowledgements.free());
        while !waiting.is_empty() {
            let part = waiting.split_off(waiting.len().saturating_sub(BATCH));
            let records: Vec<_> = part.iter().map(|waiting| waiting.record).collect();
            let batch = acknowledgements.publish(part);
            self.send_batch(batch, &records).await?;
        }
        Ok(())
    }

    /// Sends the records again that are not confirmed: a replica has not received them, or is gone.
    pub(super) async fn send_unconfirmed(&mut self) -> RedisResult<()> {
        for (batch, records) in self
            .state
            .acknowledgements
            .unconfirmed(self.state.clock.monotonic())
        {
            self.send_batch(batch, &records).await?;
        }
        Ok(())
    }

    async fn send_batch(&mut self, batch: Batch, records: &[Record]) -> RedisResult<()> {
        let generation = self.generation()?;
        let Connection {
            redis, identity, ..
        } = &mut self.connection;
        match self
            .state
            .commands
            .add_records(redis, generation, identity, records, Some(batch))
            .await?
        {
            Added::Sent(connections) => self.state.acknowledgements.expect(batch, connections),
            // Sent again at the next beat, which also finds another generation.
            Added::Unsettled | Added::OtherGeneration => {}
        }
        Ok(())
    }

    /// Tells other replicas that their records were received.
    pub(super) async fn acknowledge(&mut self) -> RedisResult<()> {
        let owed = self.state.acknowledgements.take_owed();
        if owed.is_empty() {
            return Ok(());
        }
        let Connection {
            redis, identity, ..
        } = &mut self.connection;
        self.state
            .commands
            .acknowledge(redis, identity, &owed)
            .await
    }

    /// Publishes the tokens that were found inactive here.
    async fn send_inactive_tokens(&mut self) -> RedisResult<()> {
        let tokens = self.state.queue.take_inactive();
        for (position, batch) in tokens.chunks(BATCH).enumerate() {
            let published = self
                .state
                .commands
                .publish_inactive(&mut self.connection.redis, batch)
                .await;
            if published.is_err() {
                tokens[position * BATCH..]
                    .iter()
                    .for_each(|token| self.state.queue.add_inactive(*token));
                // Wakes the task of the next connection, which publishes them.
                self.state.wake.notify_one();
            }
            published?;
        }
        Ok(())
    }

    /// Adds the last uses that wait.
    async fn send_last_uses(&mut self) -> RedisResult<()> {
        let generation = self.generation()?;
        loop {
            let uses = self.state.queue.take_last_uses(BATCH);
            if uses.is_empty() {
                return Ok(());
            }
            let Connection {
                redis, identity, ..
            } = &mut self.connection;
            let written = self
                .state
                .commands
                .add_last_uses(redis, identity, &uses)
                .await;
            if written.is_err() {
                self.state.queue.add_last_uses(&uses);
            }
            written?;
            self.keep_alive(generation).await?;
        }
    }

    /// Publishes what this replica has counted for limits: requests, and the sessions in its table.
    async fn send_counts(&mut self) -> RedisResult<()> {
        let generation = self.generation()?;
        for uses in self.state.queue.take_limit_uses().chunks(BATCH) {
            let Connection {
                redis, identity, ..
            } = &mut self.connection;
            self.state
                .commands
                .publish_limit_uses(redis, identity, uses)
                .await?;
            self.keep_alive(generation).await?;
        }
        for sessions in self.state.queue.take_announced().chunks(BATCH) {
            let Connection {
                redis, identity, ..
            } = &mut self.connection;
            self.state
                .commands
                .publish_announced(redis, identity, sessions)
                .await?;
            self.keep_alive(generation).await?;
        }
        Ok(())
    }
}
