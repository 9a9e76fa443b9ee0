//! The commands in Redis, as scripts, so that each is atomic.

use std::time::Duration;

use portcullis_session::{LastUse, SessionEnd};
use redis::{RedisResult, Value, aio::MultiplexedConnection, cmd};

use super::membership::{Beat, Generation, LEASE, RETURN_TIME};

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

/// Adds ends and publishes them: all of them, or without `force` those that are new. Returns 1 if the generation is the one
/// that is expected, and 1 if every live replica has received them and no other can return.
///
/// Each connection subscribes to a channel of its own, after the common one. So the number of its subscribers tells whether the
/// replica receives, even if connections of replicas that are gone still count for the common channel.
const ADD_ENDS: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local generation, force, channel = ARGV[1], ARGV[2] == '1', ARGV[3]
local lease, return_time = tonumber(ARGV[4]), tonumber(ARGV[5])
local known = redis.call('HMGET', KEYS[1], 'generation', 'born')
if known[1] ~= generation or not redis.call('ZSCORE', KEYS[3], 'generation ' .. generation) then return {0, 0} end
local message = {'E'}
for i = 6, #ARGV, 2 do
  if redis.call('ZADD', KEYS[3], ARGV[i], ARGV[i + 1]) == 1 or force then message[#message + 1] = ARGV[i + 1] end
end
if #message > 1 then redis.call('PUBLISH', channel, table.concat(message)) end
local covered = 0
if now - tonumber(known[2]) >= return_time then covered = 1 end
local replicas = redis.call('HGETALL', KEYS[2])
for i = 1, #replicas, 2 do
  local beat, connection = string.match(replicas[i + 1], '^(%d+) (%x+) ')
  if beat and now - tonumber(beat) < lease then
    local subscribers = redis.call('PUBSUB', 'NUMSUB', channel .. ':' .. connection)
    if tonumber(subscribers[2]) < 1 then covered = 0 end
  end
end
return {1, covered}
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

/// The answer to ends that were added.
pub(crate) enum Added {
    /// Every live replica has received them.
    Received,
    /// A replica has not, or can return without.
    NotReceived,
    /// The data is of another generation. Nothing was added.
    OtherGeneration,
}

/// What a message contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Ends(Vec<SessionEnd>),
    Uses(Vec<LastUse>),
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
        command.arg(&identity.run).arg(hex(&fresh)).arg(&identity.replica).arg(&identity.connection);
        command.arg(written.map(|written| hex(&written)).unwrap_or_default()).arg(millis(LEASE));
        command.arg(millis(RETURN_TIME));
        let (generation, age, all, ends, lowest, alive): (String, u64, u8, u64, u8, usize) =
            command.query_async(redis).await?;
        let generation = from_hex(&generation)
            .ok_or_else(|| redis::RedisError::from(std::io::Error::other("the generation is not one")))?;
        let beat = Beat { generation, age: Duration::from_millis(age), others_have_written: all == 1 };
        Ok(BeatAnswer { beat, ends, is_lowest: lowest == 1, alive })
    }

    /// Adds ends, and publishes those that are new. With `force`, publishes all.
    pub(crate) async fn add_ends(
        &self,
        redis: &mut MultiplexedConnection,
        generation: Generation,
        ends: impl Iterator<Item = &SessionEnd>,
        force: bool,
    ) -> RedisResult<Added> {
        let mut command = self.script(ADD_ENDS);
        command.arg(hex(&generation)).arg(u8::from(force)).arg(&self.channel);
        command.arg(millis(LEASE)).arg(millis(RETURN_TIME));
        for end in ends {
            command.arg(end.created().as_millis()).arg(end.encode().as_slice());
        }
        let (is_current, is_received): (u8, u8) = command.query_async(redis).await?;
        Ok(match (is_current, is_received) {
            (1, 1) => Added::Received,
            (1, _) => Added::NotReceived,
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

    /// Removes the beat of a replica.
    pub(crate) async fn leave(&self, redis: &mut MultiplexedConnection, identity: &Identity) -> RedisResult<()> {
        cmd("HDEL").arg(&self.keys[1]).arg(&identity.replica).query_async(redis).await
    }
}

impl Message {
    /// Returns the message with this encoding. Records that cannot be decoded are left out.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (variant, records) = bytes.split_first()?;
        match variant {
            b'E' => {
                Some(Self::Ends(records.chunks(SessionEnd::ENCODED_LENGTH).filter_map(SessionEnd::decode).collect()))
            }
            b'U' => Some(Self::Uses(records.chunks(LastUse::ENCODED_LENGTH).filter_map(LastUse::decode).collect())),
            _ => None,
        }
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Generation> {
    let value = (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok())??;
    Some(value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;
    use portcullis_session::ScopeId;

    use super::*;

    /// E13: a message has the records that were published. Others are ignored.
    #[test]
    fn messages_have_their_records() {
        let ends: Vec<_> = (1..4_u8)
            .map(|owner| SessionEnd::Floor {
                scope: Some(ScopeId([owner; 16])),
                created: UnixTime::from_secs(owner.into()),
            })
            .collect();
        let mut bytes = vec![b'E'];
        ends.iter().for_each(|end| bytes.extend(end.encode()));
        assert_eq!(Message::decode(&bytes), Some(Message::Ends(ends.clone())));
        bytes.extend([9; 50]);
        assert_eq!(Message::decode(&bytes), Some(Message::Ends(ends)));
        let used = LastUse { session: [1; 16], time: UnixTime::from_secs(7) };
        let bytes = [b"U".as_slice(), &used.encode()].concat();
        assert_eq!(Message::decode(&bytes), Some(Message::Uses(vec![used])));
        assert_eq!((Message::decode(b""), Message::decode(b"x")), (None, None));
    }

    #[test]
    fn generations_return_from_their_text() {
        let generation = [0x0f; 16];
        assert_eq!(from_hex(&hex(&generation)), Some(generation));
        assert_eq!((from_hex("0f"), from_hex(&"g".repeat(32))), (None, None));
    }
}
