//! npm's `oidc-provider`, in front of `portcullis serve`.

use super::{
    Environment,
    site::{Site, Start},
};
use crate::oidc_provider::{OidcProviderDeployment, Package};

/// Starts it with the settings of `tests/idp/oidc-provider`.
pub(super) async fn start(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let package = match Package::install(environment.target).await {
        Ok(package) => package,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let deployment =
        OidcProviderDeployment::start(&package, environment.program, environment.folder).await?;
    let url = deployment.resource("/mcp")?;
    Ok(Start::ready(Site::new(url).keeping(deployment)))
}
