//! The authorization code grant.

use portcullis_metadata::PkceVerifier;

use super::{Authorizer, Found, clients::Client};
use crate::{
    AuthorizationRequest, ClientError, Interaction, ResourceToken, StartUrl, authorization::code_flow::CodeFlow,
    authorization::request::Asked, registration::dynamic::Registration, token::resource_token::Purpose,
};

impl Authorizer {
    /// The authorization code grant with PKCE (OAuth 2.1 section 4.1). A client that the server has forgotten is
    /// registered again, once.
    pub(super) async fn code_grant(
        &self,
        interaction: &dyn Interaction,
        start: &StartUrl,
        found: &Found,
    ) -> Result<ResourceToken, ClientError> {
        let flow = CodeFlow::from_metadata(&found.metadata, found.policy.clone(), found.profile.assumes_pkce)?;
        let registration = Registration {
            client_name: &self.settings.client_name,
            redirect_uri: interaction.redirect_uri(),
            needed: &found.scopes,
            scopes: &found.registered,
            only_for: found.profile.is_unbound().then_some(start.url()),
            method: self.settings.token_auth_method,
            grant_type: None,
        };
        let mut client = self.client(interaction, &flow.server, &registration).await?;
        // The browser would show the server's error, and no answer would arrive here.
        if self.has_forgotten(&flow, &client, registration.redirect_uri, found).await?
            && self.forget(&client, &registration).await?
        {
            tracing::info!("the authorization server no longer knows the client; registering again");
            client = self.client(interaction, &flow.server, &registration).await?;
        }
        let outcome = self.ask_for_code(interaction, start, found, &flow, &client).await;
        let Err(ClientError::TokenRequest(error)) = &outcome else { return outcome };
        if error.error != "invalid_client" || !self.forget(&client, &registration).await? {
            return outcome;
        }
        let client = self.client(interaction, &flow.server, &registration).await?;
        self.ask_for_code(interaction, start, found, &flow, &client).await
    }

    async fn ask_for_code(
        &self,
        interaction: &dyn Interaction,
        start: &StartUrl,
        found: &Found,
        flow: &CodeFlow,
        client: &Client,
    ) -> Result<ResourceToken, ClientError> {
        let credentials = &client.credentials;
        let verifier = PkceVerifier::generate().map_err(|_| ClientError::NoRandomness)?;
        let request = AuthorizationRequest::new(
            flow,
            &Asked {
                client_id: &credentials.client_id,
                redirect_uri: interaction.redirect_uri(),
                challenge: &verifier.challenge(),
                resource: found.requested_resource(),
                profile: &found.profile,
                scopes: &found.scopes,
                binding: found.binding.as_deref(),
            },
        )?;
        let answer = interaction.authorize(&request).await?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", request.validate_response(&answer)?.secret()),
            ("redirect_uri", interaction.redirect_uri().as_str()),
            ("code_verifier", verifier.secret()),
        ];
        fields.extend(found.requested_resource().map(|resource| ("resource", resource.as_str())));
        let endpoint = self.token_endpoint(&flow.server);
        let response = endpoint.token(Some(credentials), &fields, found.binding.as_deref()).await?;
        found.profile.check_response(&response, start, &flow.server.issuer)?;
        let purpose = Purpose {
            start,
            issuer: &flow.server.issuer,
            resource: &found.resource,
            is_unbound: found.profile.omits_resource,
            client_id: Some(&credentials.client_id),
            asked: &found.scopes,
            binding: found.binding.clone(),
        };
        ResourceToken::new(response, purpose, self.clock.now())
    }
}
