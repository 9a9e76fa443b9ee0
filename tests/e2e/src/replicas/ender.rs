use std::collections::VecDeque;

use tokio::time::Instant;

use super::client::Client;

/// The number of ended sessions that are checked again later.
const KEPT_SESSIONS: usize = 64;
/// The number of sessions between two checks of an older one.
const CHECK_INTERVAL: usize = 8;

/// Opens and ends sessions until `end`, and checks that they have ended at every replica.
pub(super) async fn run(mut client: Client, end: Instant) -> anyhow::Result<()> {
    let mut ended = VecDeque::with_capacity(KEPT_SESSIONS + 1);
    let mut count = 0;
    while Instant::now() < end {
        let session = client.open().await?;
        client.call(&session).await?;
        if !client.end(&session).await? {
            continue;
        }
        client.check_ended(&session).await?;
        count += 1;
        ended.push_back(session);
        if ended.len() > KEPT_SESSIONS {
            ended.pop_front();
        }
        if count % CHECK_INTERVAL == 0
            && let Some(older) = ended.get(count / CHECK_INTERVAL % ended.len()).cloned()
        {
            client.check_ended(&older).await?;
        }
    }
    Ok(())
}
