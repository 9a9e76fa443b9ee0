//! Removal of records that are not needed any more.

use std::collections::HashSet;

use portcullis_metadata::UnixTime;
use portcullis_session::{LastUse, SessionEnd};
use redis::{RedisResult, cmd};
use tokio::{
    task::spawn_blocking,
    time::{Duration, Instant, sleep_until},
};

use super::{
    super::script::{BATCH, BeatAnswer},
    Connected,
};
use crate::compaction::needed_ends;

/// How often expired records are removed.
const INTERVAL: Duration = Duration::from_secs(60);
/// The list of ends is not searched before it has grown by this.
const MIN_GROWTH: u64 = 65_536;
/// The maximum number of ends that one search reads.
const MAX_READ: usize = 2_000_000;

/// When something must be removed.
#[derive(Default)]
pub(super) struct Removal {
    /// When expired records were last removed.
    last: Option<Instant>,
    /// The number of ends after the last search.
    needed: u64,
    is_due: bool,
}

impl Removal {
    /// One replica, that with the lowest id, searches when the list has doubled.
    pub(super) fn note(&mut self, answer: &BeatAnswer) {
        self.is_due = answer.is_lowest && answer.ends > 2 * self.needed + MIN_GROWTH;
    }
}

impl Connected<'_> {
    /// Removes expired records once a minute, and ends that others include when there are many.
    pub(super) async fn remove_unneeded(&mut self) -> RedisResult<()> {
        if self.removal.last.is_none_or(|last| last.elapsed() >= INTERVAL) {
            self.removal.last = Some(Instant::now());
            let (inner, now) = (self.inner, self.inner.clock.now());
            let delay = super::super::RedisJournal::PEER_DELAY;
            let oldest_use = now.saturating_sub(inner.retention.idle_timeout).saturating_sub(delay);
            for (key, oldest) in [(inner.names.ends(), self.oldest_end()), (inner.names.uses(), oldest_use)] {
                let mut command = cmd("ZREMRANGEBYSCORE");
                command.arg(key).arg("-inf").arg(format!("({}", oldest.as_millis()));
                command.query_async::<()>(&mut self.connection.redis).await?;
            }
        }
        if self.removal.is_due {
            self.removal.is_due = false;
            self.remove_included().await?;
        }
        Ok(())
    }

    /// Removes the ends that other ends include.
    async fn remove_included(&mut self) -> RedisResult<()> {
        let (inner, generation) = (self.inner, self.generation()?);
        let mut ends = Vec::new();
        let mut cursor = 0;
        loop {
            let (next, members) = self.scan(inner.names.ends(), cursor).await?;
            ends.extend(members.into_iter().filter_map(|(member, _)| SessionEnd::decode(&member)));
            if next == 0 || ends.len() >= MAX_READ {
                break;
            }
            cursor = next;
            self.keep_alive(generation).await?;
        }
        let oldest = self.oldest_end();
        let mut search = spawn_blocking(move || {
            let needed: HashSet<_> = needed_ends(ends.iter().copied(), oldest).iter().map(SessionEnd::encode).collect();
            let mut included: Vec<_> = ends.iter().map(SessionEnd::encode).collect();
            included.retain(|end| !needed.contains(end));
            (needed.len() as u64, included)
        });
        let (needed, included) = loop {
            tokio::select! {
                found = &mut search => match found {
                    Ok(found) => break found,
                    Err(_) => return Ok(()),
                },
                () = sleep_until(self.beat_at) => self.keep_alive(generation).await?,
            }
        };
        self.removal.needed = needed;
        for batch in included.chunks(BATCH) {
            let mut command = cmd("ZREM");
            command.arg(inner.names.ends());
            batch.iter().for_each(|end| {
                command.arg(end.as_slice());
            });
            command.query_async::<()>(&mut self.connection.redis).await?;
            self.keep_alive(generation).await?;
        }
        Ok(())
    }

    pub(super) fn oldest_end(&self) -> UnixTime {
        // Clocks differ.
        self.inner.clock.now().saturating_sub(self.inner.retention.lifetime).saturating_sub(INTERVAL)
    }
}

/// The last use that a member and its score stand for.
pub(super) fn last_use((member, score): (Vec<u8>, u64)) -> Option<LastUse> {
    Some(LastUse { session: member.try_into().ok()?, time: UnixTime::from_millis(score) })
}
