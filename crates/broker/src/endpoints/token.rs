//! The token endpoint (RFC 6749 section 3.2).

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params, Policy as _,
    authentication::{AuthenticatedClient, PresentedCredential},
    client::{ClientDirectory as _, GrantType},
    token::{GrantedTokens, RefreshCheck, TokenError, exchange_code, refresh},
};
use portcullis_metadata::{Scopes, authorization::TokenResponse};

use super::{BrokerRequest, respond};
use crate::{
    Broker,
    observer::{BrokerEvent, EndReason},
    records::{GrantTerms, SignInRecord},
};

impl Broker {
    pub(super) async fn token(&self, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.tokens(request.address) {
            return respond::too_many_requests(exceeded.retry_after_secs());
        }
        match self.try_token(request).await {
            Ok(response) => respond::json(StatusCode::OK, response.to_json()),
            Err(error) => {
                self.rejected("token", error.code.as_str(), error.description);
                respond::error(error)
            }
        }
    }

    async fn try_token(&self, request: &BrokerRequest) -> Result<TokenResponse, ErrorResponse> {
        let form = request.form().ok_or(ErrorResponse::new(
            ErrorCode::InvalidRequest,
            "the content type must be application/x-www-form-urlencoded",
        ))?;
        let client = self.authenticate(request, &form).await?;
        let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "grant_type is missing");
        let grant_type = GrantType::parse(form.get("grant_type")?.ok_or(missing)?);
        let is_refresh = grant_type == Some(GrantType::RefreshToken);
        let granted = match grant_type {
            Some(GrantType::AuthorizationCode) => {
                let store = self.store.ending_for(EndReason::CodeReplayed);
                exchange_code(self, &store, &client, &form, None).await
            }
            Some(GrantType::RefreshToken) => self.refresh_tokens(&client, &form).await,
            _ => {
                return Err(ErrorResponse::new(
                    ErrorCode::UnsupportedGrantType,
                    "the grant type must be authorization_code or refresh_token",
                ));
            }
        };
        let granted = granted.map_err(|error| error.response())?;
        self.issue(granted, is_refresh).await
    }

    /// Authenticates the client of a request (RFC 6749 section 2.3).
    pub(super) async fn authenticate(
        &self,
        request: &BrokerRequest,
        form: &Params,
    ) -> Result<AuthenticatedClient, ErrorResponse> {
        let presented = PresentedCredential::parse(&request.headers, form)?;
        let clients = self.clients.for_tokens();
        let client = clients.find(presented.id(), &request.headers).await?;
        // Some clients name the token endpoint, as RFC 7523 section 3 allowed before
        // draft-ietf-oauth-rfc7523bis.
        let audiences = [self.settings.issuer.as_str(), &self.token_endpoint];
        presented
            .verify_for(
                &client.credential,
                &self.store,
                &audiences,
                self.clock.now(),
            )
            .await?;
        Ok(AuthenticatedClient {
            id: presented.id().into(),
            client,
        })
    }

    /// Checks the request, then the user at the provider, and rotates the token at last: a token
    /// that gets an error stays usable. The user is not checked for a replayed token, which ends
    /// its grant also while the provider cannot be reached (RF1).
    async fn refresh_tokens(
        &self,
        client: &AuthenticatedClient,
        form: &Params,
    ) -> Result<GrantedTokens, TokenError> {
        let store = self.store.ending_for(EndReason::RefreshTokenReplayed);
        let check = RefreshCheck::new(self, client, form, None)?;
        let found = store.find_grant_to_refresh(check.token()).await;
        if let Some(grant) = found.map_err(|error| self.unavailable(error))?
            && check.check(&grant).is_ok()
        {
            let sign_in = self.recheck(&grant.id).await?;
            let requested = self.refresh_scopes(form)?;
            let scopes = allowed_scopes(&sign_in, requested.as_ref().unwrap_or(&grant.scopes))?;
            self.access_tokens
                .check_size(&grant.id, &GrantTerms::new(&grant), &sign_in, &scopes)
                .map_err(|error| error.refusal())?;
        }
        refresh(self, &store, client, form, None).await
    }

    /// Issues the access token of a response. Its scopes are those that the user may still have.
    async fn issue(
        &self,
        granted: GrantedTokens,
        is_refresh: bool,
    ) -> Result<TokenResponse, ErrorResponse> {
        let GrantedTokens {
            grant,
            scopes,
            refresh_token,
        } = granted;
        let found = self.store.find_grant(&grant.id).await;
        let (record, sign_in) =
            found
                .map_err(|error| self.unavailable(error))?
                .ok_or(ErrorResponse::new(
                    ErrorCode::InvalidGrant,
                    "the session has ended",
                ))?;
        let scopes = allowed_scopes(&sign_in, &scopes)?;
        let access = self
            .access_tokens
            .issue(&grant.id, &record, &sign_in, &scopes)?;
        if let Err(error) = self.clients.touch(&grant.client_id).await {
            self.store_failed(&error);
        }
        self.observe(&BrokerEvent::TokenIssued {
            subject: &grant.subject,
            client_id: &grant.client_id,
            grant_id: &grant.id,
            is_refresh,
        });
        Ok(TokenResponse {
            expires_in: Some(access.lifetime.as_secs()),
            scope: Some(scopes.as_str().to_owned()),
            refresh_token,
            ..TokenResponse::bearer(access.token)
        })
    }
}

/// Returns those of the scopes that the user may still have. At least one.
fn allowed_scopes(sign_in: &SignInRecord, scopes: &Scopes) -> Result<Scopes, ErrorResponse> {
    let allowed = Scopes::parse(&sign_in.scopes).unwrap_or_default();
    let scopes = scopes.intersection(&allowed);
    if scopes.is_empty() {
        return Err(ErrorResponse::new(
            ErrorCode::InvalidScope,
            "the user no longer has any of the requested scopes",
        ));
    }
    Ok(scopes)
}
