//! The settings of a sign-in from the options of a command.

use std::path::Path;

use anyhow::Context as _;
use portcullis_client::{
    AuthorizerSettings, BroaderResource, RedirectAddress,
    registration::{ClientAuthentication, ClientInformation, TokenAuthMethod},
    store::CredentialStore,
};
use portcullis_config::{SecretSource, plan::secret_file_warning};
use portcullis_metadata::{Issuer, Scopes, client::ClientIdUrl};

use crate::cli;

/// Returns the store of this user, or the one that `--store` names. Fails when the user has no
/// directory for it.
pub(crate) fn store(arguments: &cli::SignIn) -> anyhow::Result<CredentialStore> {
    store_in(arguments.store.directory.as_deref())
}

/// Returns the store in this directory, or in that of this user. Fails when the user has no
/// directory for it.
pub(crate) fn store_in(directory: Option<&Path>) -> anyhow::Result<CredentialStore> {
    let directory = directory
        .map(Path::to_owned)
        .or_else(CredentialStore::user_directory);
    directory
        .map(CredentialStore::in_directory)
        .context("no directory for tokens: none of XDG_STATE_HOME, HOME and LOCALAPPDATA is an absolute path; name one with --store")
}

/// Returns a store for a user without a directory. It warns if nothing else keeps a preregistered
/// client at its authorization server: the resource names one at each start.
pub(crate) fn store_in_memory(arguments: &cli::SignIn) -> CredentialStore {
    let is_bound = arguments.authorization_server.is_some() || arguments.recorded_issuer.is_some();
    if arguments.client_id.is_some() && !is_bound {
        tracing::warn!(
            "there is no directory in which the authorization server of the client can be stored; name the server with \
             --authorization-server, or the directory with --store"
        );
    }
    CredentialStore::in_memory()
}

/// Returns the settings of the authorizer from the options of a command. Fails when a value is
/// invalid, or the file of the client secret cannot be read. The error names the option.
pub(crate) fn settings(
    arguments: &cli::SignIn,
    store: CredentialStore,
) -> anyhow::Result<AuthorizerSettings> {
    let mut settings = AuthorizerSettings::default();
    settings.store = store;
    settings.private_addresses = arguments.allow_private;
    settings.token_auth_method = token_auth_method(arguments)?;
    settings.broader_resource = broader_resource(arguments);
    settings.provider.omit_resource = arguments.provider.no_resource;
    settings.provider.assume_pkce = arguments.provider.assume_pkce;
    settings.provider.accept_unbound_token = arguments.provider.accept_unbound_token;
    settings
        .provider
        .parameters
        .clone_from(&arguments.provider.authorize_params);
    if let Some(scope) = &arguments.scope {
        settings.scopes = Some(Scopes::parse(scope).with_context(|| format!("--scope {scope:?}"))?);
    }
    if let Some(issuer) = &arguments.authorization_server {
        settings.authorization_server = Some(
            Issuer::parse(issuer).with_context(|| format!("--authorization-server {issuer:?}"))?,
        );
    }
    if let Some(url) = &arguments.client_metadata_url {
        let url =
            ClientIdUrl::parse(url).with_context(|| format!("--client-metadata-url {url:?}"))?;
        settings.client_id_url = Some(url);
    }
    if let Some(client_id) = &arguments.client_id {
        let authentication = client_authentication(arguments)?;
        settings.client = Some(ClientInformation {
            client_id: client_id.clone(),
            authentication,
        });
    }
    Ok(settings)
}

/// The options exclude each other.
fn broader_resource(arguments: &cli::SignIn) -> BroaderResource {
    if arguments.exact_resource {
        BroaderResource::Rejected
    } else if arguments.accept_broader_resource {
        BroaderResource::Accepted
    } else {
        BroaderResource::OfWholeHost
    }
}

/// Returns the secret of the preregistered client, if it has one.
fn client_authentication(arguments: &cli::SignIn) -> anyhow::Result<ClientAuthentication> {
    Ok(
        match (&arguments.client_secret, &arguments.client_secret_file) {
            (Some(secret), _) => ClientAuthentication::Secret(secret.clone()),
            (None, Some(file)) => {
                if let Some(warning) = secret_file_warning("--client-secret-file", file) {
                    tracing::warn!("{warning}");
                }
                ClientAuthentication::Secret(
                    SecretSource::File(file.clone())
                        .read()
                        .context("--client-secret-file")?,
                )
            }
            (None, None) => ClientAuthentication::None,
        },
    )
}

/// Returns the chosen method of client authentication. Fails for a method with a secret if the
/// client has none.
fn token_auth_method(arguments: &cli::SignIn) -> anyhow::Result<Option<TokenAuthMethod>> {
    let method = arguments
        .token_auth_method
        .as_deref()
        .and_then(TokenAuthMethod::from_name);
    if let Some(method) = method.filter(|method| *method != TokenAuthMethod::None)
        && arguments.client_id.is_some()
        && arguments.client_secret_file.is_none()
        && arguments.client_secret.is_none()
    {
        anyhow::bail!(
            "--token-auth-method {} with --client-id needs --client-secret-file",
            method.name()
        );
    }
    Ok(method)
}

/// Returns the host and the path of the redirect, on a free port. Fails when the host is not on
/// loopback, or the path is invalid.
pub(crate) fn redirect_address(arguments: &cli::SignIn) -> anyhow::Result<RedirectAddress> {
    let mut address = RedirectAddress::default();
    if let Some(host) = &arguments.callback_host {
        address = address.with_host(host).context("--callback-host")?;
    }
    if let Some(path) = &arguments.callback_path {
        address = address
            .with_path(path)
            .with_context(|| format!("--callback-path {path:?}"))?;
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// Returns the options of `portcullis token` with these arguments.
    fn options(arguments: &str) -> cli::SignIn {
        let arguments = format!("portcullis token https://mcp.example.com/mcp {arguments}");
        match cli::Cli::parse_from(arguments.split_whitespace()).command {
            cli::ClientCommand::Token(options) => options,
            _ => unreachable!(),
        }
    }

    #[test]
    fn options_become_settings() {
        let settings = settings(
            &options(
                "--scope a --client-id me --authorization-server https://a.example --allow-private",
            ),
            CredentialStore::in_memory(),
        )
        .unwrap();
        assert_eq!(settings.scopes.unwrap().to_string(), "a");
        assert_eq!(settings.client.unwrap().client_id, "me");
        assert_eq!(
            settings.authorization_server.unwrap().as_str(),
            "https://a.example"
        );
        assert!(settings.private_addresses);
        assert!(settings.token_auth_method.is_none());
    }

    #[test]
    fn invalid_options_are_named() {
        for (arguments, named) in [
            ("--authorization-server x", "--authorization-server \"x\""),
            (
                "--client-metadata-url http://a.example/",
                "--client-metadata-url \"http://a.example/\"",
            ),
            (
                "--client-id me --client-secret-file /nowhere/secret",
                "--client-secret-file",
            ),
            (
                "--client-id me --token-auth-method client_secret_post",
                "needs --client-secret-file",
            ),
        ] {
            let error = settings(&options(arguments), CredentialStore::in_memory())
                .err()
                .unwrap();
            assert!(
                format!("{error:#}").contains(named),
                "{arguments}: {error:#}"
            );
        }
    }
}
