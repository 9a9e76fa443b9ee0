use super::EndedStatus;
use crate::{SecretSource, Span};
use portcullis_session::SessionSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[session]`: the sessions of all resources.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Session {
    /// The time after which an unused session ends.
    pub idle_timeout: Span,
    /// The time after which any session ends.
    pub lifetime: Span,
    /// The maximum number of sessions.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_total: usize,
    /// The maximum number of sessions of one owner.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_per_owner: usize,
    /// The maximum number of sessions of one subject with all its clients. Default: 10 times
    /// `max_per_owner` or a quarter of `max_total`, whichever is less, and at least
    /// `max_per_owner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 1000)]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_per_subject: Option<usize>,
    /// The status of a request for an ended session by its owner: `"auto"`, 400 or 404.
    pub ended_status: EndedStatus,
    /// The keys that seal session identifiers, the key of new identifiers first. Default: those of
    /// the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = [SecretSource::File("/run/secrets/session-keys".into())])]
    pub keys: Option<Vec<SecretSource>>,
    /// What happens if the state directory cannot be used.
    pub without_state: WithoutState,
}

/// What happens if the state directory cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithoutState {
    /// The server does not start.
    #[default]
    Refuse,
    /// The server starts and records no ends. Sessions of earlier processes have ended, and a
    /// DELETE or the end by an administrator gets 503.
    RejectEnds,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            idle_timeout: Span::new(SessionSettings::DEFAULT_IDLE_TIMEOUT),
            lifetime: Span::new(SessionSettings::DEFAULT_LIFETIME),
            max_total: SessionSettings::DEFAULT_MAX_TOTAL,
            max_per_owner: SessionSettings::DEFAULT_MAX_PER_OWNER,
            max_per_subject: None,
            ended_status: EndedStatus::default(),
            keys: None,
            without_state: WithoutState::default(),
        }
    }
}
