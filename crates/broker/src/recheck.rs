//! The check of a user at the provider when a client refreshes (US1 to US4).

use std::time::Duration;

use portcullis_authorization_server::{ErrorCode, ErrorResponse, Store as _};
use portcullis_identity_provider::{Identity, IdentityProvider, ProviderError};
use portcullis_metadata::UnixTime;
use tokio::time::sleep;

use crate::{
    Broker, access::Access, observer::EndReason, records::SignInRecord, settings::BrokerProvider,
    store::sealed_records::Current,
};

/// How long one process may check a user alone. All calls of a check end before.
const LEASE: Duration = Duration::from_secs(40);
/// How often a request looks whether another one has finished its check.
const POLL: Duration = Duration::from_millis(100);
/// How often a request looks, so that it waits at most 10 s.
const MAX_POLLS: usize = 100;

/// What a check found.
enum Finding {
    /// The user may go on.
    Identified(Box<Identity>),
    /// The sign-in has ended.
    Ended,
    /// The provider cannot tell now.
    Unknown,
    /// There is no token with which the provider could be asked.
    Impossible,
}

impl Broker {
    /// Checks the user of a grant at the provider, if the last check is too old. Ends the grant if
    /// the user lost access.
    pub(crate) async fn recheck(&self, grant_id: &str) -> Result<SignInRecord, ErrorResponse> {
        for _ in 0..MAX_POLLS {
            let sign_in = self.store.read_sign_in(grant_id).await;
            let sign_in = sign_in.map_err(|error| self.unavailable(error))?;
            let Some(sign_in) = sign_in else {
                return Err(ended());
            };
            let now = self.clock.now();
            if !self.is_due(&sign_in.value, now) {
                return Ok(sign_in.value);
            }
            let is_leased = sign_in
                .value
                .lease
                .is_some_and(|lease| now.as_secs() < lease);
            if !is_leased && let Some(leased) = self.lease(grant_id, &sign_in).await? {
                return self.check(grant_id, leased).await;
            }
            sleep(POLL).await;
        }
        Err(try_later())
    }

    fn is_due(&self, sign_in: &SignInRecord, now: UnixTime) -> bool {
        now.saturating_duration_since(UnixTime::from_secs(sign_in.checked))
            >= self.settings.lifetimes.recheck
    }

    /// Takes the lease of a sign-in. Returns `None` if another process was faster (US3).
    async fn lease(
        &self,
        grant_id: &str,
        current: &Current<SignInRecord>,
    ) -> Result<Option<SignInRecord>, ErrorResponse> {
        let mut leased = current.value.clone();
        leased.lease = Some(self.clock.now().saturating_add(LEASE).as_secs());
        let replaced = self.store.replace_sign_in(grant_id, current, &leased).await;
        let replaced = replaced.map_err(|error| self.unavailable(error))?;
        Ok(replaced.then_some(leased))
    }

    /// Checks the user while this process has the lease.
    async fn check(
        &self,
        grant_id: &str,
        sign_in: SignInRecord,
    ) -> Result<SignInRecord, ErrorResponse> {
        let mut providers = self.providers.iter().zip(&self.settings.providers);
        let Some((provider, configured)) =
            providers.find(|(provider, _)| *provider.name() == *sign_in.provider)
        else {
            // The operator removed the provider.
            self.end_for_user(grant_id).await?;
            return Err(ended());
        };
        let finding = self.ask(grant_id, provider, &sign_in).await?;
        let now = self.clock.now();
        match finding {
            Finding::Identified(identity) => {
                self.apply_rules(grant_id, sign_in, configured, &identity)
                    .await
            }
            Finding::Ended => {
                self.end_for_user(grant_id).await?;
                Err(ended())
            }
            Finding::Unknown | Finding::Impossible => {
                let record = self.update(grant_id, |record| record.lease = None).await?;
                let unchecked = now.saturating_duration_since(UnixTime::from_secs(record.checked));
                if unchecked < self.settings.lifetimes.max_unchecked {
                    Ok(record)
                } else if matches!(finding, Finding::Unknown) {
                    Err(try_later())
                } else {
                    // Only another sign-in can show that the user still has access.
                    self.end_for_user(grant_id).await?;
                    Err(ended())
                }
            }
        }
    }

