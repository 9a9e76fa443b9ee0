//! Grants without a user: client credentials, token exchange, JWT bearer.

use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{Secret, authorization::TokenResponse};

use super::{Authorizer, GrantContext};
use crate::{
    AssertionError, ClientCredentials, ClientError, EnterpriseIdentity, NonInteractiveGrant,
    ResourceToken, StartUrl,
    server::Server,
    token::endpoint::{Fields, TokenEndpoint},
};

/// RFC 7523 section 2.1.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// RFC 8693 section 2.1.
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// RFC 8693 section 3.
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// The type of an assertion from an identity provider to an authorization server.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

impl Authorizer {
    /// Obtains a token without a user. A rejected grant is an error: it is not repeated, and no
    /// other grant is tried.
    pub(super) async fn non_interactive_grant(
        &self,
        grant: &NonInteractiveGrant,
        start: &StartUrl,
        found: &GrantContext,
    ) -> Result<ResourceToken, ClientError> {
        let server = Server::from_metadata(&found.metadata, found.policy.clone())?;
        let client = self.configured_client(start, &server.issuer).await?;
        if client.is_none() && !matches!(grant, NonInteractiveGrant::JwtBearer(_)) {
            return Err(ClientError::NoRegistration {
                issuer: server.issuer,
            });
        }
        let client = client.as_ref();
        let response = match grant {
            NonInteractiveGrant::ClientCredentials => {
                self.grant_token(
                    &server,
                    client,
                    vec![("grant_type", "client_credentials")],
                    found,
                )
                .await?
            }
            NonInteractiveGrant::EnterpriseManaged(identity) => {
                let assertion = self.enterprise_assertion(identity, &server, found).await?;
                let fields = vec![
                    ("grant_type", JWT_BEARER),
                    ("assertion", assertion.secret()),
                ];
                self.grant_token(&server, client, fields, found).await?
            }
            NonInteractiveGrant::JwtBearer(source) => {
                let assertion = source.assertion(&server.issuer).await?;
                let fields = vec![
                    ("grant_type", JWT_BEARER),
                    ("assertion", assertion.secret()),
                ];
                self.grant_token(&server, client, fields, found).await?
            }
        };
        self.resource_token(
            response,
            found,
            start,
            &server.issuer,
            client.map(|client| client.client_id.as_str()),
        )
    }

    /// Sends a token request with the fields of a grant, the resource and the scopes.
    async fn grant_token(
        &self,
        server: &Server,
        client: Option<&ClientCredentials>,
        fields: Fields<'_>,
        found: &GrantContext,
    ) -> Result<TokenResponse, ClientError> {
        let scope = found.scopes.to_string();
        let mut fields: Fields<'_> = fields;
        fields.extend(
            found
                .requested_resource()
                .map(|resource| ("resource", resource.as_str())),
        );
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let endpoint = self.token_endpoint(server);
        endpoint
            .token(client, &fields, found.binding.as_deref())
            .await
    }

    /// Exchanges a user's ID token for an assertion to the authorization server (RFC 8693 section
    /// 2, token type `id-jag`).
    async fn enterprise_assertion(
        &self,
        identity: &EnterpriseIdentity,
        server: &Server,
        found: &GrantContext,
    ) -> Result<Secret, ClientError> {
        let id_token = identity.id_token.assertion(&identity.issuer).await?;
        let at_provider = identity.client.clone().at(identity.issuer.clone());
        let scope = found.scopes.to_string();
        let mut fields = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", server.issuer.as_str()),
            ("resource", found.resource.as_str()),
            ("subject_token", id_token.secret()),
            ("subject_token_type", ID_TOKEN),
        ];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let endpoint = TokenEndpoint {
            fetch: &*self.fetch,
            clock: &*self.clock,
            method: None,
            name: "identity provider's token",
            url: &identity.token_endpoint,
            policy: UrlPolicy::Operator,
            issuer: &identity.issuer,
            authentication_methods: None,
        };
        let response = endpoint.token(Some(&at_provider), &fields, None).await?;
        let issued_type = response
            .extra
            .get("issued_token_type")
            .and_then(|name| name.as_str());
        if issued_type != Some(ID_JAG) || !response.token_type.eq_ignore_ascii_case("N_A") {
            return Err(AssertionError::UnexpectedTokenType.into());
        }
        Ok(Secret::new(response.access_token.secret()))
    }
}
