//! npm's `oidc-provider`, in front of `portcullis serve`.

use super::{
    Ground,
    site::{Site, Start},
};
use crate::walks::oidc_provider::{OidcProviderDeployment, Package};

/// Starts it with the settings of `tests/idp/oidc-provider`.
pub(super) async fn start(ground: &Ground<'_>) -> anyhow::Result<Start> {
    let package = match Package::install(ground.target).await {
        Ok(package) => package,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let deployment = OidcProviderDeployment::start(&package, ground.program, ground.folder).await?;
    let url = deployment.resource("/mcp")?;
    Ok(Start::ready(Site::new(url).keeping(deployment)))
}
