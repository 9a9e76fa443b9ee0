//! [`BrokerObserver`]: what happened, for the log, the audit trail and metrics.

use portcullis_metadata::UnixTime;
use portcullis_reason_codes::ReasonCodes;
use serde::{Deserialize, Serialize};

/// Receives what happened. It is called on the task of a request and must not block.
pub trait BrokerObserver: Send + Sync + 'static {
    /// Called after the event.
    fn observe(&self, event: &BrokerEvent<'_>);
}

/// What happened. No event contains a token, a code, a secret, or a name of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerEvent<'a> {
    /// A client registered.
    ClientRegistered {
        /// The identifier of the client.
        client_id: &'a str,
    },
    /// A user approved or denied the request of a client.
    Decided {
        /// The identifier of the client.
        client_id: &'a str,
        /// Whether the user approved the request.
        is_approved: bool,
    },
    /// A user signed in at a provider, and a code was issued.
    SignedIn {
        /// The name of the provider.
        provider: &'a str,
        /// The user.
        subject: &'a str,
        /// The identifier of the client.
        client_id: &'a str,
        /// The identifier of the grant (`sid`).
        grant_id: &'a str,
    },
    /// A sign-in failed, or the check of a user at a provider did.
    ProviderFailed {
        /// The name of the provider.
        provider: &'a str,
        /// The reason code.
        code: &'static str,
    },
    /// An access token was issued.
    TokenIssued {
        /// The user.
        subject: &'a str,
        /// The identifier of the client.
        client_id: &'a str,
        /// The identifier of the grant (`sid`).
        grant_id: &'a str,
        /// Whether it was issued for a refresh token.
        is_refresh: bool,
    },
    /// A request was rejected.
    Rejected {
        /// The endpoint.
        endpoint: &'static str,
        /// The OAuth error code.
        error: &'static str,
        /// The description for developers.
        description: &'static str,
    },
    /// A grant ended.
    GrantEnded {
        /// The identifier of the grant (`sid`).
        grant_id: &'a str,
        /// The user and the client. `None` if no token was issued yet.
        owner: Option<GrantOwner<'a>>,
        /// Why it ended.
        reason: EndReason,
    },
    /// A grant was to end, but its end cannot be stored. In this process, its tokens are rejected
    /// from now on. They are valid again after a restart, and at other replicas all the time.
    EndNotStored {
        /// The identifier of the grant (`sid`).
        grant_id: &'a str,
        /// The user and the client. `None` if no token was issued yet, or if that cannot be read.
        owner: Option<GrantOwner<'a>>,
        /// Why it was to end.
        reason: EndReason,
    },
    /// A grant ended at another replica, which has reported it. This one has learned of it now.
    GrantEndedElsewhere {
        /// The identifier of the grant (`sid`).
        grant_id: &'a str,
        /// The user and the client. `None` if no token was issued yet, or if that is unknown.
        owner: Option<GrantOwner<'a>>,
        /// Why it ended. `None` if that is unknown: another version or a key that this replica does
        /// not have wrote it.
        reason: Option<EndReason>,
        /// When it ended, by the clock of the other replica.
        at: UnixTime,
    },
}

/// To which user and client a grant belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantOwner<'a> {
    /// The user.
    pub subject: &'a str,
    /// The identifier of the client.
    pub client_id: &'a str,
}

/// Why a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ReasonCodes, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The client revoked its token.
    #[code = "grant.revoked"]
    Revoked,
    /// An authorization code was used a second time.
    #[code = "grant.code_replayed"]
    CodeReplayed,
    /// A refresh token was used again after the time for repetitions.
    #[code = "grant.refresh_token_replayed"]
    RefreshTokenReplayed,
    /// The provider ended the sign-in of the user, or the user no longer meets the rules.
    #[code = "grant.user_ended"]
    UserEnded,
    /// The provider sent a logout token.
    #[code = "grant.logged_out"]
    LoggedOut,
    /// The user has too many grants, and this one was not used for the longest time.
    #[code = "grant.evicted"]
    Evicted,
    /// An administrator ended it.
    #[code = "grant.administrator"]
    Administrator,
}

impl EndReason {
    /// Returns whether the user lost access, so that the sessions of the user must end as well.
    /// They go on if only one installation of a client signed out.
    pub const fn is_about_user(self) -> bool {
        matches!(
            self,
            Self::UserEnded | Self::LoggedOut | Self::Administrator
        )
    }
}
