use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::client::Client;

/// The pause between two calls.
const PAUSE: Duration = Duration::from_millis(100);

/// Opens one session and uses it until `end`.
pub(super) async fn run(mut client: Client, end: Instant) -> anyhow::Result<()> {
    let session = client.open().await?;
    while Instant::now() < end {
        client.call(&session).await?;
        sleep(PAUSE).await;
    }
    Ok(())
}
