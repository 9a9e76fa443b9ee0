//! Removal of records that are not needed any more.

use std::collections::HashSet;

use portcullis_metadata::UnixTime;
use portcullis_session::{LastUse, SessionEnd};
use redis::RedisResult;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

use super::{
    super::{
        commands::{BATCH, ScoredMember},
        state::{JournalState, PEER_DELAY},
    },
    connected::Connected,
    removal_schedule::INTERVAL,
};
use crate::compaction::needed_ends;

/// The maximum number of ends that one search reads.
const MAX_READ: usize = 2_000_000;

/// The encoding of an end, which is its member of the list in Redis.
type EncodedEnd = [u8; SessionEnd::ENCODED_LENGTH];

impl Connected<'_> {
    /// Removes expired records once a minute, and ends that others include when there are many.
    pub(super) async fn remove_unneeded(&mut self) -> RedisResult<()> {
        if self.removal.take_expired_due(Instant::now()) {
            self.remove_expired().await?;
        }
        if self.removal.take_search_due() {
            self.remove_included().await?;
        }
        Ok(())
    }

    async fn remove_expired(&mut self) -> RedisResult<()> {
        let state = self.state;
        let redis = &mut self.connection.redis;
        let oldest_use = state
            .clock
            .now()
            .saturating_sub(state.retention.idle_timeout)
            .saturating_sub(PEER_DELAY);
        state
            .commands
            .remove_before(redis, &state.commands.keys.records, oldest_end(state))
            .await?;
        state
            .commands
            .remove_before(redis, &state.commands.keys.last_uses, oldest_use)
            .await
    }

    /// Removes the ends that other ends include.
    async fn remove_included(&mut self) -> RedisResult<()> {
        let state = self.state;
        let generation = self.generation()?;
        let mut ends = Vec::new();
        let mut cursor = Some(0);
        while let Some(position) = cursor.filter(|_| ends.len() < MAX_READ) {
            let page = self.scan(&state.commands.keys.records, position).await?;
            // Drops of tokens and the generation are not ends.
            ends.extend(
                page.members
                    .iter()
                    .filter_map(|member| SessionEnd::decode(&member.member)),
            );
            cursor = page.next;
            self.keep_alive(generation).await?;
        }
        let oldest = oldest_end(state);
        let mut search = spawn_blocking(move || included_ends(&ends, oldest));
        let found = loop {
            tokio::select! {
                found = &mut search => break found,
                () = sleep_until(self.beat_at) => self.keep_alive(generation).await?,
            }
        };
        // A search that was cancelled, because the process ends, has no result.
        let Ok(Found { needed, included }) = found else {
            return Ok(());
        };
        self.removal.searched(needed);
        for batch in included.chunks(BATCH) {
            state
                .commands
                .remove_records(&mut self.connection.redis, batch)
                .await?;
            self.keep_alive(generation).await?;
        }
        Ok(())
    }
}

/// The result of a search.
struct Found {
    /// The number of ends that are needed.
    needed: u64,
    /// The other ends.
    included: Vec<EncodedEnd>,
}

/// Separates ends that are needed from those that have expired or that others include.
fn included_ends(ends: &[SessionEnd], oldest: UnixTime) -> Found {
    let needed: HashSet<EncodedEnd> = needed_ends(ends.iter().copied(), oldest)
        .iter()
        .map(SessionEnd::encode)
        .collect();
    let included = ends
        .iter()
        .map(SessionEnd::encode)
        .filter(|end| !needed.contains(end))
        .collect();
    Found {
        needed: needed.len() as u64,
        included,
    }
}

/// Returns the creation time of the oldest sessions whose ends matter. The clocks of replicas
/// differ, so it is a minute earlier than the lifetime requires.
pub(super) fn oldest_end(state: &JournalState) -> UnixTime {
    state
        .clock
        .now()
        .saturating_sub(state.retention.lifetime)
        .saturating_sub(INTERVAL)
}

/// Returns the last use that a member and its score stand for; `None` if the member is not a
/// session id.
pub(super) fn last_use(ScoredMember { member, score }: ScoredMember) -> Option<LastUse> {
    Some(LastUse {
        session: member.try_into().ok()?,
        time: UnixTime::from_millis(score),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E13: expired ends and those that others include are found. The others remain.
    #[test]
    fn included_ends_are_found() {
        let floor = |secs| SessionEnd::Floor {
            scope: None,
            created: UnixTime::from_secs(secs),
        };
        let ends = [floor(1), floor(5), floor(7)];
        let found = included_ends(&ends, UnixTime::from_secs(0));
        assert_eq!(found.needed, 1, "the last floor includes the others");
        assert_eq!(found.included, [floor(1).encode(), floor(5).encode()]);

        let found = included_ends(&ends, UnixTime::from_secs(8));
        assert_eq!(found.needed, 0, "all have expired");
        assert_eq!(found.included, ends.map(|end| end.encode()));
    }

    #[test]
    fn other_members_are_not_last_uses() {
        let member = |member: &[u8]| {
            last_use(ScoredMember {
                member: member.to_vec(),
                score: 7,
            })
        };
        assert_eq!(
            member(&[1; 16]),
            Some(LastUse {
                session: [1; 16],
                time: UnixTime::from_millis(7)
            })
        );
        assert_eq!(member(&[1; 15]), None);
        assert_eq!(member(&[1; 17]), None);
    }
}
