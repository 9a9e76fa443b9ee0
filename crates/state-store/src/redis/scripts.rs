//! [`Scripts`]: the Lua scripts that Redis runs, each of them atomically.
//!
//! The head of each `.lua` file lists its keys, arguments and results.

use std::io;

use redis::{FromRedisValue, RedisResult, Script, ScriptInvocation, aio::MultiplexedConnection};
use tokio::time::timeout;

use super::{failure, membership::RESPONSE_TIMEOUT};

pub(crate) struct Scripts {
    /// Renews the beat of a replica.
    pub(crate) beat: Script,
    /// Adds records and publishes them.
    pub(crate) add_records: Script,
    /// Adds last uses and publishes them.
    pub(crate) add_last_uses: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            beat: Script::new(include_str!("scripts/beat.lua")),
            add_records: Script::new(include_str!("scripts/add_records.lua")),
            add_last_uses: Script::new(include_str!("scripts/add_last_uses.lua")),
        }
    }
}

/// Runs a script by its hash. A server that does not know it, because it was restarted, gets the
/// script first. Fails if the connection fails, or if this takes longer than [`RESPONSE_TIMEOUT`].
/// The time includes the transfer of the script: [`RETURN_TIME`](super::membership::RETURN_TIME)
/// counts a beat as one command.
pub(crate) async fn run<T: FromRedisValue>(
    invocation: &ScriptInvocation<'_>,
    redis: &mut MultiplexedConnection,
) -> RedisResult<T> {
    timeout(RESPONSE_TIMEOUT, invocation.invoke_async(redis))
        .await
        .unwrap_or_else(|_| Err(failure::io_error(io::ErrorKind::TimedOut)))
}
