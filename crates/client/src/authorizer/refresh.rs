//! Refreshes tokens.

use portcullis_metadata::Scopes;

use super::Authorizer;
use crate::{
    ClientError, ResourceToken, StartUrl,
    provider::{RequestProfile, refresh_scopes},
    server::Server,
};

impl Authorizer {
    /// Obtains the token that replaces this one (RFC 6749 section 6), with the same scopes unless
    /// others are given. The request has the token's resource, unless the token was requested
    /// without it or the provider is known to reject it. Fails with [`ClientError::NoRegistration`]
    /// when there is no refresh token, or its client is no longer known; otherwise when the server
    /// cannot be reached, rejects the request, or returns a token for another API.
    pub(crate) async fn refresh(
        &self,
        start: &StartUrl,
        token: &ResourceToken,
        scopes: Option<&Scopes>,
    ) -> Result<ResourceToken, ClientError> {
        let issuer = token.issuer();
        let no_client = || ClientError::NoRegistration {
            issuer: issuer.clone(),
        };
        let (Some(refresh_token), Some(client_id)) = (token.refresh_token(), token.client_id())
        else {
            return Err(no_client());
        };
        let client = self.client_by_id(start, issuer, client_id).await?;
        let metadata = self.fetch_server_metadata(start, issuer).await?;
        let server = Server::from_metadata(&metadata, self.policy(start))?;
        let mut settings = self.settings.provider.clone();
        settings.omit_resource = token.is_unbound();
        let profile = RequestProfile::new(&settings, &metadata, token.resource());
        let same = || refresh_scopes(token.asked(), token.scopes());
        let scope = scopes.cloned().unwrap_or_else(same).to_string();
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.secret()),
        ];
        if !profile.omits_resource {
            fields.push(("resource", token.resource().as_str()));
        }
        if (scopes.is_some() || profile.omits_resource) && !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let endpoint = self.token_endpoint(&server);
        let response = endpoint
            .token(Some(&client), &fields, token.binding().as_deref())
            .await?;
        profile.check_response(&response, start, issuer)?;
        token.refreshed(response, scopes, self.clock.now())
    }
}
