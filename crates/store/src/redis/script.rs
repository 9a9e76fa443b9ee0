//! The commands in Redis, as scripts, so that each is atomic.

use std::{collections::HashSet, time::Duration};

use portcullis_metadata::hexadecimal;
use portcullis_session::{AnnouncedSession, LastUse};
use redis::{RedisResult, Value, aio::MultiplexedConnection, cmd};

use super::{
    acknowledgements::Batch,
    membership::{Beat, Generation, LEASE, RETURN_TIME},
    message::Message,
    record::Record,
};
use crate::LimitUse;

/// Renews the beat of a replica, and returns the generation, its age in ms, 1 if all others have written to it, the number of
/// ends, 1 if this replica has the lowest id, and the number of live replicas.
///
/// A beat that is ahead of the clock, which can be set back, counts as one of now.
///
/// A server process that has no generation, or that of another process, gets a new one: after a restart or a failover, the last
/// writes can be lost. The list of ends has the generation as a member, so that a lost list is noticed, too.
const BEAT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local run, fresh, replica, connection, written = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local lease, return_time = tonumber(ARGV[6]), tonumber(ARGV[7])
local known = redis.call('HMGET', KEYS[1], 'run', 'generation', 'born')
local generation, born = known[2], tonumber(known[3])
local has_list = generation and redis.call('ZSCORE', KEYS[3], 'generation ' .. generation)
if known[1] ~= run or not has_list or not born or born > now then
  generation, born = fresh, now
  redis.call('HSET', KEYS[1], 'run', run, 'generation', generation, 'born', born)
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '+inf', '+inf')
  redis.call('ZADD', KEYS[3], '+inf', 'generation ' .. generation)
end
redis.call('HSET', KEYS[2], replica, string.format('%.0f', now) .. ' ' .. connection .. ' ' .. written)
local all, lowest, alive = 1, 1, 0
local replicas = redis.call('HGETALL', KEYS[2])
for i = 1, #replicas, 2 do
  local beat, other, theirs = string.match(replicas[i + 1], '^(%d+) (%x+) (%x*)$')
  beat = tonumber(beat)
  if beat and beat > now then
    redis.call('HSET', KEYS[2], replicas[i], string.format('%.0f', now) .. ' ' .. other .. ' ' .. theirs)
    beat = now
  end
  if not beat or now - beat >= return_time then
    redis.call('HDEL', KEYS[2], replicas[i])
  else
    if now - beat < lease then alive = alive + 1 end
    if replicas[i] ~= replica then
      if theirs ~= generation then all = 0 end
      if replicas[i] < replica then lowest = 0 end
    end
  end
end
return {generation, now - born, all, redis.call('ZCARD', KEYS[3]), lowest, alive}
";

