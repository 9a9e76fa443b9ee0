//! Several processes of one user that refresh.

use std::time::Duration;

use parking_lot::Mutex;
use portcullis_scenarios::{
    BrokerClient, BrokerServer, McpSession, ProviderKind, TokenPair, is_full_run,
};
use tokio::time::{Instant, sleep};

use super::Family;

/// How long processes refresh at the same time.
const REFRESHING: Duration = Duration::from_secs(5);
const REFRESHING_FULL: Duration = Duration::from_secs(600);
/// The pause after each refresh of a process, so that all of them stay below the server's limit of
/// 20 requests a second for each address.
const PAUSE: Duration = Duration::from_millis(160);

/// What the processes of one user share: a credential store, whose last write counts.
struct SharedCredentials {
    stored: Mutex<TokenPair>,
    family: Mutex<Family>,
}

/// RF2: three processes share one credential store, and refresh at the same time. All of them get
/// tokens that work; no token gets a second successor, and no process has to sign in again.
#[tokio::test]
async fn concurrent_refreshes_sign_no_process_out() {
    let server = BrokerServer::start(ProviderKind::Google).await;
    let client = BrokerClient::register(&server).await;
    let first = client.sign_in(&server, "alice").await;
    let session = McpSession::open(&server, &first.access).await;
    let shared = SharedCredentials {
        stored: Mutex::new(first),
        family: Mutex::default(),
    };
    let time = if is_full_run() {
        REFRESHING_FULL
    } else {
        REFRESHING
    };
    let end = Instant::now() + time;
    let process = || refresh_until(end, &server, &client, &session, &shared);
    let (one, two, three) = tokio::join!(process(), process(), process());
    let rotations = shared.family.lock().rotations();
    eprintln!(
        "{} refreshes by three processes in {} s: {rotations} rotations, no failure",
        one + two + three,
        time.as_secs(),
    );
    assert!(rotations > 3, "only {rotations} rotations");
}

/// Refreshes what is stored, uses the result and stores it. Returns the number of refreshes.
async fn refresh_until(
    end: Instant,
    server: &BrokerServer,
    client: &BrokerClient,
    session: &McpSession,
    shared: &SharedCredentials,
) -> usize {
    let mut refreshes = 0;
    while Instant::now() < end {
        let presented = shared.stored.lock().refresh.clone();
        let response = client.refresh(server, &presented).await;
        let pair = TokenPair::parse(&response);
        shared.family.lock().add(&presented, &pair);
        session.assert_usable(server, &pair.access).await;
        *shared.stored.lock() = pair;
        refreshes += 1;
        sleep(PAUSE).await;
    }
    refreshes
}
