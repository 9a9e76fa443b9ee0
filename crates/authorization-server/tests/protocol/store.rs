//! [`MemoryStore`]: a store that keeps the contract of `Store` to the letter.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_authorization_server::{
    AuthorizationCode, ErrorResponse, Grant, IssuedToken, Redemption, Rotation, Store, StoreError,
    client::ClientRegistration, random_secret,
};
use portcullis_metadata::Secret;

/// The time for which a replaced refresh token gets the same successor.
pub(crate) const REUSE: Duration = Duration::from_secs(600);

const MAX_CLIENTS: usize = 2;

/// A store whose time the test moves.
#[derive(Default)]
pub(crate) struct MemoryStore(Mutex<State>);

#[derive(Default)]
struct State {
    clients: HashSet<String>,
    now: Duration,
    codes: HashMap<String, (AuthorizationCode, bool)>,
    families: HashMap<Box<str>, Family>,
    ended: HashSet<String>,
    revoked: HashSet<String>,
    assertions: HashSet<(String, String)>,
}

/// The refresh tokens of a grant, oldest first. Each has the time of its replacement, except for
/// the last one.
struct Family {
    grant: Grant,
    tokens: Vec<(String, Option<Duration>)>,
}

impl MemoryStore {
    /// Moves the time forward.
    pub(crate) fn advance(&self, time: Duration) {
        self.0.lock().now += time;
    }

    /// Returns the number of refresh tokens that were ever issued for a grant.
    pub(crate) fn issued(&self, grant_id: &str) -> usize {
        let state = self.0.lock();
        state
            .families
            .get(grant_id)
            .map_or(0, |family| family.tokens.len())
    }
}

fn token() -> Result<String, StoreError> {
    Ok(random_secret(32)?.secret().to_owned())
}

impl Store for MemoryStore {
    async fn register_client(&self, registration: &ClientRegistration) -> Result<(), StoreError> {
        let clients = &mut self.0.lock().clients;
        let id = &registration.information.client_id;
        if clients.len() >= MAX_CLIENTS && !clients.contains(id) {
            return Err(StoreError::Full);
        }
        clients.insert(id.clone());
        Ok(())
    }

    async fn issue_code(&self, code: AuthorizationCode) -> Result<Secret, StoreError> {
        let text = token()?;
        self.0.lock().codes.insert(text.clone(), (code, false));
        Ok(Secret::new(text))
    }

    async fn redeem_code(
        &self,
        code: &str,
        key: Option<&str>,
        check: impl Fn(&AuthorizationCode) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Redemption, StoreError> {
        let state = &mut *self.0.lock();
        let Some((code, is_used)) = state.codes.get_mut(code) else {
            return Ok(Redemption::Unknown);
        };
        if let Err(error) = check(code) {
            return Ok(Redemption::Rejected(error));
        }
        if std::mem::replace(is_used, true) {
            return Ok(Redemption::Used(code.grant.clone()));
        }
        let grant = Grant {
            key: key.map(Box::from),
            ..code.grant.clone()
        };
        let mut refresh_token = None;
        if code.is_refreshable {
            let first = token()?;
            refresh_token = Some(Secret::new(first.clone()));
            let family = Family {
                grant: grant.clone(),
                tokens: vec![(first, None)],
            };
            state.families.insert(grant.id.clone(), family);
        }
        Ok(Redemption::Redeemed {
            grant,
            refresh_token,
        })
    }

    async fn rotate_refresh_token(
        &self,
        presented: &str,
        check: impl Fn(&Grant) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Rotation, StoreError> {
        let state = &mut *self.0.lock();
        let found = state.families.values_mut().find_map(|family| {
            let index = family
                .tokens
                .iter()
                .position(|(token, _)| token == presented)?;
            Some((family, index))
        });
        let Some((family, index)) = found else {
            return Ok(Rotation::Unknown);
        };
        let replaced = family.tokens[index].1;
        if replaced.is_some_and(|replaced| state.now - replaced > REUSE) {
            return Ok(Rotation::Replayed(family.grant.id.clone()));
        }
        if let Err(error) = check(&family.grant) {
            return Ok(Rotation::Rejected(error));
        }
        if replaced.is_none() {
            family.tokens[index].1 = Some(state.now);
            family.tokens.push((token()?, None));
        }
        Ok(Rotation::Rotated {
            grant: family.grant.clone(),
            refresh_token: Some(Secret::new(family.tokens[index + 1].0.clone())),
        })
    }

    async fn find_refresh_token(&self, token: &str) -> Result<Option<Grant>, StoreError> {
        let state = self.0.lock();
        let is_current =
            |family: &&Family| family.tokens.last().is_some_and(|(last, _)| last == token);
        Ok(state
            .families
            .values()
            .find(is_current)
            .map(|family| family.grant.clone()))
    }

    async fn end_grant(&self, id: &str) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        state.families.remove(id);
        state.ended.insert(id.to_owned());
        Ok(())
    }

    async fn revoke_access_token(&self, id: &str) -> Result<(), StoreError> {
        self.0.lock().revoked.insert(id.to_owned());
        Ok(())
    }

    async fn is_active(&self, token: &IssuedToken) -> Result<bool, StoreError> {
        let state = self.0.lock();
        let is_revoked = token
            .id
            .as_deref()
            .is_some_and(|id| state.revoked.contains(id));
        let is_ended = token
            .grant_id
            .as_deref()
            .is_some_and(|id| state.ended.contains(id));
        Ok(!is_revoked && !is_ended)
    }

    async fn use_assertion(&self, issuer: &str, jti: &str) -> Result<bool, StoreError> {
        let key = (issuer.to_owned(), jti.to_owned());
        Ok(self.0.lock().assertions.insert(key))
    }
}
