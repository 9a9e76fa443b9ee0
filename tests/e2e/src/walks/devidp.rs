//! The walk against the development authorization server.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    canary,
    client::Client,
    client_walk::Ground,
    deployment::{DevDeployment, OTHER},
    output,
    person::Person,
    progress::Progress,
    visitor::{SignIn, Visitor},
    walk,
    wire::Wire,
};

/// How long one step may take. Each takes milliseconds, so that this is long even on a busy machine; it is shorter
/// than the 10 s after which a shutdown cuts requests off, which would not be in order here.
pub(super) const LIMIT: Duration = Duration::from_secs(8);

/// Start, walk, end, and a look at what the programs wrote; the last two also when the walk fails.
pub(super) async fn whole(
    program: &Path,
    folder: &Path,
    wire: Arc<Wire>,
    person: Person,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut deployment = progress.step("both programs start", DevDeployment::start(program, folder)).await?;
    let visitor = Visitor::new(&deployment.endpoint, &deployment.issuer, Arc::clone(&wire), SignIn::Hint)?;
    let walked = walk::walk(&visitor, progress).await;
    let stopped = progress.step("SIGTERM ends both with exit code 0", deployment.stop()).await;

    let start = DevDeployment::start_with_consent_page(program, folder);
    let mut deployment = progress.step("both start again, with a consent page and brief tokens", start).await?;
    let client = Client::new(program, folder, person)?;
    let shipped = shipped_walk(&deployment, &wire, &client, progress).await;
    let stopped_again = progress.step("SIGTERM ends both again with exit code 0", deployment.stop()).await;

    let searched = async {
        let mut canaries = canary::canaries(&wire.exchanges());
        client.add_secrets(&mut canaries)?;
        output::search(folder, &canaries)
    };
    let searched = progress.step("no panic and no secret in their output", searched).await;
    walked.and(stopped).and(shipped).and(stopped_again).and(searched)
}

async fn shipped_walk(
    deployment: &DevDeployment,
    wire: &Wire,
    client: &Client,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let other = deployment.endpoint.join(OTHER)?;
    let ground = Ground {
        client,
        wire,
        server: deployment.server(),
        issuer: &deployment.issuer,
        resource: &deployment.endpoint,
        other: Some(&other),
        consent_for: &[],
        brief: &other,
    };
    ground.walk(progress).await
}
