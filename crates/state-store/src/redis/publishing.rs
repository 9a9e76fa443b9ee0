//! Messages to other replicas that are published and not stored.

use portcullis_session::AnnouncedSession;
use redis::{RedisResult, aio::MultiplexedConnection, cmd};

use super::{
    acknowledgements::OwedAcknowledgement,
    commands::{Commands, Identity},
    message::Message,
};
use crate::LimitUse;

/// Each method fails if the connection fails. A replica that is not connected misses the message.
impl Commands {
    /// Tells other replicas that their records were received.
    pub(crate) async fn acknowledge(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        owed: &[OwedAcknowledgement],
    ) -> RedisResult<()> {
        let mut pipeline = redis::pipe();
        for OwedAcknowledgement { connection, batch } in owed {
            let message = Message::acknowledgement(&identity.connection, *batch);
            pipeline
                .cmd("PUBLISH")
                .arg(self.keys.channel_of(connection))
                .arg(message)
                .ignore();
        }
        pipeline.query_async(redis).await
    }

    pub(crate) async fn publish_limit_uses(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        uses: &[LimitUse],
    ) -> RedisResult<()> {
        self.publish(redis, Message::limit_uses(&identity.replica, uses))
            .await
    }

    /// Publishes sessions in the table of this replica.
    pub(crate) async fn publish_announced(
        &self,
        redis: &mut MultiplexedConnection,
        identity: &Identity,
        sessions: &[AnnouncedSession],
    ) -> RedisResult<()> {
        self.publish(redis, Message::announced(&identity.replica, sessions))
            .await
    }

    /// Publishes tokens that were found inactive.
    pub(crate) async fn publish_inactive(
        &self,
        redis: &mut MultiplexedConnection,
        tokens: &[[u8; 16]],
    ) -> RedisResult<()> {
        self.publish(redis, Message::inactive(tokens)).await
    }

    async fn publish(
        &self,
        redis: &mut MultiplexedConnection,
        message: Vec<u8>,
    ) -> RedisResult<()> {
        cmd("PUBLISH")
            .arg(&self.keys.channel)
            .arg(message)
            .query_async(redis)
            .await
    }
}
