//! The store of the authorization server: the tables in memory.

use portcullis_authorization_server::{
    AuthorizationCode, ErrorResponse, Grant, IssuedToken, Redemption, Rotation, Store, StoreError,
    client::ClientRegistration,
};
use portcullis_metadata::Secret;

use crate::{app::App, authorize::codes::PresentedCode, tables::TableFull};

impl Store for App {
    async fn register_client(&self, registration: &ClientRegistration) -> Result<(), StoreError> {
        self.clients
            .register(registration)
            .map_err(|TableFull| StoreError::Full)
    }

    async fn issue_code(&self, code: AuthorizationCode) -> Result<Secret, StoreError> {
        Ok(self.codes.issue(code)?)
    }

    /// As [`Store::redeem_code`], but a code is used up even if the check fails.
    async fn redeem_code(
        &self,
        code: &str,
        key: Option<&str>,
        check: impl Fn(&AuthorizationCode) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Redemption, StoreError> {
        let code = match self.codes.redeem(code) {
            PresentedCode::Redeemed(code) => code,
            PresentedCode::Used(grant) => return Ok(Redemption::Used(grant)),
            PresentedCode::Unknown => return Ok(Redemption::Unknown),
        };
        if let Err(error) = check(&code) {
            return Ok(Redemption::Rejected(error));
        }
        let grant = Grant {
            key: key.map(Box::from),
            ..code.grant
        };
        let refresh_token = code
            .is_refreshable
            .then(|| self.sessions.issue_refresh_token(&grant))
            .transpose()?;
        Ok(Redemption::Redeemed {
            grant,
            refresh_token,
        })
    }

    async fn rotate_refresh_token(
        &self,
        token: &str,
        check: impl Fn(&Grant) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Rotation, StoreError> {
        self.sessions.rotate(token, check)
    }

    async fn end_grant(&self, id: &str) -> Result<(), StoreError> {
        self.sessions.withdraw(id);
        Ok(())
    }

    async fn find_refresh_token(&self, token: &str) -> Result<Option<Grant>, StoreError> {
        Ok(self.sessions.find(token))
    }

    async fn revoke_access_token(&self, id: &str) -> Result<(), StoreError> {
        self.access_tokens
            .revoke(id)
            .map_err(|TableFull| StoreError::Full)
    }

    async fn is_active(&self, token: &IssuedToken) -> Result<bool, StoreError> {
        let is_ended = |session: &str| self.sessions.is_withdrawn(session);
        let is_removed = |subject: &str| self.removed_users.contains(subject);
        Ok(!self.access_tokens.is_revoked(token.id.as_deref())
            && !token.claims.sub.as_deref().is_some_and(is_removed)
            && !token.grant_id.as_deref().is_some_and(is_ended))
    }

    async fn use_assertion(&self, issuer: &str, jti: &str) -> Result<bool, StoreError> {
        self.assertions
            .record_use(issuer, jti)
            .map_err(|TableFull| StoreError::Full)
    }
}
