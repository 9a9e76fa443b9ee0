use portcullis_authorization_server::{ErrorResponse, Grant, Rotation, StoreError};
use portcullis_metadata::Secret;

use crate::{
    authorize::codes::CODE_LIFETIME,
    config::Config,
    handle::Handle,
    providers::profile::RotationRule,
    tables::{EVICTING_CAPACITY, LASTING_CAPACITY, RowAction, Table},
};

/// The sessions with refresh tokens, and the withdrawn sessions.
pub(crate) struct Sessions {
    /// The refresh tokens, by the first half of their handle.
    families: Table<TokenFamily>,
    /// The identifiers of the withdrawn sessions.
    withdrawn: Table<()>,
    rotation: RotationRule,
    /// The prefix of every refresh token.
    prefix: &'static str,
}

/// A refresh token and those that it replaced. Only the current one is valid. A session has several
/// families if the imitated provider keeps old refresh tokens valid.
struct TokenFamily {
    current: Handle,
    grant: Grant,
}

impl Sessions {
    pub(crate) fn new(config: &Config) -> Self {
        let withdrawn_lifetime = config.settings.access_token_lifetime.max(CODE_LIFETIME);
        Self {
            families: config.table(EVICTING_CAPACITY, config.settings.refresh_token_lifetime),
            withdrawn: config.table(LASTING_CAPACITY, withdrawn_lifetime),
            rotation: config.profile.rotation,
            prefix: config.profile.refresh_token_prefix,
        }
    }

    /// Issues a refresh token that replaces no other one.
    pub(crate) fn issue_refresh_token(&self, grant: &Grant) -> Result<Secret, StoreError> {
        let handle = Handle::generate()?;
        self.families.insert(
            handle.id(),
            TokenFamily {
                current: handle.clone(),
                grant: grant.clone(),
            },
        );
        // The code may have been used a second time, or the session revoked, in the meantime.
        if self.is_withdrawn(&grant.id) {
            self.families
                .remove_if(|family| family.grant.id == grant.id);
            return Err(StoreError::GrantEnded);
        }
        Ok(self.token(&handle))
    }

    /// Uses a refresh token and returns its grant and the refresh token for the response. It
    /// replaces the used one (RFC 9700 section 4.14.2), unless the imitated provider keeps that
    /// valid.
    ///
    /// `check` validates the request against the grant. If it fails, the token stays valid. If the
    /// token was replaced before, it has been stolen, and its session is withdrawn.
    pub(crate) fn rotate(
        &self,
        presented: &str,
        check: impl Fn(&Grant) -> Result<(), ErrorResponse>,
    ) -> Result<Rotation, StoreError> {
        let Some(presented) = self.parse(presented) else {
            return Ok(Rotation::Unknown);
        };
        let next = presented.with_new_secret()?;
        let token = self.token(&next);
        let rotation = self.families.update(presented.id(), |family| {
            if !presented.matches(&family.current) {
                return (
                    Rotation::Replayed(family.grant.id.clone()),
                    RowAction::Remove,
                );
            }
            if let Err(error) = check(&family.grant) {
                return (Rotation::Rejected(error), RowAction::Keep);
            }
            let refresh_token = match self.rotation {
                RotationRule::Replace => {
                    family.current = next;
                    Some(token)
                }
                RotationRule::KeepOld | RotationRule::Keep => None,
            };
            let rotated = Rotation::Rotated {
                grant: family.grant.clone(),
                refresh_token,
            };
            (rotated, RowAction::Renew)
        });
        match rotation {
            Some(Rotation::Rotated { grant, .. })
                if matches!(self.rotation, RotationRule::KeepOld) =>
            {
                let refresh_token = Some(self.issue_refresh_token(&grant)?);
                Ok(Rotation::Rotated {
                    grant,
                    refresh_token,
                })
            }
            Some(Rotation::Replayed(session_id)) => {
                self.withdraw(&session_id);
                tracing::warn!("a replaced refresh token was used again: its session is withdrawn");
                Ok(Rotation::Replayed(session_id))
            }
            Some(rotation) => Ok(rotation),
            None => Ok(Rotation::Unknown),
        }
    }

    /// Returns the grant of a valid refresh token.
    pub(crate) fn find(&self, presented: &str) -> Option<Grant> {
        let presented = self.parse(presented)?;
        self.families.read(presented.id(), |family| {
            presented
                .matches(&family.current)
                .then(|| family.grant.clone())
        })?
    }

    fn token(&self, handle: &Handle) -> Secret {
        Secret::new(format!("{}{}", self.prefix, handle.as_str()))
    }

    fn parse(&self, presented: &str) -> Option<Handle> {
        Handle::parse(presented.strip_prefix(self.prefix)?)
    }

    /// Ends a session: removes its refresh token and makes its access tokens inactive.
    pub(crate) fn withdraw(&self, session_id: &str) {
        // The session is listed before its refresh tokens are removed: `issue_refresh_token` checks
        // the list after inserting.
        if self.withdrawn.insert_new(session_id, ()).is_err() {
            tracing::warn!(
                "too many sessions are withdrawn: the access tokens of this session stay active until they expire"
            );
        }
        self.families
            .remove_if(|family| *family.grant.id == *session_id);
    }

    /// Ends the sessions of a client that have refresh tokens.
    pub(crate) fn withdraw_client(&self, client_id: &str) {
        self.withdraw_if(|grant| *grant.client_id == *client_id);
    }

    /// Ends the sessions of a user that have refresh tokens, with this client or with all clients.
    pub(crate) fn withdraw_user(&self, subject: &str, client_id: Option<&str>) {
        self.withdraw_if(|grant| {
            *grant.subject == *subject && client_id.is_none_or(|id| *grant.client_id == *id)
        });
    }

    fn withdraw_if(&self, is_ended: impl Fn(&Grant) -> bool) {
        let ended = |family: &TokenFamily| is_ended(&family.grant).then(|| family.grant.id.clone());
        for session_id in self.families.collect(ended) {
            self.withdraw(&session_id);
        }
    }

    pub(crate) fn is_withdrawn(&self, session_id: &str) -> bool {
        self.withdrawn.contains(session_id)
    }
}
