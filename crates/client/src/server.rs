pub(crate) mod unsupported_server;

use portcullis_discovery::ChainPolicy;
use portcullis_jose::DpopKey;
use portcullis_metadata::{AuthorizationServerMetadata, Issuer};
use serde_json::Value;
use url::Url;

use self::unsupported_server::UnsupportedServer;

/// The endpoints and capabilities of an authorization server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Its issuer identifier.
    pub(crate) issuer: Issuer,
    /// The URL policy of its endpoints.
    pub(crate) policy: ChainPolicy,
    /// The token endpoint (RFC 6749 section 3.2).
    pub(crate) token_endpoint: Url,
    /// The client registration endpoint (RFC 7591 section 3).
    pub(crate) registration_endpoint: Option<Url>,
    /// The revocation endpoint (RFC 7009 section 2).
    pub(crate) revocation_endpoint: Option<Url>,
    /// The device authorization endpoint (RFC 8628 section 4).
    pub(crate) device_authorization_endpoint: Option<Url>,
    /// The scopes that the server supports. Empty if it does not list them.
    pub(crate) scopes_supported: Vec<String>,
    /// The client authentication methods of the token endpoint. `None` if the server does not list
    /// them.
    pub(crate) authentication_methods: Option<Vec<String>>,
    /// Whether a client can use the URL of its metadata document as its identifier.
    pub(crate) takes_client_documents: bool,
    /// Whether it binds tokens by DPoP with this crate's algorithm.
    pub(crate) binds_tokens: bool,
}

impl Server {
    /// Reads the metadata. The endpoints are checked against `policy` when they are fetched. Fails
    /// with [`UnsupportedServer::NoTokenEndpoint`].
    pub(crate) fn from_metadata(
        metadata: &AuthorizationServerMetadata,
        policy: ChainPolicy,
    ) -> Result<Self, UnsupportedServer> {
        let algorithms = metadata
            .extra
            .get("dpop_signing_alg_values_supported")
            .and_then(Value::as_array);
        let binds_tokens =
            algorithms.is_some_and(|listed| listed.iter().any(|one| one == DpopKey::ALGORITHM));
        Ok(Self {
            issuer: metadata.issuer.clone(),
            policy,
            token_endpoint: metadata
                .token_endpoint
                .clone()
                .ok_or(UnsupportedServer::NoTokenEndpoint)?,
            registration_endpoint: metadata.registration_endpoint.clone(),
            revocation_endpoint: metadata.revocation_endpoint.clone(),
            device_authorization_endpoint: device_authorization_endpoint(metadata),
            scopes_supported: metadata.scopes_supported.clone().unwrap_or_default(),
            authentication_methods: metadata.token_endpoint_auth_methods_supported.clone(),
            takes_client_documents: metadata.client_id_metadata_document_supported,
            binds_tokens,
        })
    }
}

/// The device authorization endpoint (RFC 8628 section 4).
pub(crate) fn device_authorization_endpoint(metadata: &AuthorizationServerMetadata) -> Option<Url> {
    metadata
        .extra
        .get("device_authorization_endpoint")?
        .as_str()?
        .parse()
        .ok()
}
