//! What the broker decides about the requests of its clients.

use portcullis_authorization_server::{
    ErrorResponse, Params, Policy, RefreshRequest,
    client::{Client, RedirectPolicy as _, RedirectUri},
    resource::{check_selected_resource, select_resource, single_resource},
    scopes::{OFFLINE_ACCESS, grant_scopes, parse_scopes},
};
use portcullis_metadata::{Issuer, Scopes};

use crate::{Broker, settings::BrokerResource};

/// The scopes of OpenID Connect, which some clients request although no ID token is issued. They
/// change nothing.
const WITHOUT_EFFECT: [&str; 2] = [OFFLINE_ACCESS, "openid"];

impl Broker {
    /// Returns the resource with this identifier.
    pub(crate) fn resource(&self, uri: &str) -> Option<&BrokerResource> {
        let mut resources = self.settings.resources.iter();
        resources.find(|resource| resource.uri.as_str() == uri)
    }

    /// Returns the resource of a request (AU7).
    fn requested_resource(&self, params: &Params) -> Result<&BrokerResource, ErrorResponse> {
        let uri = select_resource(params, &self.resource_uris, self.settings.default_resource)?;
        self.resource(uri.as_str()).ok_or(ErrorResponse::new(
            portcullis_authorization_server::ErrorCode::InvalidTarget,
            "the resource is unknown",
        ))
    }

    /// Returns whether responses may be sent to a redirect URI (RG2).
    pub(crate) fn is_usable(&self, uri: &RedirectUri) -> bool {
        self.redirects.is_usable(uri)
    }
}

impl Policy for Broker {
    fn response_issuer(&self) -> Option<&Issuer> {
        Some(&self.settings.issuer)
    }

    fn is_usable_redirect(&self, uri: &RedirectUri) -> bool {
        self.is_usable(uri)
    }

    fn scopes(&self, client: &Client, params: &Params) -> Result<Scopes, ErrorResponse> {
        let resource = self.requested_resource(params)?;
        match requested(params)? {
            Some(requested) => grant_scopes(&resource.scopes, client, Some(&requested)),
            None => Ok(resource.default_scopes.clone()),
        }
    }

    fn refresh_scopes(&self, params: &Params) -> Result<Option<Scopes>, ErrorResponse> {
        requested(params)
    }

    fn audience(&self, params: &Params) -> Result<Option<Box<str>>, ErrorResponse> {
        let resource = self.requested_resource(params)?;
        Ok(Some(resource.uri.as_str().into()))
    }

    fn check_single_resource(&self, params: &Params) -> Result<(), ErrorResponse> {
        single_resource(params).map(drop)
    }

    fn check_audience(&self, params: &Params, granted: Option<&str>) -> Result<(), ErrorResponse> {
        check_selected_resource(params, &self.resource_uris, granted)
    }

    /// Every client of the code flow gets refresh tokens.
    fn refresh(&self, _: &Client, _: &Params, _: &Scopes) -> Result<RefreshRequest, ErrorResponse> {
        Ok(RefreshRequest::Yes)
    }
}

/// Returns the requested scopes that have an effect. `None` if there are none.
fn requested(params: &Params) -> Result<Option<Scopes>, ErrorResponse> {
    let scopes = parse_scopes(params)?;
    let scopes = scopes.map(|scopes| scopes.filter(|name| !WITHOUT_EFFECT.contains(&name)));
    Ok(scopes.filter(|scopes| !scopes.is_empty()))
}
