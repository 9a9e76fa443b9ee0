//! How a replica gets the records of all others, and gives them its own.

use std::io;

use redis::RedisResult;

use super::{
    super::{
        commands::{Added, BATCH, Page},
        failure,
        record::Record,
    },
    connected::Connected,
    connection::Connection,
    removal::{last_use, oldest_end},
};

impl Connected<'_> {
    /// Reads all records and last uses, and applies them in this process.
    pub(super) async fn read(&mut self) -> RedisResult<()> {
        let was_settled = self.membership.is_settled();
        let generation = self.generation()?;
        self.read_records().await?;
        self.read_last_uses().await?;
        self.membership
            .read(generation, was_settled, self.state.clock.monotonic());
        self.publish_lease();
        Ok(())
    }

    /// Members that are not records are from another version. They are reported and do not stop the
    /// replica.
    async fn read_records(&mut self) -> RedisResult<()> {
        let state = self.state;
        let receiver = self.receiver;
        let generation = self.generation()?;
        let mut cursor = Some(0);
        let mut unreadable = 0_usize;
        while let Some(position) = cursor {
            let page = self.scan(&state.commands.keys.records, position).await?;
            // The score of the generation, which is not a record, is infinite.
            for member in page
                .members
                .iter()
                .filter(|member| member.score != u64::MAX)
            {
                match Record::decode(&member.member) {
                    Some(record) => receiver.apply(&record, &state.drops),
                    None => unreadable += 1,
                }
            }
            cursor = page.next;
            if cursor.is_some() {
                self.keep_alive(generation).await?;
            }
        }
        if unreadable > 0 {
            tracing::warn!(
                redis.unreadable = unreadable,
                "redis has ends of another version, which are ignored here"
            );
        }
        Ok(())
    }

    async fn read_last_uses(&mut self) -> RedisResult<()> {
        let state = self.state;
        let generation = self.generation()?;
        let mut cursor = Some(0);
        while let Some(position) = cursor {
            let page = self.scan(&state.commands.keys.last_uses, position).await?;
            let uses: Vec<_> = page.members.into_iter().filter_map(last_use).collect();
            self.receiver.sessions.import_last_uses(&uses);
            cursor = page.next;
            if cursor.is_some() {
                self.keep_alive(generation).await?;
            }
        }
        Ok(())
    }

    /// Writes all records that this replica knows. Fails if the connection fails, or the data has
    /// another generation.
    pub(super) async fn write(&mut self) -> RedisResult<()> {
        let state = self.state;
        let generation = self.generation()?;
        let ends = self.receiver.sessions.ends().into_iter().map(Record::End);
        let records: Vec<_> = ends.chain(state.drops.since(oldest_end(state))).collect();
        for batch in records.chunks(BATCH) {
            let Connection {
                redis, identity, ..
            } = &mut self.connection;
            let added = state
                .commands
                .add_records(redis, generation, identity, batch, None)
                .await?;
            if let Added::OtherGeneration = added {
                return Err(failure::io_error(io::ErrorKind::ConnectionReset));
            }
            self.keep_alive(generation).await?;
        }
        self.membership.wrote(generation);
        Ok(())
    }

    /// Returns a part of a sorted set.
    pub(super) async fn scan(&mut self, key: &str, cursor: u64) -> RedisResult<Page> {
        self.state
            .commands
            .scan(&mut self.connection.redis, key, cursor)
            .await
    }
}
