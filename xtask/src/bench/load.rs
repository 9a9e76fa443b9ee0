//! The load generator: a fixed number of requests over a fixed number of connections, one at a time on each.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{hostile::Varied, http::Connection};

/// Connections that are open at once.
pub(super) const CONNECTIONS: usize = 32;

/// How often each connection sends, so that all together send at least so many requests.
pub(super) fn times(requests: u32) -> usize {
    (requests as usize).div_ceil(CONNECTIONS)
}

/// Sends the same bytes on each connection so many times and reads the answers; gives the time that it took.
///
/// # Errors
/// When an answer is no 200, so that nothing but successes is ever measured.
pub(super) async fn run(address: SocketAddr, request: &[u8], times: usize) -> anyhow::Result<Duration> {
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?);
    }
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for connection in connections {
        senders.spawn(repeat(connection, request.to_vec(), times));
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
    good: &[u8],
    times: usize,
    other: &Varied,
) -> anyhow::Result<Duration> {
    let mut connections = Vec::with_capacity(MEASURED);
    for _ in 0..MEASURED {
        connections.push(Connection::open(address).await?);
    }
    // They end with this.
    let mut beside = JoinSet::new();
    for connection in MEASURED..CONNECTIONS {
        beside.spawn(bother(address, other.clone(), (connection as u64) << 32));
    }
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for connection in connections {
        senders.spawn(repeat(connection, good.to_vec(), times));
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(started.elapsed())
}

/// Sends for ever. A connection that the server closes is replaced.
async fn bother(address: SocketAddr, mut request: Varied, first: u64) {
    let mut numbers = first..;
    loop {
        let Ok(mut connection) = Connection::open(address).await else { continue };
        for number in numbers.by_ref() {
            if connection.exchange(request.number(number)).await.is_err() {
                break;
            }
        }
    }
}

async fn repeat(mut connection: Connection, request: Vec<u8>, times: usize) -> anyhow::Result<()> {
    for _ in 0..times {
        connection.exchange(&request).await?.ok()?;
    }
    Ok(())
}
