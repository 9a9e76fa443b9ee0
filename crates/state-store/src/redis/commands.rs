use std::{collections::HashSet, time::Duration};

use portcullis_metadata::UnixTime;
use portcullis_session::LastUse;
use redis::{
    ErrorKind, FromRedisValue as _, RedisError, RedisResult, Value, aio::MultiplexedConnection, cmd,
};

use super::{
    acknowledgements::Batch,
    generation::Generation,
    keys::Keys,
    membership::{Beat, LEASE, RETURN_TIME},
    message::Message,
    record::Record,
    scripts::{self, Scripts},
};

/// The maximum number of records in one command. Longer lists are divided, so that no command
/// delays the next beat.
pub(crate) const BATCH: usize = 1000;
/// The maximum number of last uses that Redis keeps.
const MAX_LAST_USES: u32 = 2_000_000;

/// The commands of the journal. Each fails if the connection fails, or the response is not what the
/// command returns.
pub(crate) struct Commands {
    pub(crate) keys: Keys,
    scripts: Scripts,
}

/// This replica, on its current connection.
pub(crate) struct Identity {
    /// The run id of the server process.
    pub(crate) run_id: String,
    /// The name of the replica: 32 random hexadecimal digits, as is that of the connection.
    pub(crate) replica: String,
    pub(crate) connection: String,
}

pub(crate) struct BeatResponse {
    pub(crate) beat: Beat,
    /// The number of records in Redis.
    pub(crate) records: u64,
    /// Whether this replica has the lowest name.
    pub(crate) is_lowest: bool,
    /// The number of live replicas, with this one.
    pub(crate) alive: usize,
}

/// The response to records that were added.
pub(crate) enum Added {
    /// They were sent to these connections of live replicas, and no other replica can return
    /// without them.
    Sent(HashSet<String>),
    /// They were added, but another replica can return without them.
    Unsettled,
    /// The data is of another generation. Nothing was added.
    OtherGeneration,
}

/// A part of a sorted set.
pub(crate) struct Page {
    pub(crate) members: Vec<ScoredMember>,
    /// The cursor of the next part; `None` after the last one.
    pub(crate) next: Option<u64>,
}

/// A member of a sorted set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScoredMember {
    pub(crate) member: Vec<u8>,
    /// The time in milliseconds; `u64::MAX` for the generation.
    pub(crate) score: u64,
}

impl Commands {
    /// Returns the commands for the keys with this prefix.
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            keys: Keys::new(prefix),
            scripts: Scripts::default(),
        }
    }

    /// Renews the beat of this replica, which has written its ends to the generation `written`.
    pub(crate) async fn beat(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        written: Option<Generation>,
    ) -> RedisResult<BeatResponse> {
        let Keys {
            generation,
            replicas,
            records,
            ..
        } = &self.keys;
        let mut fresh = Generation([0; 16]);
        getrandom::fill(&mut fresh.0)
            .map_err(|_| RedisError::from((ErrorKind::Client, "no random bytes")))?;
        let mut script = self.scripts.beat.key(&[generation, replicas, records]);
        script
            .arg(&identity.run_id)
            .arg(fresh.to_string())
            .arg(&identity.replica)
            .arg(&identity.connection);
        script.arg(
            written
                .map(|written| written.to_string())
                .unwrap_or_default(),
        );
        script.arg(millis(LEASE)).arg(millis(RETURN_TIME));
        let (generation, age, all_written, members, is_lowest, alive): (
            String,
            u64,
            u8,
            u64,
            u8,
            usize,
        ) = scripts::run(&script, redis).await?;
        let beat = Beat {
            generation: Generation::parse(&generation)
                .ok_or_else(|| unexpected("a generation is malformed"))?,
            age: Duration::from_millis(age),
            others_have_written: all_written == 1,
        };
        // One member is the generation.
        Ok(BeatResponse {
            beat,
            records: members.saturating_sub(1),
            is_lowest: is_lowest == 1,
            alive,
        })
    }

    /// Adds records, and publishes those that are new. With a batch, publishes all and asks for
    /// acknowledgements.
    pub(crate) async fn add_records(
        &self,
        redis: &mut MultiplexedConnection,
        expected: Generation,
        identity: &Identity,
        new_records: &[Record],
        batch: Option<Batch>,
    ) -> RedisResult<Added> {
        let Keys {
            generation,
            replicas,
            records,
            channel,
            ..
        } = &self.keys;
        let mut script = self
            .scripts
            .add_records
            .key(&[generation, replicas, records]);
        script
            .arg(expected.to_string())
            .arg(Message::head_of_records(&identity.connection, batch))
            .arg(channel);
        script
            .arg(millis(LEASE))
            .arg(millis(RETURN_TIME))
            .arg(u8::from(batch.is_some()));
        for record in new_records {
            script
                .arg(record.matters_since().as_millis())
                .arg(record.encode().as_slice());
        }
        let (is_expected, is_settled, mut alive): (u8, u8, HashSet<String>) =
            scripts::run(&script, redis).await?;
        alive.remove(&identity.connection);
        Ok(match (is_expected, is_settled) {
            (1, 1) => Added::Sent(alive),
            (1, _) => Added::Unsettled,
            _ => Added::OtherGeneration,
        })
    }

    /// Adds last uses and publishes them. Above 2,000,000, the earliest ones are removed.
    pub(crate) async fn add_last_uses(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        uses: &[LastUse],
    ) -> RedisResult<()> {
        let mut script = self.scripts.add_last_uses.key(&self.keys.last_uses);
        script
            .arg(Message::head_of_last_uses(&identity.replica))
            .arg(&self.keys.channel)
            .arg(MAX_LAST_USES);
        for used in uses {
            script
                .arg(used.time.as_millis())
                .arg(used.session.as_slice())
                .arg(used.encode().as_slice());
        }
        scripts::run(&script, redis).await
    }

    /// Returns the part of a sorted set at a cursor, with about [`BATCH`] members. The first cursor
    /// is 0. A member that is added or removed while the parts are read can be missing; others can
    /// be repeated.
    pub(crate) async fn scan(
        &self,
        redis: &mut MultiplexedConnection,
        key: &str,
        cursor: u64,
    ) -> RedisResult<Page> {
        let response = cmd("ZSCAN")
            .arg(key)
            .arg(cursor)
            .arg("COUNT")
            .arg(BATCH)
            .query_async(redis)
            .await?;
        parse_page(response)
    }

    /// Removes the members of a sorted set whose time is before `oldest`.
    pub(crate) async fn remove_before(
        &self,
        redis: &mut MultiplexedConnection,
        key: &str,
        oldest: UnixTime,
    ) -> RedisResult<()> {
        let before = format!("({}", oldest.as_millis());
        cmd("ZREMRANGEBYSCORE")
            .arg(key)
            .arg("-inf")
            .arg(before)
            .query_async(redis)
            .await
    }

    pub(crate) async fn remove_records(
        &self,
        redis: &mut MultiplexedConnection,
        records: &[[u8; Record::ENCODED_LENGTH]],
    ) -> RedisResult<()> {
        let mut command = cmd("ZREM");
        command.arg(&self.keys.records);
        for record in records {
            command.arg(record.as_slice());
        }
        command.query_async(redis).await
    }

    /// Removes the beat of this replica, which then no longer counts as alive.
    pub(crate) async fn leave(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
    ) -> RedisResult<()> {
        cmd("HDEL")
            .arg(&self.keys.replicas)
            .arg(&identity.replica)
            .query_async(redis)
            .await
    }
}

