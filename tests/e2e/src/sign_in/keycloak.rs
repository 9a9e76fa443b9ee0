//! Keycloak, in front of `portcullis serve`.

use super::{
    Environment,
    site::{Site, Start},
};
use crate::keycloak::Installed;

/// Starts it with the realms of `tests/idp/keycloak`.
pub(super) async fn start(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let installed = match Installed::prepare(environment.target, environment.ready_within).await {
        Ok(installed) => installed,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let (url, running) = installed
        .start(environment.program, environment.folder)
        .await?;
    Ok(Start::ready(Site::new(url).keeping(running)))
}
