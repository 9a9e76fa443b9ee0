use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use portcullis_metadata::syntax::hexadecimal;
use redis::{AsyncConnectionConfig, PushInfo, RedisResult, Value, aio::MultiplexedConnection, cmd};
use tokio::time::timeout;

use super::{
    super::{
        commands::Identity,
        failure,
        membership::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT},
        receiver::Receiver,
        state::JournalState,
    },
    inbox::Inbox,
    server_info::ServerInfo,
};

/// A connection that is subscribed. Its messages go to an [`Inbox`].
pub(super) struct Connection {
    pub(super) redis: MultiplexedConnection,
    pub(super) identity: Identity,
    is_lost: Arc<AtomicBool>,
}

impl Connection {
    /// Returns whether the server has closed the connection.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}

/// Connects the replica with this name, and subscribes. Fails if the server cannot be reached
/// within [`CONNECT_TIMEOUT`], rejects the login or a command, is [not
/// supported](ServerInfo::parse), or if the operating system returns no random bytes.
pub(super) async fn connect(
    state: &Arc<JournalState>,
    receiver: &Receiver,
    replica: &str,
) -> RedisResult<Connection> {
    let connection = random_name().ok_or_else(|| failure::io_error(io::ErrorKind::Other))?;
    let is_lost = Arc::<AtomicBool>::default();
    let inbox = Inbox::new(
        Arc::clone(state),
        receiver.clone(),
        replica.to_owned(),
        connection.clone(),
        Arc::clone(&is_lost),
    );
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT))
        .set_push_sender(move |push: PushInfo| {
            inbox.receive(&push);
            Ok::<_, Infallible>(())
        });
    let connecting = state
        .client
        .get_multiplexed_async_connection_with_config(&config);
    let mut redis = timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| failure::io_error(io::ErrorKind::TimedOut))??;
    let info: Value = cmd("INFO").arg("server").query_async(&mut redis).await?;
    let ServerInfo { run_id } = ServerInfo::parse(&info)?;
    let keys = &state.commands.keys;
    redis
        .subscribe(&[keys.channel.clone(), keys.channel_of(&connection)][..])
        .await?;
    // The replica misses no message from here on, but may have missed some before.
    receiver.revocations.drop_introspected();
    let identity = Identity {
        run_id,
        replica: replica.to_owned(),
        connection,
    };
    Ok(Connection {
        redis,
        identity,
        is_lost,
    })
}

/// Returns the random name of a replica or connection: 32 hexadecimal digits. `None` if the
/// operating system returns no random bytes.
pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hexadecimal(&bytes))
}
