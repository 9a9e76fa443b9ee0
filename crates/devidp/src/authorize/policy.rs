//! The [`Policy`] of the server: that of the imitated provider.

use portcullis_authorization_server::{
    ErrorResponse, Params, Policy, RefreshRequest,
    client::{Client, GrantType},
    scopes::OFFLINE_ACCESS,
};
use portcullis_metadata::{Issuer, Scopes};

use crate::{
    authorize::{audience, scopes},
    config::Config,
    providers::profile::RefreshTokenRule,
};

impl Policy for Config {
    fn response_issuer(&self) -> Option<&Issuer> {
        self.profile.sends_issuer.then_some(&self.issuer)
    }

    fn scopes(&self, client: &Client, params: &Params) -> Result<Scopes, ErrorResponse> {
        scopes::grant_scopes(self, client, params)
    }

    fn refresh_scopes(&self, params: &Params) -> Result<Option<Scopes>, ErrorResponse> {
        scopes::refresh_scopes(self, params)
    }

    fn audience(&self, params: &Params) -> Result<Option<Box<str>>, ErrorResponse> {
        audience::parse_audience(self, params)
    }

    fn check_single_resource(&self, params: &Params) -> Result<(), ErrorResponse> {
        audience::check_single_resource(self, params)
    }

    fn check_audience(&self, params: &Params, granted: Option<&str>) -> Result<(), ErrorResponse> {
        audience::check_audience(self, params, granted)
    }

    fn refresh(
        &self,
        client: &Client,
        params: &Params,
        scopes: &Scopes,
    ) -> Result<RefreshRequest, ErrorResponse> {
        let rule = self.profile.refresh_tokens;
        let is_requested = match rule {
            RefreshTokenRule::OfflineAccess => scopes.contains(OFFLINE_ACCESS),
            RefreshTokenRule::Always => true,
            RefreshTokenRule::Never => false,
            RefreshTokenRule::AccessType => params.get("access_type")? == Some("offline"),
        };
        if !is_requested || !client.may_use(GrantType::RefreshToken) {
            return Ok(RefreshRequest::No);
        }
        let asks_again = params
            .get("prompt")?
            .is_some_and(|prompt| prompt.split(' ').any(|value| value == "consent"));
        let depends_on_approval = matches!(rule, RefreshTokenRule::AccessType) && !asks_again;
        Ok(if depends_on_approval {
            RefreshRequest::FirstApproval
        } else {
            RefreshRequest::Yes
        })
    }
}
