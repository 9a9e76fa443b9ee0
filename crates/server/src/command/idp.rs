//! `portcullis idp`: the development authorization server alone.

mod clients;

use anyhow::Context as _;
use portcullis_devidp::{DevIdp, DevIdpSettings, DocumentFetch, Registration, SigningAlgorithm, TokenHeaderType};
use portcullis_metadata::{ResourceUri, Scopes};

use crate::{cli, config::SecretSource, serve};

pub(crate) fn run(arguments: cli::Idp) -> anyhow::Result<()> {
    super::control_runtime()?.block_on(async {
        let mut shutdown = serve::shutdown_signal()?;
        let idp = DevIdp::bind(settings(arguments)?).await?;
        super::print(format_args!("development authorization server: {}", idp.issuer()))?;
        idp.serve(async move {
            // An error means that nobody can ask for the end any more, which is one.
            let _ = shutdown.wait_for(|shutdown| *shutdown).await;
        })
        .await;
        Ok(())
    })
}

fn settings(arguments: cli::Idp) -> anyhow::Result<DevIdpSettings> {
    let resource = arguments.default_resource.as_deref().map(ResourceUri::parse).transpose();
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
        token_header_type: if arguments.at_jwt { TokenHeaderType::AtJwt } else { TokenHeaderType::Jwt },
        access_token_lifetime: arguments.token_lifetime,
        dpop_nonces: arguments.dpop_nonces,
        clients: arguments.clients.as_deref().map(clients::read).transpose()?.unwrap_or_default(),
        registration: match (arguments.initial_access_token_file, arguments.no_registration) {
            (Some(file), _) => {
                Registration::WithToken(SecretSource::File(file).read().context("--initial-access-token-file")?)
            }
            (None, true) => Registration::Closed,
            (None, false) => Registration::Open,
        },
        client_documents: if arguments.no_client_documents { DocumentFetch::Off } else { DocumentFetch::Http },
        admin: arguments.admin,
        ..DevIdpSettings::default()
    })
}