    /// Applies the rules to a user whom the provider has identified again. Ends the grant if it is
    /// another user, or one that does not meet the rules any more.
    async fn apply_rules(
        &self,
        grant_id: &str,
        sign_in: SignInRecord,
        provider: &BrokerProvider,
        identity: &Identity,
    ) -> Result<SignInRecord, ErrorResponse> {
        let grant = self.store.read_grant(grant_id).await;
        let grant = grant.map_err(|error| self.unavailable(error))?;
        let is_same_user = grant.is_some_and(|grant| grant.value.terms.subject == identity.subject);
        // The user API may not know the claims of the ID token to which the rules were applied.
        let access = if sign_in.has_id_token && !identity.has_id_token {
            None
        } else {
            Some(Access::of(&self.settings, provider, identity))
        };
        let now = self.clock.now().as_secs();
        match access {
            Some(Err(denial)) => {
                tracing::info!(grant.id = grant_id, error.code = denial.code(), "{denial}");
                self.end_for_user(grant_id).await?;
                Err(ended())
            }
            _ if !is_same_user => {
                self.end_for_user(grant_id).await?;
                Err(ended())
            }
            access => {
                let access = access.and_then(Result::ok);
                self.update(grant_id, |record| {
                    record.lease = None;
                    record.checked = now;
                    if let Some(access) = &access {
                        record.scopes = access.scopes.as_str().into();
                        record.claims = access.claims.clone();
                    }
                })
                .await
            }
        }
    }

    /// Asks the provider, with the refresh token if there is one. A new refresh token is stored
    /// before the response is looked at further.
    async fn ask(
        &self,
        grant_id: &str,
        provider: &IdentityProvider,
        sign_in: &SignInRecord,
    ) -> Result<Finding, ErrorResponse> {
        let tokens = sign_in.tokens();
        if tokens.refresh_token.is_none() {
            let checked = provider.check_with_access_token(&tokens).await;
            return Ok(match checked {
                Ok(Some(identity)) => Finding::Identified(Box::new(identity)),
                Ok(None) => Finding::Impossible,
                Err(error) => self.finding(provider, &error),
            });
        }
        let response = match provider.refresh(&tokens).await {
            Ok(response) => response,
            Err(error) => return Ok(self.finding(provider, &error)),
        };
        self.update(grant_id, |record| record.set_tokens(response.tokens()))
            .await?;
        Ok(match provider.identify(&response, None).await {
            Ok(identity) => Finding::Identified(Box::new(identity)),
            Err(error) => self.finding(provider, &error),
        })
    }

    fn finding(&self, provider: &IdentityProvider, error: &ProviderError) -> Finding {
        self.provider_failed(provider.name(), error, None);
        if error.is_temporary() {
            Finding::Unknown
        } else {
            Finding::Ended
        }
    }

    /// Changes a sign-in. Only the holder of the lease does, but a rotation may extend its lifetime
    /// meanwhile.
    async fn update(
        &self,
        grant_id: &str,
        change: impl Fn(&mut SignInRecord),
    ) -> Result<SignInRecord, ErrorResponse> {
        for _ in 0..MAX_POLLS {
            let current = self.store.read_sign_in(grant_id).await;
            let current = current.map_err(|error| self.unavailable(error))?;
            let current = current.ok_or_else(ended)?;
            let mut new = current.value.clone();
            change(&mut new);
            let replaced = self.store.replace_sign_in(grant_id, &current, &new).await;
            if replaced.map_err(|error| self.unavailable(error))? {
                return Ok(new);
            }
        }
        Err(try_later())
    }

    /// Ends a grant whose user lost access.
    async fn end_for_user(&self, grant_id: &str) -> Result<(), ErrorResponse> {
        let store = self.store.ending_for(EndReason::UserEnded);
        Ok(store.end_grant(grant_id).await?)
    }
}

fn ended() -> ErrorResponse {
    ErrorResponse::new(
        ErrorCode::InvalidGrant,
        "the sign-in of the user has ended; the user must sign in again",
    )
}

fn try_later() -> ErrorResponse {
    ErrorResponse::new(
        ErrorCode::TemporarilyUnavailable,
        "the user cannot be checked at the identity provider now; try again later",
    )
}
