//! The broker of the demo, and its application at the development server.

use std::net::SocketAddr;

use anyhow::Context as _;
use portcullis_config::{Config, SecretSource};
use portcullis_devidp::{
    ClientAuthentication, ClientSettings, DevIdpSettings, GrantType, Provider,
};
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::{Issuer, Secret, authorization::PkceVerifier};
use url::Url;

use super::SCOPE;

const KIND: &str = ProviderKind::Entra.as_str();
const CLIENT_ID: &str = "portcullis-demo";

/// The application of the broker at the development server. Its secret is new for each process, and
/// is neither printed nor written.
pub(super) struct Application {
    secret: Secret,
    redirect_uri: String,
}

impl Application {
    /// Returns the application of the server at this address. Fails when the operating system gives
    /// no random bytes.
    pub(super) fn new(address: SocketAddr) -> anyhow::Result<Self> {
        let random = PkceVerifier::generate().context("the demo needs a secret")?;
        Ok(Self {
            secret: Secret::new(random.secret()),
            redirect_uri: format!("http://{address}/oauth/callback/{KIND}"),
        })
    }

    #[cfg(test)]
    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Lets the development server imitate Entra ID, with this application.
    pub(super) fn register(&self, settings: &mut DevIdpSettings) {
        let mut client = ClientSettings::public(CLIENT_ID);
        // The only method with a secret in the metadata of Entra ID.
        client.authentication = ClientAuthentication::SecretPost(self.secret.clone());
        client.name = Some("the broker of the demo".to_owned());
        client.redirect_uris = vec![self.redirect_uri.clone()];
        client.grant_types = vec![GrantType::AuthorizationCode, GrantType::RefreshToken];
        settings.provider = Some(Provider::Entra);
        settings.clients = vec![client];
    }

    /// Sets the secret in the configuration.
    pub(super) fn configure(&self, config: &mut Config) {
        let providers = config.broker.iter_mut().flat_map(|it| &mut it.provider);
        for provider in providers {
            provider.client_secret = SecretSource::Given(self.secret.clone());
        }
    }
}

/// Returns `[broker]` with the development server as the provider. Its secret is set by
/// [`Application::configure`].
pub(super) fn table(issuer: &Issuer) -> String {
    format!(
        r#"[broker]
        scope_descriptions = {{ "{SCOPE}" = "Use the tools of the demo" }}

        [[broker.provider]]
        kind = "{KIND}"
        tenant = "{tenant}"
        issuer = "{issuer}"
        client_id = "{CLIENT_ID}"
        client_secret = {{ env = "UNUSED" }}"#,
        tenant = tenant(issuer.url()),
    )
}

/// Returns the tenant that the development server imitates: the first segment of the path.
fn tenant(issuer: &Url) -> &str {
    issuer
        .path_segments()
        .and_then(|mut segments| segments.next())
        .unwrap_or_default()
}
