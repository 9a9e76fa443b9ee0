use crate::Session;

/// What hears of ended sessions, so that transports and streams end with them.
pub trait SessionObserver: Send + Sync + 'static {
    /// A session has been opened: called exactly once for each, on the thread that opened it, when it already resolves,
    /// and with no lock of the store held. Keep it short. Does nothing by default.
    fn opened(&self, session: &Session) {
        let _ = session;
    }

    /// A session has ended: called exactly once for each, on the thread that ended it, when it no longer
    /// resolves and its room is free again, and with no lock of the store held. Keep it short.
    fn ended(&self, session: &Session, reason: EndReason);
}

/// Hears nothing.
impl SessionObserver for () {
    fn ended(&self, _session: &Session, _reason: EndReason) {}
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The owner asked for it.
    Deleted,
    /// The owner asked for it, and the backend did not confirm that its side has ended: it may have to be asked again.
    DeleteFailed,
    /// The transport behind it closed.
    TransportClosed,
    /// Nobody used it for [`SessionSettings::idle_timeout`](crate::SessionSettings::idle_timeout).
    Idle,
    /// It reached [`SessionSettings::lifetime`](crate::SessionSettings::lifetime).
    Lifetime,
    /// It was its owner's least recently used session when the owner opened another one at
    /// [`SessionSettings::max_per_owner`](crate::SessionSettings::max_per_owner).
    Evicted,
    /// The store is being shut down.
    Shutdown,
}

impl EndReason {
    /// A stable word for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::DeleteFailed => "delete_failed",
            Self::TransportClosed => "transport_closed",
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Evicted => "evicted",
            Self::Shutdown => "shutdown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: the words that audit trails have for the end of a session.
    #[test]
    fn reasons_have_stable_words() {
        let reasons = [
            (EndReason::Deleted, "deleted"),
            (EndReason::DeleteFailed, "delete_failed"),
            (EndReason::TransportClosed, "transport_closed"),
            (EndReason::Idle, "idle"),
            (EndReason::Lifetime, "lifetime"),
            (EndReason::Evicted, "evicted"),
            (EndReason::Shutdown, "shutdown"),
        ];
        for (reason, word) in reasons {
            assert_eq!(reason.as_str(), word);
        }
    }
}
