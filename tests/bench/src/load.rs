//! The load generator: a fixed number of requests over a fixed number of connections, one at a time on each.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{http::Connection, varied::Varied};

/// Connections that are open at once.
pub(super) const CONNECTIONS: usize = 32;

/// How often each connection sends, so that all together send at least so many requests.
pub(super) fn times(requests: u32) -> usize {
    (requests as usize).div_ceil(CONNECTIONS)
}

/// Sends requests on each connection so many times and reads the answers; gives the time that it took.
///
/// # Errors
/// When an answer is no 200, so that nothing but successes is ever measured.
pub(super) async fn run(address: SocketAddr, request: &Varied, times: usize) -> anyhow::Result<Duration> {
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?);
    }
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for connection in connections {
        senders.spawn(repeat(connection, request.clone(), times));
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(started.elapsed())
}

/// How many of the connections send what is measured where others send something else.
const MEASURED: usize = CONNECTIONS / 2;

/// The time that half of the connections take to send `good` so many times each, while the other half sends `other`
/// requests, no two the same, whatever becomes of those.
///
/// # Errors
/// When an answer to `good` is no 200.
pub(super) async fn run_beside(
    address: SocketAddr,
    good: &Varied,
    times: usize,
    other: &Varied,
) -> anyhow::Result<Duration> {
    let mut connections = Vec::with_capacity(MEASURED);
    for _ in 0..MEASURED {
        connections.push(Connection::open(address).await?);
    }
    // They end with this.
    let mut beside = JoinSet::new();
    for _ in MEASURED..CONNECTIONS {
        beside.spawn(bother(address, other.clone()));
    }
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for connection in connections {
        senders.spawn(repeat(connection, good.clone(), times));
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(started.elapsed())
}

/// Sends without end. A connection that the server closes is replaced.
async fn bother(address: SocketAddr, mut request: Varied) {
    let mut numbers = numbers();
    loop {
        let Ok(mut connection) = Connection::open(address).await else { continue };
        for number in numbers.by_ref() {
            if connection.exchange(request.number(number)).await.is_err() {
                break;
            }
        }
    }
}

async fn repeat(mut connection: Connection, mut request: Varied, times: usize) -> anyhow::Result<()> {
    for number in numbers().take(times) {
        connection.exchange(request.number(number)).await?.ok()?;
    }
    Ok(())
}

/// Numbers that no connection of this process had before.
fn numbers() -> impl Iterator<Item = u64> {
    static CONNECTIONS_SO_FAR: AtomicU64 = AtomicU64::new(0);
    (CONNECTIONS_SO_FAR.fetch_add(1, Ordering::Relaxed) << 32)..
}
