//! The walk against the development authorization server.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    canary, output,
    progress::Progress,
    site::Site,
    visitor::{SignIn, Visitor},
    walk,
    wire::Wire,
};

/// How long one step may take. Each takes milliseconds, so that this is long even on a busy machine; it is shorter
/// than the 10 s after which a shutdown cuts requests off, which would not be in order here.
pub(super) const LIMIT: Duration = Duration::from_secs(8);

/// Start, walk, end, and a look at what the programs wrote; the last two also when the walk fails.
pub(super) async fn whole(program: &Path, folder: &Path, progress: &mut Progress) -> anyhow::Result<()> {
    let mut site = progress.step("both programs start", Site::start(program, folder)).await?;
    let visitor = Visitor::new(&site.endpoint, &site.issuer, Arc::new(Wire::new(LIMIT)?), SignIn::Hint)?;
    let walked = walk::walk(&visitor, progress).await;
    let stopped = progress.step("SIGTERM ends both with exit code 0", site.stop()).await;
    let searched = async { output::search(folder, &canary::canaries(&visitor.wire.exchanges())) };
    let searched = progress.step("no panic and no secret in their output", searched).await;
    walked.and(stopped).and(searched)
}
