//! [`Server`]: the endpoints of an authorization server.

use portcullis_discovery::ChainPolicy;
use portcullis_jose::DpopKey;
use portcullis_metadata::{AuthorizationServerMetadata, Issuer};
use serde_json::Value;
use url::Url;

use crate::UnsupportedServer;

/// An authorization server as far as every grant needs it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) issuer: Issuer,
    /// What its endpoints may be.
    pub(crate) policy: ChainPolicy,
    pub(crate) token_endpoint: Url,
    pub(crate) registration_endpoint: Option<Url>,
    pub(crate) revocation_endpoint: Option<Url>,
    /// Where the device flow starts (RFC 8628 section 4).
    pub(crate) device_authorization_endpoint: Option<Url>,
    pub(crate) scopes_supported: Vec<String>,
    pub(crate) authentication_methods: Option<Vec<String>>,
    /// Whether a client may name itself by the URL of its document.
    pub(crate) takes_client_documents: bool,
    /// Whether it binds tokens by DPoP, with the algorithm that is used here.
    pub(crate) binds_tokens: bool,
}

impl Server {
    pub(crate) fn from_metadata(
        metadata: &AuthorizationServerMetadata,
        policy: ChainPolicy,
    ) -> Result<Self, UnsupportedServer> {
        let algorithms = metadata.extra.get("dpop_signing_alg_values_supported").and_then(Value::as_array);
        let binds_tokens = algorithms.is_some_and(|listed| listed.iter().any(|one| one == DpopKey::ALGORITHM));
        Ok(Self {
            issuer: metadata.issuer.clone(),
            policy,
            token_endpoint: metadata.token_endpoint.clone().ok_or(UnsupportedServer::NoTokenEndpoint)?,
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

/// Where the device flow starts (RFC 8628 section 4).
pub(crate) fn device_authorization_endpoint(metadata: &AuthorizationServerMetadata) -> Option<Url> {
    metadata.extra.get("device_authorization_endpoint")?.as_str()?.parse().ok()
}
