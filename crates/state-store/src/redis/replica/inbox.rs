//! [`Inbox`]: receives what the server pushes on a connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use redis::{PushInfo, PushKind, Value};

use super::super::{message::Message, receiver::Receiver, state::JournalState};

/// Receives the messages of a connection, in their order. It must not block: the connection waits
/// for it.
pub(super) struct Inbox {
    state: Arc<JournalState>,
    receiver: Receiver,
    /// The name of this replica.
    replica: String,
    /// The name of the connection.
    connection: String,
    is_lost: Arc<AtomicBool>,
    has_reported_unreadable: AtomicBool,
}

impl Inbox {
    /// Returns the inbox of a connection. It sets `is_lost` when the server closes the connection.
    pub(super) fn new(
        state: Arc<JournalState>,
        receiver: Receiver,
        replica: String,
        connection: String,
        is_lost: Arc<AtomicBool>,
    ) -> Self {
        Self {
            state,
            receiver,
            replica,
            connection,
            is_lost,
            has_reported_unreadable: AtomicBool::new(false),
        }
    }

    pub(super) fn receive(&self, push: &PushInfo) {
        match (&push.kind, push.data.get(1)) {
            (PushKind::Disconnection, _) => {
                self.is_lost.store(true, Ordering::Release);
                self.state.wake.notify_one();
            }
            (PushKind::Message, Some(Value::BulkString(message))) => match Message::decode(message)
            {
                Some(message) => self.receive_message(message),
                None => self.report_unreadable(),
            },
            // The responses to `SUBSCRIBE`.
            _ => {}
        }
    }

    /// Applies a message. Records and tokens of this replica itself change nothing; its last uses
    /// and counts are left out.
    fn receive_message(&self, message: Message) {
        let Receiver {
            sessions,
            counts,
            revocations,
        } = &self.receiver;
        match message {
            Message::Records {
                connection,
                batch,
                records,
                is_incomplete,
            } => {
                records
                    .iter()
                    .for_each(|record| self.receiver.apply(record, &self.state.drops));
                if is_incomplete {
                    // Without an acknowledgement, the other replica does not confirm an end that
                    // this one does not know.
                    self.report_unreadable();
                } else if let Some(batch) = batch
                    && connection != self.connection
                {
                    self.state.acknowledgements.owe(connection, batch);
                    self.state.wake.notify_one();
                }
            }
            Message::Acknowledgement { connection, batch } => {
                self.state.acknowledgements.acknowledge(batch, connection);
            }
            Message::LastUses { replica, uses } => {
                if replica != self.replica {
                    sessions.import_last_uses(&uses);
                }
            }
            Message::LimitUses { replica, uses } => {
                if replica != self.replica {
                    counts.add(&uses);
                }
            }
            Message::Announced {
                replica,
                sessions: announced,
            } => {
                if replica != self.replica {
                    sessions.import_announced(&announced);
                }
            }
            Message::InactiveTokens(tokens) => revocations.drop_tokens(&tokens),
        }
    }

    /// Logs, once for each connection, that a message could not be read.
    fn report_unreadable(&self) {
        if !self.has_reported_unreadable.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a replica publishes messages that cannot be read; run the same version at all replicas"
            );
        }
    }
}
