//! A connection that is subscribed to the messages of the other replicas.

use std::{
    convert::Infallible,
    io, str,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use portcullis_metadata::hexadecimal;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, Value, aio::MultiplexedConnection, cmd};
use tokio::time::timeout;

use super::{
    super::{
        Inner, Receiver,
        membership::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT},
        message::Message,
        script::Identity,
    },
    failed,
};

/// A connection that is subscribed.
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

/// Connects and subscribes. Records of messages go to `receiver`.
pub(super) async fn connect(inner: &Arc<Inner>, receiver: &Receiver, replica: &str) -> RedisResult<Connection> {
    let is_lost = Arc::<AtomicBool>::default();
    let connection = random_name().ok_or_else(|| failed(io::ErrorKind::Other))?;
    let revocations = Arc::clone(&receiver.revocations);
    let receiver = {
        let (inner, receiver, is_lost) = (Arc::clone(inner), receiver.clone(), Arc::clone(&is_lost));
        let names = [replica.to_owned(), connection.clone()];
        // Called on the connection's task, in the order of the messages.
        move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                is_lost.store(true, Ordering::Release);
                inner.wake.notify_one();
            }
            receive(&inner, &receiver, &names, &push);
            Ok::<_, Infallible>(())
        }
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT))
        .set_push_sender(receiver);
    let connecting = inner.client.get_multiplexed_async_connection_with_config(&config);
    let mut redis = timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| failed(io::ErrorKind::TimedOut))??;
    let server: Value = cmd("INFO").arg("server").query_async(&mut redis).await?;
    check_mode(&server)?;
    let run = run_id(&server).ok_or_else(|| failed(io::ErrorKind::InvalidData))?;
    let channels = [inner.names.channel().to_owned(), inner.names.channel_of(&connection)];
    redis.subscribe(&channels[..]).await?;
    // From here on, this replica misses no message.
    revocations.drop_introspected();
    let identity = Identity { run, replica: replica.to_owned(), connection };
    Ok(Connection { redis, identity, is_lost })
}

/// Adds the records of a message. Those of this replica itself change nothing.
fn receive(inner: &Inner, receiver: &Receiver, [this, own]: &[String; 2], push: &PushInfo) {
    let (PushKind::Message, Some(Value::BulkString(message))) = (&push.kind, push.data.get(1)) else { return };
    match Message::decode(message) {
        Some(Message::Records(to_acknowledge, records)) => {
            records.iter().for_each(|record| inner.import(receiver, record));
            if let Some((connection, batch)) = to_acknowledge.filter(|(connection, _)| connection != own) {
                inner.acknowledgements.owe(connection, batch);
                inner.wake.notify_one();
            }
        }
        Some(Message::Acknowledgement(connection, batch)) => inner.acknowledgements.acknowledge(batch, connection),
        Some(Message::Uses(uses)) => receiver.sessions.import_last_uses(&uses),
        Some(Message::Limits(replica, uses)) if replica != *this => receiver.counts.add(&uses),
        Some(Message::Inactive(tokens)) => receiver.revocations.drop_tokens(&tokens),
        Some(Message::Announced(replica, sessions)) if replica != *this => {
            receiver.sessions.import_announced(&sessions);
        }
        Some(Message::Limits(..) | Message::Announced(..)) | None => {}
    }
}

/// Returns a field of the answer to `INFO server`.
fn field<'a>(server: &'a Value, name: &str) -> Option<&'a str> {
    let text = match server {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok()?,
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
        _ => return None,
    };
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Rejects servers that do not keep the data themselves, or do not deliver messages to all subscribers themselves.
fn check_mode(server: &Value) -> RedisResult<()> {
    // The first name is that of Redis, the second one that of Valkey 8.
    let mode = field(server, "redis_mode").or_else(|| field(server, "server_mode"));
    let unsupported = match mode {
        Some("sentinel") => "it is a Sentinel; name the primary, or a load balancer that leads to it",
        Some("cluster") => "it is a node of a cluster, which is not supported; name a server of its own",
        _ => return Ok(()),
    };
    Err(io::Error::other(unsupported).into())
}

/// The run id in the answer to `INFO server`.
fn run_id(server: &Value) -> Option<String> {
    let id = field(server, "run_id")?;
    (!id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| id.to_owned())
}

pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hexadecimal(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_id_is_found() {
        let answer = |text: &str| run_id(&Value::BulkString(text.as_bytes().to_vec()));
        assert_eq!(answer("# Server\r\nredis_version:7\r\nrun_id:00ff\r\n"), Some("00ff".to_owned()));
        for text in ["", "# Server\r\n", "run_id:\r\n", "run_id:a b\r\n"] {
            assert_eq!(answer(text), None, "{text}");
        }
        assert_eq!(run_id(&Value::Nil), None);
    }

    /// E13: a Sentinel and a node of a cluster are rejected, with the reason.
    #[test]
    fn other_modes_are_rejected() {
        let checked = |text: &str| check_mode(&Value::SimpleString(text.to_owned()));
        for text in ["", "redis_mode:standalone\r\n", "server_mode:standalone\r\n"] {
            assert!(checked(text).is_ok(), "{text}");
        }
        for (text, named) in [("redis_mode:sentinel\r\n", "load balancer"), ("server_mode:cluster\r\n", "cluster")] {
            let failure = super::super::super::failure::describe(&checked(text).unwrap_err());
            assert!(failure.contains(named), "{failure}");
        }
    }
}
