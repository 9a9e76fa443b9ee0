//! [`EndReason`]: why a session ended.

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The owner deleted the session.
    Deleted,
    /// The owner deleted the session, but the backend did not confirm the deletion of its own
    /// session.
    DeleteFailed,
    /// The backend's session no longer exists.
    TransportClosed,
    /// The session was unused for
    /// [`SessionSettings::idle_timeout`](crate::SessionSettings::idle_timeout).
    Idle,
    /// The session reached [`SessionSettings::lifetime`](crate::SessionSettings::lifetime).
    Lifetime,
    /// The owner opened another session at
    /// [`SessionSettings::max_per_owner`](crate::SessionSettings::max_per_owner), and this one was
    /// the owner's least recently used.
    Evicted,
    /// The store is shut down.
    Shutdown,
    /// The session's resource is no longer served.
    ResourceRemoved,
    /// The session's resource has another backend.
    BackendRemoved,
    /// The session's resource no longer accepts tokens of the owner's issuer.
    IssuerRemoved,
    /// Another process has ended the session, and tells the backend.
    EndedElsewhere,
    /// Another process has ended all sessions of a scope ([`EndScope`](crate::EndScope)), or older
    /// ones because there were too many. It tells the backends only of those in its own table.
    ScopeEndedElsewhere,
    /// The store could not remember more ended sessions, and therefore ended the older ones: those
    /// of the owner, or of all owners. See [`SessionStore`](crate::SessionStore).
    Overflow,
    /// An administrator has ended the session.
    Administrator,
    /// The broker ended the sign-in of the owner.
    SignedOut,
}

impl EndReason {
    /// Returns a stable word for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::DeleteFailed => "delete_failed",
            Self::TransportClosed => "transport_closed",
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Evicted => "evicted",
            Self::Shutdown => "shutdown",
            Self::ResourceRemoved => "resource_removed",
            Self::BackendRemoved => "backend_removed",
            Self::IssuerRemoved => "issuer_removed",
            Self::EndedElsewhere => "ended_elsewhere",
            Self::ScopeEndedElsewhere => "scope_ended_elsewhere",
            Self::Overflow => "overflow",
            Self::Administrator => "administrator",
            Self::SignedOut => "signed_out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: the reasons in audit records are stable.
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
            (EndReason::ResourceRemoved, "resource_removed"),
            (EndReason::BackendRemoved, "backend_removed"),
            (EndReason::IssuerRemoved, "issuer_removed"),
            (EndReason::EndedElsewhere, "ended_elsewhere"),
            (EndReason::ScopeEndedElsewhere, "scope_ended_elsewhere"),
            (EndReason::Overflow, "overflow"),
            (EndReason::Administrator, "administrator"),
            (EndReason::SignedOut, "signed_out"),
        ];
        for (reason, word) in reasons {
            assert_eq!(reason.as_str(), word);
        }
    }
}
