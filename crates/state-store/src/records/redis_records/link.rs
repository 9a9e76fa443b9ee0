//! [`Link`]: the connection to Redis, which is checked and replaced when it fails.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use portcullis_metadata::Clock;
pub(super) use redis::aio::MultiplexedConnection as Redis;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, ServerErrorKind, cmd};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    records::RecordError,
    redis::{
        failure,
        membership::{CONNECT_TIMEOUT, MAX_BACKOFF, RESPONSE_TIMEOUT},
    },
};

/// The connection to Redis.
pub(super) struct Link {
    client: Client,
    clock: Arc<dyn Clock>,
    /// Whether the durability of Redis is not checked.
    pub(super) assumes_durable: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// The number of connections so far.
    connections: u64,
    /// The last failure, and when it is tried again, by the monotonic clock.
    failed: Option<(RecordError, Duration)>,
}

#[derive(Clone)]
struct Connection {
    redis: Redis,
    number: u64,
}

/// Why commands failed.
pub(super) enum Failure {
    /// The connection was established before, and has ended. It is replaced by the next commands.
    ConnectionLost(RecordError),
    /// Redis cannot be reached, or refuses the commands.
    Other(RecordError),
}

impl From<Failure> for RecordError {
    fn from(failure: Failure) -> Self {
        let (Failure::ConnectionLost(error) | Failure::Other(error)) = failure;
        error
    }
}

impl Link {
    pub(super) fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        Self {
            client,
            clock,
            assumes_durable: false,
            state: Mutex::default(),
        }
    }

    /// Runs commands on the connection. Replaces it later if it fails, unless Redis has only
    /// refused a command.
    pub(super) async fn run<T, F>(&self, commands: impl FnOnce(Redis) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, RecordError>>,
    {
        let connection = self.connection().await.map_err(Failure::Other)?;
        match commands(connection.redis.clone()).await {
            Ok(result) => Ok(result),
            Err(RecordError::Redis(failure)) if !is_refusal(failure.error()) => {
                self.drop_connection(&connection).await;
                Err(Failure::ConnectionLost(RecordError::Redis(failure)))
            }
            Err(error) => Err(Failure::Other(error)),
        }
    }

    /// Returns the connection. Connects if there is none, at most every 250 ms. Callers wait for
    /// one attempt together.
    async fn connection(&self) -> Result<Connection, RecordError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok(connection.clone());
        }
        if let Some((error, until)) = &state.failed
            && self.clock.monotonic() < *until
        {
            return Err(error.clone());
        }
        match self.connect().await {
            Ok(redis) => {
                if state.failed.take().is_some() {
                    tracing::info!("records in redis can be used again");
                }
                state.connections += 1;
                let number = state.connections;
                let connection = Connection { redis, number };
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                if state.failed.is_none() {
                    tracing::error!(
                        error = %error, reason = error.code(),
                        "records in redis cannot be used; no user can sign in until they can"
                    );
                }
                let until = self.clock.monotonic().saturating_add(MAX_BACKOFF);
                state.failed = Some((error.clone(), until));
                Err(error)
            }
        }
    }

    async fn drop_connection(&self, connection: &Connection) {
        let mut state = self.state.lock().await;
        if state.connections == connection.number {
            state.connection = None;
        }
    }

    async fn connect(&self) -> Result<Redis, RecordError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut redis = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| failure::io_error(io::ErrorKind::TimedOut))??;
        if !self.assumes_durable {
            check_durability(&mut redis).await?;
        }
        Ok(redis)
    }
}

/// Checks that Redis answers a change after it is on disk, and removes no records. One option in
/// each command, because servers before version 7 accept one only.
async fn check_durability(redis: &mut Redis) -> Result<(), RecordError> {
    let is_yes = option(redis, "appendonly").await? == "yes";
    if !is_yes || option(redis, "appendfsync").await? != "always" {
        return Err(RecordError::RedisDurability);
    }
    // The other policies remove only keys that Redis itself lets expire. The records have none.
    if option(redis, "maxmemory-policy")
        .await?
        .starts_with("allkeys")
    {
        return Err(RecordError::RedisEviction);
    }
    Ok(())
}

async fn option(redis: &mut Redis, name: &str) -> Result<String, RecordError> {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg(name);
    match command.query_async(redis).await {
        Ok(options) => {
            let mut options: HashMap<String, String> = options;
            options.remove(name).ok_or(RecordError::RedisConfig)
        }
        // The user may not, or a managed service has no such command.
        Err(error) if is_refusal(&error) => Err(RecordError::RedisConfig),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the server has answered that it does not execute the command, and would execute
/// others.
fn is_refusal(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(kind) if kind != ServerErrorKind::ReadOnly
    )
}
