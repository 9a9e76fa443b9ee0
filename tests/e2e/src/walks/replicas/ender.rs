//! A client that opens sessions, ends them, and checks that they have ended at every replica.

use std::{collections::VecDeque, time::Duration};

use tokio::time::{Instant, sleep};

use super::client::Client;

/// No replica may accept an identifier this long after its end was confirmed.
const REACH: Duration = Duration::from_millis(50);
/// The number of ended sessions that are checked again later.
const REMEMBERED: usize = 64;
/// After how many sessions an older one is checked again.
const CHECK_AGAIN: usize = 8;

/// Opens and ends sessions until `end`.
pub(super) async fn run(mut client: Client, end: Instant) -> anyhow::Result<()> {
    let mut ended = VecDeque::with_capacity(REMEMBERED + 1);
    let mut count = 0;
    while Instant::now() < end {
        let session = client.open().await?;
        client.call(&session).await?;
        if !client.end(&session).await? {
            continue;
        }
        sleep(REACH).await;
        client.check_ended(&session).await?;
        count += 1;
        ended.push_back(session);
        if ended.len() > REMEMBERED {
            ended.pop_front();
        }
        if count % CHECK_AGAIN == 0
            && let Some(older) = ended.get(count / CHECK_AGAIN % ended.len()).cloned()
        {
            client.check_ended(&older).await?;
        }
    }
    Ok(())
}
