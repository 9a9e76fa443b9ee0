//! The credentials of a scenario.

use std::{env, sync::Arc};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_client::{
    AuthorizerSettings, BroaderResource, EnterpriseIdentity, NonInteractiveGrant,
    registration::{ClientAuthentication, ClientInformation, ClientKey},
};
use portcullis_mcp::Revision;
use portcullis_metadata::{Issuer, Secret, client::ClientIdUrl};
use serde_json::Value;
use url::Url;

/// The URL of the client's metadata document for the suite, which does not fetch it.
pub(super) const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Returns the settings with the scenario's credentials.
pub(super) fn settings(context: &Value, revision: Revision) -> anyhow::Result<AuthorizerSettings> {
    let text = |name: &str| context[name].as_str();
    let client = match text("client_id") {
        None => None,
        Some(client_id) => {
            let authentication = match (text("private_key_pem"), text("client_secret")) {
                (Some(pem), _) => {
                    let algorithm = text("signing_algorithm").unwrap_or("ES256");
                    ClientAuthentication::PrivateKey(ClientKey::from_pem(algorithm, pem, None)?)
                }
                (None, Some(secret)) => ClientAuthentication::Secret(Secret::new(secret)),
                (None, None) => ClientAuthentication::None,
            };
            Some(ClientInformation {
                client_id: client_id.to_owned(),
                authentication,
            })
        }
    };
    let mut settings = AuthorizerSettings::default();
    settings.client_name = "Portcullis conformance driver".into();
    settings.client = client;
    settings.client_id_url = Some(ClientIdUrl::parse(DOCUMENT)?);
    settings.authorization_server = text("valid_jwt").map(audience).transpose()?;
    settings.revision_2025_03_26 = !revision.is_modern();

    // The user of a scenario accepts every question.
    settings.broader_resource = BroaderResource::Accepted;
    Ok(settings)
}

/// Returns the grant of a scenario without a user.
pub(super) fn grant(context: &Value) -> anyhow::Result<Option<NonInteractiveGrant>> {
    let text = |name: &str| context[name].as_str();
    if let Some(assertion) = text("valid_jwt") {
        return Ok(Some(NonInteractiveGrant::JwtBearer(Arc::new(Secret::new(
            assertion,
        )))));
    }
    if let Some(id_token) = text("idp_id_token") {
        let needed = |name: &'static str| text(name).context(name);
        return Ok(Some(NonInteractiveGrant::EnterpriseManaged(
            EnterpriseIdentity {
                token_endpoint: Url::parse(needed("idp_token_endpoint")?)?,
                issuer: Issuer::parse(needed("idp_issuer")?)?,
                client: ClientInformation {
                    client_id: needed("idp_client_id")?.to_owned(),
                    authentication: ClientAuthentication::None,
                },
                id_token: Arc::new(Secret::new(id_token)),
            },
        )));
    }
    Ok(is_machine().then_some(NonInteractiveGrant::ClientCredentials))
}

/// Returns whether a scenario with a client secret has no user. Only the name of the scenario
/// distinguishes them.
pub(super) fn is_machine() -> bool {
    env::var("MCP_CONFORMANCE_SCENARIO").is_ok_and(|name| name.contains("client-credentials"))
}

/// Returns a workload's assertion, which is only sent to its audience.
fn audience(assertion: &str) -> anyhow::Result<Issuer> {
    let claims = assertion
        .split('.')
        .nth(1)
        .context("the assertion is not a JWT")?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    Ok(Issuer::parse(
        claims["aud"]
            .as_str()
            .context("the assertion has no audience")?,
    )?)
}
