//! Keycloak, in front of `portcullis serve`.

use super::{
    Ground,
    site::{Site, Start},
};
use crate::walks::keycloak::Installed;

/// Starts it with the realms of `tests/idp/keycloak`.
pub(super) async fn start(ground: &Ground<'_>) -> anyhow::Result<Start> {
    let installed = match Installed::prepare(ground.target, ground.ready_within).await {
        Ok(installed) => installed,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let (url, running) = installed.start(ground.program, ground.folder).await?;
    Ok(Start::ready(Site::new(url).keeping(running)))
}
