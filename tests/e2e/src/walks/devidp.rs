//! The walk against the development authorization server.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    canary,
    client::Client,
    client_walk::Ground,
    output,
    person::Person,
    progress::Progress,
    site::{OTHER, Site},
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
    let mut site = progress.step("both programs start", Site::start(program, folder)).await?;
    let visitor = Visitor::new(&site.endpoint, &site.issuer, Arc::clone(&wire), SignIn::Hint)?;
    let walked = walk::walk(&visitor, progress).await;
    let stopped = progress.step("SIGTERM ends both with exit code 0", site.stop()).await;

    let start = Site::start_for_people(program, folder);
    let mut site = progress.step("both start again, with a consent page and brief tokens", start).await?;
    let client = Client::new(program, folder, person)?;
    let shipped = shipped_walk(&site, &wire, &client, progress).await;
    let stopped_again = progress.step("SIGTERM ends both again with exit code 0", site.stop()).await;

    let searched = async {
        let mut canaries = canary::canaries(&wire.exchanges());
        client.add_secrets(&mut canaries)?;
        output::search(folder, &canaries)
    };
    let searched = progress.step("no panic and no secret in their output", searched).await;
    walked.and(stopped).and(shipped).and(stopped_again).and(searched)
}

async fn shipped_walk(site: &Site, wire: &Wire, client: &Client, progress: &mut Progress) -> anyhow::Result<()> {
    let other = site.endpoint.join(OTHER)?;
    let ground = Ground {
        client,
        wire,
        server: site.server(),
        issuer: &site.issuer,
        resource: &site.endpoint,
        other: Some(&other),
        consent_for: &[],
        brief: &other,
    };
    ground.walk(progress).await
}
