//! Sign-ins at the broker while several processes refresh, and while servers and Redis are killed.

mod family;
mod interrupted;
mod killed;
mod redis;
mod refreshing;
mod sign_in;
mod storage;

use std::time::Duration;

use portcullis_scenarios::{BrokerServer, HttpResponse, McpSession};
use tokio::time::{Instant, sleep};

use self::{family::Family, storage::Storage};

/// Ends are read every 0.5 s. The rest is a margin for a busy machine.
const END_TIME: Duration = Duration::from_secs(10);

/// When something is killed after a request was sent. A response takes a few milliseconds.
const DELAYS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(100),
];

fn assert_invalid_grant(response: &HttpResponse) {
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(response.json()["error"], "invalid_grant", "{response:?}");
}

/// Waits until an access token is rejected, also by a replica that reads ends later.
async fn wait_until_rejected(server: &BrokerServer, access_token: &str) {
    let started = Instant::now();
    loop {
        let response = McpSession::initialize(server, "/mcp", access_token).await;
        if response.status == 401 {
            return;
        }
        assert!(started.elapsed() < END_TIME, "{response:?}");
        sleep(Duration::from_millis(20)).await;
    }
}