/// Parses the response to `ZSCAN`: the next cursor, and an array of members, each followed by its
/// score. Fails if one of them is malformed, because a replica must not take a list for complete
/// that it has not read.
fn parse_page((cursor, values): (u64, Vec<Value>)) -> RedisResult<Page> {
    let (pairs, []) = values.as_chunks::<2>() else {
        return Err(unexpected("a member has no score"));
    };
    let members = pairs.iter().map(|[member, score]| {
        let Value::BulkString(member) = member else {
            return Err(unexpected("a member is not a string"));
        };
        // Saturating: the score of the generation is infinite. Times in milliseconds are far below
        // 2^53.
        let score = f64::from_redis_value_ref(score)? as u64;
        Ok(ScoredMember {
            member: member.clone(),
            score,
        })
    });
    Ok(Page {
        members: members.collect::<RedisResult<_>>()?,
        next: (cursor != 0).then_some(cursor),
    })
}

fn unexpected(description: &'static str) -> RedisError {
    RedisError::from((ErrorKind::UnexpectedReturnType, description))
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    /// E13: the scores of members are parsed in the forms of RESP2 and RESP3.
    #[test]
    fn members_have_their_scores() {
        let member = |member: &str, score| ScoredMember {
            member: member.into(),
            score,
        };
        let values = vec![
            text("a"),
            text("1800000000000"),
            text("b"),
            Value::Double(7.0),
            text("c"),
            text("inf"),
        ];
        let page = parse_page((9, values)).unwrap();
        assert_eq!(
            page.members,
            [
                member("a", 1_800_000_000_000),
                member("b", 7),
                member("c", u64::MAX)
            ]
        );
        assert_eq!(page.next, Some(9));
        let last = parse_page((0, Vec::new())).unwrap();
        assert!(last.members.is_empty());
        assert!(last.next.is_none());
    }

    /// E13: a list is not taken for complete if a part of it cannot be read.
    #[test]
    fn a_malformed_page_is_an_error() {
        let cases = [
            ("no score", vec![text("a")]),
            (
                "no score after a pair",
                vec![text("a"), text("1"), text("b")],
            ),
            ("a score that is not a number", vec![text("a"), text("b")]),
            ("a member that is not a string", vec![Value::Nil, text("1")]),
        ];
        for (name, values) in cases {
            assert!(parse_page((0, values)).is_err(), "{name}");
        }
    }
}
