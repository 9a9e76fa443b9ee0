//! [`GrantContext`]: what every grant needs, and the parts of a grant that are the same for all.

use std::sync::Arc;

use portcullis_discovery::ChainPolicy;
use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer, ResourceUri, Scopes, authorization::TokenResponse,
};
use url::Url;

use super::{Authorizer, broader_resource::Publisher};
use crate::{
    ClientError, ResourceToken, StartUrl,
    provider::RequestProfile,
    registration::dynamic::Registration,
    token::{dpop::DpopBinding, resource_token::TokenRequestContext},
};

/// The result of discovery, and the parameters of the grant that follow from it.
pub(super) struct GrantContext {
    /// The resource to request a token for.
    pub(super) resource: ResourceUri,
    /// Who publishes the resource, if it is a path prefix of the start URL.
    pub(super) broader_resource_of: Option<Publisher>,
    /// The authorization server's metadata.
    pub(super) metadata: AuthorizationServerMetadata,
    /// Which URLs may be fetched.
    pub(super) policy: ChainPolicy,
    /// The scopes to request.
    pub(super) scopes: Scopes,
    /// The scopes of a registration.
    pub(super) registered: Scopes,
    /// Whether a client that is signed in, and may have a session, needs more scopes.
    pub(super) is_step_up: bool,
    /// The key to bind the token to, if the resource requires or accepts DPoP.
    pub(super) binding: Option<Arc<DpopBinding>>,
    /// The provider's differences from MCP's profile.
    pub(super) profile: RequestProfile,
}

impl GrantContext {
    /// The `resource` parameter of requests. `None` if the provider rejects it.
    pub(super) fn requested_resource(&self) -> Option<&ResourceUri> {
        (!self.profile.omits_resource).then_some(&self.resource)
    }
}

impl Authorizer {
    /// The registration of a client for a grant with a user.
    pub(super) fn registration<'a>(
        &'a self,
        found: &'a GrantContext,
        start: &'a StartUrl,
        redirect_uri: &'a Url,
        grant_type: Option<&'a str>,
    ) -> Registration<'a> {
        Registration {
            client_name: &self.settings.client_name,
            redirect_uri,
            needed: &found.scopes,
            scopes: &found.registered,
            start,
            is_step_up: found.is_step_up,
            only_for: found.profile.is_unbound().then_some(start.url()),
            method: self.settings.token_auth_method,
            grant_type,
        }
    }

    /// Checks a token response and returns its token. Fails with [`ClientError::OtherApi`] when the
    /// token is for another API, [`ClientError::UnsupportedTokenType`] when it is not of the
    /// requested type.
    pub(super) fn resource_token(
        &self,
        response: TokenResponse,
        found: &GrantContext,
        start: &StartUrl,
        issuer: &Issuer,
        client_id: Option<&str>,
    ) -> Result<ResourceToken, ClientError> {
        found.profile.check_response(&response, start, issuer)?;
        let context = TokenRequestContext {
            start,
            issuer,
            resource: &found.resource,
            is_unbound: found.profile.omits_resource,
            client_id,
            asked: &found.scopes,
            binding: found.binding.clone(),
        };
        ResourceToken::new(response, context, self.clock.now())
    }
}
