//! [`Sessions`]: the sessions with refresh tokens, and the withdrawn sessions.

use portcullis_authorization_server::{ErrorCode, ErrorResponse};
use portcullis_metadata::Secret;

use crate::{
    authorize::codes::CODE_LIFETIME,
    config::Config,
    handle::Handle,
    providers::profile::RotationRule,
    tables::{EVICTING_CAPACITY, LASTING_CAPACITY, RowAction, Table},
    token::session::Session,
};

/// The sessions with refresh tokens, and the withdrawn sessions.
pub(crate) struct Sessions {
    /// The refresh tokens, by the first half of their handle.
    families: Table<TokenFamily>,
    /// The identifiers of the withdrawn sessions.
    withdrawn: Table<()>,
    rotation: RotationRule,
}

/// A refresh token and those that it replaced. Only the current one is valid. A session has several
/// families if the imitated provider keeps old refresh tokens valid.
struct TokenFamily {
    current: Handle,
    session: Session,
}

impl Sessions {
    pub(crate) fn new(config: &Config) -> Self {
        let withdrawn_lifetime = config.settings.access_token_lifetime.max(CODE_LIFETIME);
        Self {
            families: config.table(EVICTING_CAPACITY, config.settings.refresh_token_lifetime),
            withdrawn: config.table(LASTING_CAPACITY, withdrawn_lifetime),
            rotation: config.profile.rotation,
        }
    }

    /// Issues a refresh token that replaces no other one.
    pub(super) fn issue_refresh_token(&self, session: &Session) -> Result<Secret, ErrorResponse> {
        let handle = Handle::generate()?;
        self.families.insert(
            handle.id(),
            TokenFamily {
                current: handle.clone(),
                session: session.clone(),
            },
        );
        // The code may have been used a second time, or the session revoked, in the meantime.
        if self.is_withdrawn(&session.id) {
            self.families
                .remove_if(|family| family.session.id == session.id);
            return Err(invalid("the session has ended"));
        }
        Ok(Secret::new(handle.as_str()))
    }

    /// Uses a refresh token and returns its session and the refresh token for the response. It
    /// replaces the used one (RFC 9700 section 4.14.2), unless the imitated provider keeps that
    /// valid.
    ///
    /// `check` validates the request against the session. If it fails, the token stays valid. If
    /// the token was replaced before, it has been stolen, and its session is withdrawn.
    pub(super) fn rotate(
        &self,
        presented: &str,
        check: impl FnOnce(&Session) -> Result<(), ErrorResponse>,
    ) -> Result<(Session, Option<Secret>), ErrorResponse> {
        enum Rotation {
            Rotated(Session),
            Rejected(ErrorResponse),
            Reused(Box<str>),
        }
        let unknown = invalid("the refresh token is unknown, expired or revoked");
        let presented = Handle::parse(presented).ok_or(unknown)?;
        let next = presented.with_new_secret()?;
        let token = Secret::new(next.as_str());
        let rotation = self.families.update(presented.id(), |family| {
            if !presented.matches(&family.current) {
                return (
                    Rotation::Reused(family.session.id.clone()),
                    RowAction::Remove,
                );
            }
            if let Err(error) = check(&family.session) {
                return (Rotation::Rejected(error), RowAction::Keep);
            }
            if matches!(self.rotation, RotationRule::Replace) {
                family.current = next;
            }
            (Rotation::Rotated(family.session.clone()), RowAction::Renew)
        });
        match rotation.ok_or(unknown)? {
            Rotation::Rotated(session) => {
                let token = match self.rotation {
                    RotationRule::Replace => Some(token),
                    RotationRule::KeepOld => Some(self.issue_refresh_token(&session)?),
                    RotationRule::Keep => None,
                };
                Ok((session, token))
            }
            Rotation::Rejected(error) => Err(error),
            Rotation::Reused(session_id) => {
                self.withdraw(&session_id);
                tracing::warn!("a replaced refresh token was used again: its session is withdrawn");
                Err(invalid(
                    "the refresh token was used before: its session is withdrawn",
                ))
            }
        }
    }

    /// Returns the session of a valid refresh token.
    pub(super) fn find(&self, presented: &str) -> Option<Session> {
        let presented = Handle::parse(presented)?;
        self.families.read(presented.id(), |family| {
            presented
                .matches(&family.current)
                .then(|| family.session.clone())
        })?
    }

    /// Ends a session: removes its refresh token and makes its access tokens inactive.
    pub(super) fn withdraw(&self, session_id: &str) {
        // The session is listed before its refresh tokens are removed: `issue_refresh_token` checks
        // the list after inserting.
        if self.withdrawn.insert_new(session_id, ()).is_err() {
            tracing::warn!(
                "too many sessions are withdrawn: the access tokens of this session stay active until they expire"
            );
        }
        self.families
            .remove_if(|family| *family.session.id == *session_id);
    }

    /// Ends the sessions of a client that have refresh tokens.
    pub(crate) fn withdraw_client(&self, client_id: &str) {
        let of_client = |family: &TokenFamily| {
            (*family.session.client_id == *client_id).then(|| family.session.id.clone())
        };
        for session_id in self.families.collect(of_client) {
            self.withdraw(&session_id);
        }
    }

    /// Returns whether a session is withdrawn.
    pub(super) fn is_withdrawn(&self, session_id: &str) -> bool {
        self.withdrawn.contains(session_id)
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}
