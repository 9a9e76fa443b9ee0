//! `portcullis idp`: starts only the development authorization server.

mod claim;
mod clients;
mod users;

use anyhow::Context as _;
use portcullis_config::SecretSource;
use portcullis_devidp::{
    ClientAuthenticationMode, DevIdp, DevIdpSettings, DocumentFetch, Provider, Registration,
    SigningAlgorithm, TokenHeaderType,
};
use portcullis_metadata::{ResourceUri, Scopes};
use portcullis_terminal::print;

use crate::cli;

pub(crate) fn run(arguments: cli::Idp) -> anyhow::Result<()> {
    crate::control_runtime()?.block_on(async {
        let mut shutdown = portcullis_serve::shutdown_signal()?;
        let settings = settings(arguments)?;
        let introduction = settings
            .provider
            .map(|provider| introduction(provider, &settings));
        let idp = DevIdp::bind(settings).await?;
        print(format_args!(
            "development authorization server: {}",
            idp.issuer()
        ))?;
        if let Some(lines) = introduction {
            // A program that reads the issuer may close the pipe, which must not end the server.
            let _ = print(format_args!("{}", lines.join("\n")));
        }
        idp.serve(async move {
            // An error means that the sender is gone, which also ends the server.
            let _ = shutdown.wait_for(|shutdown| *shutdown).await;
        })
        .await;
        Ok(())
    })
}

/// The lines that explain how the server differs and what a client needs.
fn introduction(provider: Provider, settings: &DevIdpSettings) -> Vec<String> {
    let mut lines = vec![format!("It imitates {}, which", provider.as_str())];
    lines.extend(
        provider
            .differences()
            .map(|difference| format!("  - {}", difference.summary)),
    );
    if let Some(prefix) = provider.scope_prefix() {
        let scopes: Vec<_> = settings
            .scopes
            .iter()
            .map(|scope| format!("{prefix}/{scope}"))
            .collect();
        lines.push(format!("Its scopes are {}", scopes.join(" ")));
    }
    if !provider.has_registration() && settings.clients.is_empty() {
        lines.push("No client can sign in yet: clients cannot register here, so define them with --clients".to_owned());
    }
    lines
}

fn settings(arguments: cli::Idp) -> anyhow::Result<DevIdpSettings> {
    let resource = arguments
        .default_resource
        .as_deref()
        .map(ResourceUri::parse)
        .transpose();
    Ok(DevIdpSettings {
        listen: arguments.listen,
        issuer_path: arguments.issuer_path,
        auto_consent: arguments.auto_consent,
        user: arguments.user,
        scopes: Scopes::parse(&arguments.scopes.join(" ")).context("--scope")?,
        default_resource: resource.context("--default-resource")?,
        signing_algorithm: match arguments.algorithm {
            cli::IdpAlgorithm::Rs256 => SigningAlgorithm::Rs256,
            cli::IdpAlgorithm::Es256 => SigningAlgorithm::Es256,
        },
        token_header_type: if arguments.at_jwt {
            TokenHeaderType::AtJwt
        } else {
            TokenHeaderType::Jwt
        },
        access_token_lifetime: arguments.token_lifetime,
        dpop_nonces: arguments.dpop_nonces,
        provider: arguments.like.map(provider),
        extra_claims: claim::parse(&arguments.claims)?,
        users: arguments
            .users
            .as_deref()
            .map(users::read)
            .transpose()?
            .unwrap_or_default(),
        client_authentication_mode: match arguments.client_auth {
            cli::IdpClientAuth::Registered => ClientAuthenticationMode::Registered,
            cli::IdpClientAuth::PythonSdk => ClientAuthenticationMode::PythonSdk,
            cli::IdpClientAuth::RejectBasic => ClientAuthenticationMode::RejectBasic,
            cli::IdpClientAuth::RejectPost => ClientAuthenticationMode::RejectPost,
            cli::IdpClientAuth::BasicWithoutBody => ClientAuthenticationMode::BasicWithoutBody,
        },
        clients: arguments
            .clients
            .as_deref()
            .map(clients::read)
            .transpose()?
            .unwrap_or_default(),
        registration: match (
            arguments.initial_access_token_file,
            arguments.no_registration,
        ) {
            (Some(file), _) => Registration::WithToken(
                SecretSource::File(file)
                    .read()
                    .context("--initial-access-token-file")?,
            ),
            (None, true) => Registration::Closed,
            (None, false) => Registration::Open,
        },
        client_documents: if arguments.no_client_documents {
            DocumentFetch::Off
        } else {
            DocumentFetch::Http
        },
        admin: arguments.admin,
        ..DevIdpSettings::default()
    })
}

const fn provider(like: cli::IdpLike) -> Provider {
    match like {
        cli::IdpLike::Entra => Provider::Entra,
        cli::IdpLike::EntraV1 => Provider::EntraV1,
        cli::IdpLike::Google => Provider::Google,
        cli::IdpLike::GitHub => Provider::GitHub,
        cli::IdpLike::GitHubApp => Provider::GitHubApp,
        cli::IdpLike::Okta => Provider::Okta,
        cli::IdpLike::Auth0 => Provider::Auth0,
        cli::IdpLike::Keycloak => Provider::Keycloak,
        cli::IdpLike::Authentik => Provider::Authentik,
        cli::IdpLike::Cognito => Provider::Cognito,
    }
}