/// Adds records and publishes them: all of them, or without an acknowledgement those that are new. Returns 1 if the generation is
/// the one that is expected, 1 if the data is so old that no other replica can return, and the connections of the live replicas.
///
/// A message begins with the connection and the batch to acknowledge, and batch 0 if no acknowledgement is expected.
const ADD_RECORDS: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local generation, head, channel = ARGV[1], ARGV[2], ARGV[3]
local lease, return_time, force = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local known = redis.call('HMGET', KEYS[1], 'generation', 'born')
if known[1] ~= generation or not redis.call('ZSCORE', KEYS[3], 'generation ' .. generation) then return {0, 0, {}} end
local message = {head}
for i = 7, #ARGV, 2 do
  if redis.call('ZADD', KEYS[3], ARGV[i], ARGV[i + 1]) == 1 or force then message[#message + 1] = ARGV[i + 1] end
end
if #message > 1 then redis.call('PUBLISH', channel, table.concat(message)) end
local settled, alive = 0, {}
if now - tonumber(known[2]) >= return_time then settled = 1 end
local replicas = redis.call('HGETALL', KEYS[2])
for i = 1, #replicas, 2 do
  local beat, connection = string.match(replicas[i + 1], '^(%d+) (%x+) ')
  if beat and now - tonumber(beat) < lease then alive[#alive + 1] = connection end
end
return {1, settled, alive}
";

/// Adds last uses, publishes them, and keeps the latest ones.
const ADD_USES: &str = r"
local message = {'U'}
for i = 3, #ARGV, 3 do
  redis.call('ZADD', KEYS[4], 'GT', ARGV[i], ARGV[i + 1])
  message[#message + 1] = ARGV[i + 2]
end
redis.call('PUBLISH', ARGV[1], table.concat(message))
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -1 - ARGV[2])
return 0
";

/// The maximum number of last uses that Redis keeps.
const MAX_USES: u32 = 2_000_000;
/// The number of records in one command.
pub(crate) const BATCH: usize = 1000;

/// The names in Redis.
#[derive(Debug)]
pub(crate) struct Names {
    keys: [String; 4],
    channel: String,
}

/// This replica, on its current connection.
pub(crate) struct Identity {
    /// The run id of the server process.
    pub(crate) run: String,
    pub(crate) replica: String,
    pub(crate) connection: String,
}

/// The answer to a beat, and what concerns the removal of ends that are not needed.
pub(crate) struct BeatAnswer {
    pub(crate) beat: Beat,
    pub(crate) ends: u64,
    pub(crate) is_lowest: bool,
    /// The number of live replicas, with this one.
    pub(crate) alive: usize,
}

/// The answer to records that were added.
pub(crate) enum Added {
    /// They were sent to these connections of live replicas, and no other replica can return without them.
    Sent(HashSet<String>),
    /// Another replica can return without them.
    Unsettled,
    /// The data is of another generation. Nothing was added.
    OtherGeneration,
}

impl Names {
    /// The names with a prefix. All keys are in one hash slot.
    pub(crate) fn new(prefix: &str) -> Self {
        let name = |name: &str| format!("{{{prefix}}}:{name}");
        Self {
            keys: ["generation", "replicas", "session-ends", "session-uses"].map(name),
            channel: name("session-events"),
        }
    }

    pub(crate) fn ends(&self) -> &str {
        &self.keys[2]
    }

    pub(crate) fn uses(&self) -> &str {
        &self.keys[3]
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// The channel of one connection.
    pub(crate) fn channel_of(&self, connection: &str) -> String {
        format!("{}:{connection}", self.channel)
    }

    fn script(&self, source: &str) -> redis::Cmd {
        let mut command = cmd("EVAL");
        command.arg(source).arg(self.keys.len()).arg(&self.keys);
        command
    }

    pub(crate) async fn beat(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        written: Option<Generation>,
    ) -> RedisResult<BeatAnswer> {
        let mut fresh = Generation::default();
        getrandom::fill(&mut fresh).map_err(|_| redis::RedisError::from(std::io::Error::other("no random bytes")))?;
        let mut command = self.script(BEAT);
        command.arg(&identity.run).arg(hexadecimal(&fresh)).arg(&identity.replica).arg(&identity.connection);
        command.arg(written.map(|written| hexadecimal(&written)).unwrap_or_default()).arg(millis(LEASE));
        command.arg(millis(RETURN_TIME));
        let (generation, age, all, ends, lowest, alive): (String, u64, u8, u64, u8, usize) =
            command.query_async(redis).await?;
        let generation = from_hex(&generation)
            .ok_or_else(|| redis::RedisError::from(std::io::Error::other("the generation is not one")))?;
        let beat = Beat { generation, age: Duration::from_millis(age), others_have_written: all == 1 };
        Ok(BeatAnswer { beat, ends, is_lowest: lowest == 1, alive })
    }

    /// Adds records, and publishes those that are new. With a batch, publishes all and asks for acknowledgements.
    pub(crate) async fn add_records(
        &self,
        redis: &mut MultiplexedConnection,
        generation: Generation,
        identity: &Identity,
        records: impl Iterator<Item = &Record>,
        batch: Option<Batch>,
    ) -> RedisResult<Added> {
        let mut command = self.script(ADD_RECORDS);
        let head = Message::encode_head(b'E', &identity.connection, batch.unwrap_or(0));
        command.arg(hexadecimal(&generation)).arg(head).arg(&self.channel);
        command.arg(millis(LEASE)).arg(millis(RETURN_TIME)).arg(u8::from(batch.is_some()));
        for record in records {
            command.arg(record.matters_since().as_millis()).arg(record.encode().as_slice());
        }
        let (is_current, is_settled, mut alive): (u8, u8, HashSet<String>) = command.query_async(redis).await?;
        alive.remove(&identity.connection);
        Ok(match (is_current, is_settled) {
            (1, 1) => Added::Sent(alive),
            (1, _) => Added::Unsettled,
            _ => Added::OtherGeneration,
        })
    }

    pub(crate) async fn add_uses(&self, redis: &mut MultiplexedConnection, uses: &[LastUse]) -> RedisResult<()> {
        let mut command = self.script(ADD_USES);
        command.arg(&self.channel).arg(MAX_USES);
        for used in uses {
            command.arg(used.time.as_millis()).arg(used.session.as_slice()).arg(used.encode().as_slice());
        }
        command.query_async(redis).await
    }

    /// Tells other replicas that their records were received.
    pub(crate) async fn acknowledge(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        batches: &[(String, Batch)],
    ) -> RedisResult<()> {
        let mut pipeline = redis::pipe();
        for (connection, batch) in batches {
            let message = Message::encode_head(b'A', &identity.connection, *batch);
            pipeline.cmd("PUBLISH").arg(self.channel_of(connection)).arg(message).ignore();
        }
        pipeline.query_async(redis).await
    }

    /// Publishes uses of limits. They are not stored.
    pub(crate) async fn publish_limit_uses(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        uses: &[LimitUse],
    ) -> RedisResult<()> {
        let message = Message::encode_of(b'L', &identity.replica, uses.iter().map(LimitUse::encode));
        cmd("PUBLISH").arg(&self.channel).arg(message).query_async(redis).await
    }

    /// Publishes sessions in the table of this replica. They are not stored.
    pub(crate) async fn publish_announced(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        sessions: &[AnnouncedSession],
    ) -> RedisResult<()> {
        let message = Message::encode_of(b'O', &identity.replica, sessions.iter().map(AnnouncedSession::encode));
        cmd("PUBLISH").arg(&self.channel).arg(message).query_async(redis).await
    }

    /// Publishes tokens that were found inactive. They are not stored.
    pub(crate) async fn publish_inactive(
        &self,
        redis: &mut MultiplexedConnection,
        tokens: &[[u8; 16]],
    ) -> RedisResult<()> {
        let message = [b"T", tokens.as_flattened()].concat();
        cmd("PUBLISH").arg(&self.channel).arg(message).query_async(redis).await
    }

    /// Removes the beat of a replica.
    pub(crate) async fn leave(&self, redis: &mut MultiplexedConnection, identity: &Identity) -> RedisResult<()> {
        cmd("HDEL").arg(&self.keys[1]).arg(&identity.replica).query_async(redis).await
    }
}

/// Returns the members and scores of one answer to `ZSCAN`, and the next cursor.
pub(crate) fn scanned(answer: (u64, Vec<Value>)) -> (u64, Vec<(Vec<u8>, u64)>) {
    let (cursor, values) = answer;
    let pairs = values.chunks_exact(2).filter_map(|pair| {
        let Value::BulkString(member) = &pair[0] else { return None };
        let score: f64 = redis::from_redis_value_ref(&pair[1]).ok()?;
        // Scores are times in milliseconds, far below 2^53.
        Some((member.clone(), score as u64))
    });
    (cursor, pairs.collect())
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn from_hex(text: &str) -> Option<Generation> {
    let value = (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok())??;
    Some(value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_return_from_their_text() {
        let generation = [0x0f; 16];
        assert_eq!(from_hex(&hexadecimal(&generation)), Some(generation));
        assert_eq!((from_hex("0f"), from_hex(&"g".repeat(32))), (None, None));
    }
}
