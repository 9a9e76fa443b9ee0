//! The load generator: a fixed number of requests over a fixed number of connections, one at a time
//! on each connection.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{http::Connection, request_template::RequestTemplate};

/// The number of open connections.
pub(super) const CONNECTIONS: usize = 32;
/// The number of connections that send the measured requests while the others send different ones.
const MEASURED: usize = CONNECTIONS / 2;

/// Returns how many requests each connection sends, so that all connections together send at least
/// this number.
pub(super) fn times(requests: u32) -> usize {
    (requests as usize).div_ceil(CONNECTIONS)
}

/// Sends this number of requests on each connection, reads the responses, and returns the elapsed
/// time. Fails when a response is not 200.
pub(super) async fn run(
    address: SocketAddr,
    request: &RequestTemplate,
    times: usize,
) -> anyhow::Result<Duration> {
    run_on(open_all(address, CONNECTIONS).await?, request, times).await
}

/// Returns the time in which half of the connections send `valid` requests, while the other half
/// sends `other` requests, whose responses are ignored. Fails when a response to a `valid` request
/// is not 200.
pub(super) async fn run_beside(
    address: SocketAddr,
    valid: &RequestTemplate,
    times: usize,
    other: &RequestTemplate,
) -> anyhow::Result<Duration> {
    let connections = open_all(address, MEASURED).await?;
    // These tasks are aborted when the set is dropped.
    let mut beside = JoinSet::new();
    for _ in MEASURED..CONNECTIONS {
        beside.spawn(send_endlessly(address, other.clone()));
    }
    run_on(connections, valid, times).await
}

/// Opens this number of connections.
async fn open_all(address: SocketAddr, count: usize) -> anyhow::Result<Vec<Connection>> {
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        connections.push(Connection::open(address).await?);
    }
    Ok(connections)
}

/// Sends this number of requests on each connection concurrently, and returns the elapsed time.
async fn run_on(
    connections: Vec<Connection>,
    request: &RequestTemplate,
    times: usize,
) -> anyhow::Result<Duration> {
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

/// Sends requests without end. Replaces connections that the server closes.
async fn send_endlessly(address: SocketAddr, mut request: RequestTemplate) {
    let mut numbers = numbers();
    loop {
        let Ok(mut connection) = Connection::open(address).await else {
            continue;
        };
        for number in numbers.by_ref() {
            if connection.send(request.number(number)).await.is_err() {
                break;
            }
        }
    }
}

/// Sends this number of requests, and fails at the first response that is not 200.
async fn repeat(
    mut connection: Connection,
    mut request: RequestTemplate,
    times: usize,
) -> anyhow::Result<()> {
    for number in numbers().take(times) {
        connection.send(request.number(number)).await?.ok()?;
    }
    Ok(())
}

/// Returns numbers that no other connection of this process uses.
fn numbers() -> impl Iterator<Item = u64> {
    static CONNECTIONS_SO_FAR: AtomicU64 = AtomicU64::new(0);
    (CONNECTIONS_SO_FAR.fetch_add(1, Ordering::Relaxed) << 32)..
}
