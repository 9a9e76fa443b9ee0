//! The load generator: a fixed number of requests over a fixed number of connections, one at a time
//! on each connection.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::ensure;
use tokio::task::JoinSet;

use super::{http::Connection, request_template::RequestTemplate};

/// The number of open connections.
pub(super) const CONNECTIONS: usize = 32;
/// The number of connections that send the measured requests while the others send different ones.
const MEASURED: usize = CONNECTIONS / 2;

/// How long requests took.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    /// The time from the first request to the last response.
    pub(super) elapsed: Duration,
    /// The time of a request that 99 % of them do not exceed.
    pub(super) p99: Duration,
}

/// Returns how many requests each connection sends, so that all connections together send at least
/// this number.
pub(super) fn times(requests: u32) -> usize {
    (requests as usize).div_ceil(CONNECTIONS)
}

/// Sends this number of requests on each connection, and reads the responses. Fails when a response
/// is not 200.
pub(super) async fn run(
    address: SocketAddr,
    request: &RequestTemplate,
    times: usize,
) -> anyhow::Result<Timing> {
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
    Ok(run_on(connections, valid, times).await?.elapsed)
}

/// Opens this number of connections.
async fn open_all(address: SocketAddr, count: usize) -> anyhow::Result<Vec<Connection>> {
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        connections.push(Connection::open(address).await?);
    }
    Ok(connections)
}

/// Sends this number of requests on each connection concurrently.
async fn run_on(
    connections: Vec<Connection>,
    request: &RequestTemplate,
    times: usize,
) -> anyhow::Result<Timing> {
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for connection in connections {
        senders.spawn(repeat(connection, request.clone(), times));
    }
    let mut latencies = Vec::new();
    while let Some(ended) = senders.join_next().await {
        latencies.extend(ended??);
    }
    let elapsed = started.elapsed();
    let position = latencies.len() * 99 / 100;
    ensure!(position < latencies.len(), "no requests were sent");
    let (_, p99, _) = latencies.select_nth_unstable(position);
    Ok(Timing { elapsed, p99: *p99 })
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

/// Sends this number of requests, and fails at the first response that is not 200. Returns the time
/// of each request.
async fn repeat(
    mut connection: Connection,
    mut request: RequestTemplate,
    times: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(times);
    for number in numbers().take(times) {
        let sent = Instant::now();
        connection.send(request.number(number)).await?.ok()?;
        latencies.push(sent.elapsed());
    }
    Ok(latencies)
}

/// Returns numbers that no other connection of this process uses.
fn numbers() -> impl Iterator<Item = u64> {
    static CONNECTIONS_SO_FAR: AtomicU64 = AtomicU64::new(0);
    (CONNECTIONS_SO_FAR.fetch_add(1, Ordering::Relaxed) << 32)..
}
