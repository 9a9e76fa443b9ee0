//! The authorization code grant.

use portcullis_metadata::authorization::PkceVerifier;

use super::{Authorizer, GrantContext, clients::Client};
use crate::{
    AuthorizationRequest, ClientError, Interaction, ResourceToken, StartUrl,
    authorization::code_flow::CodeFlow, authorization::request::RequestParameters,
};

impl Authorizer {
    /// The authorization code grant with PKCE (OAuth 2.1 section 4.1). A client that the server has
    /// forgotten is registered again: before the sign-in if that can be found out, or once after
    /// the token endpoint rejects it.
    pub(super) async fn code_grant(
        &self,
        interaction: &dyn Interaction,
        start: &StartUrl,
        found: &GrantContext,
    ) -> Result<ResourceToken, ClientError> {
        let flow = CodeFlow::from_metadata(
            &found.metadata,
            found.policy.clone(),
            found.profile.assumes_pkce,
        )?;
        let registration = self.registration(found, start, interaction.redirect_uri(), None);
        let mut client = self
            .client(interaction, &flow.server, &registration)
            .await?;
        // The browser would show the server's error, and no response would arrive here.
        if self
            .has_forgotten(&flow, &client, registration.redirect_uri, found)
            .await?
            && self.forget(&client, &registration).await?
        {
            tracing::info!(
                "the authorization server no longer knows the client; registering again"
            );
            client = self
                .client(interaction, &flow.server, &registration)
                .await?;
        }
        let outcome = self
            .ask_for_code(interaction, start, found, &flow, &client)
            .await;
        let Err(ClientError::TokenRequest(error)) = &outcome else {
            return outcome;
        };
        if error.error != "invalid_client" || !self.forget(&client, &registration).await? {
            return outcome;
        }
        let client = self
            .client(interaction, &flow.server, &registration)
            .await?;
        self.ask_for_code(interaction, start, found, &flow, &client)
            .await
    }

    /// Lets the user sign in, and exchanges the code for a token. Each call makes one authorization
    /// request.
    async fn ask_for_code(
        &self,
        interaction: &dyn Interaction,
        start: &StartUrl,
        found: &GrantContext,
        flow: &CodeFlow,
        client: &Client,
    ) -> Result<ResourceToken, ClientError> {
        self.sign_in_limit.record()?;
        let credentials = &client.credentials;
        let verifier = PkceVerifier::generate().map_err(|_| ClientError::NoRandomness)?;
        let request = AuthorizationRequest::new(
            flow,
            &RequestParameters {
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
        let code = request
            .validate_response(&answer)
            .map_err(|error| error.redacted(self.sent_secrets()))?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code.secret()),
            ("redirect_uri", interaction.redirect_uri().as_str()),
            ("code_verifier", verifier.secret()),
        ];
        fields.extend(
            found
                .requested_resource()
                .map(|resource| ("resource", resource.as_str())),
        );
        let endpoint = self.token_endpoint(&flow.server);
        let response = endpoint
            .token(Some(credentials), &fields, found.binding.as_deref())
            .await?;
        self.resource_token(
            response,
            found,
            start,
            &flow.server.issuer,
            Some(&credentials.client_id),
        )
    }
}
