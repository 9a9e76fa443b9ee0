//! [`Load`]: clients that send requests continuously, and their results.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use http::StatusCode;
use parking_lot::Mutex;
use portcullis_discovery::{Fetch as _, FetchResponse, HttpFetch};
use tokio::{task::JoinSet, time::sleep};

use crate::{discovery::bearer_challenge, request};

/// The pause between two requests of one client, which leaves CPU time to others.
const PAUSE: Duration = Duration::from_millis(50);

/// Clients that send requests until this is dropped.
#[derive(Default)]
pub(super) struct Load {
    clients: JoinSet<()>,
    results: Arc<Results>,
}

/// The allowed responses.
#[derive(Clone, Copy)]
pub(super) enum Allowed {
    /// Only success.
    Success,
    /// Also a 401 that does not reject the token: without `error` and with `Retry-After`.
    SuccessOrUnavailable,
}

#[derive(Default)]
struct Results {
    succeeded: AtomicU64,
    unavailable: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// The number of requests that succeeded, and of those that found the issuer unavailable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) succeeded: u64,
    pub(super) unavailable: u64,
}

impl Load {
    /// Adds a client with a token.
    pub(super) fn add(
        &mut self,
        who: &'static str,
        address: SocketAddr,
        token: &str,
        allowed: Allowed,
    ) -> anyhow::Result<()> {
        let fetch = HttpFetch::new(Default::default())?;
        let results = Arc::clone(&self.results);
        let request = request::tool_list(address, token)?;
        self.clients.spawn(async move {
            loop {
                match fetch.fetch(request.clone()).await {
                    Ok(response) => results.add(who, &response, allowed),
                    Err(error) => results.fail(format!("{who}: {error}")),
                }
                sleep(PAUSE).await;
            }
        });
        Ok(())
    }

    pub(super) fn count(&self) -> Count {
        let Results {
            succeeded,
            unavailable,
            ..
        } = self.results.as_ref();
        Count {
            succeeded: succeeded.load(Ordering::Relaxed),
            unavailable: unavailable.load(Ordering::Relaxed),
        }
    }

    /// Waits for this number of further successful requests.
    pub(super) async fn wait_for_successes(&self, more: u64) {
        let enough = self.count().succeeded + more;
        while self.count().succeeded < enough {
            sleep(PAUSE).await;
        }
    }

    /// Fails if a response was not allowed.
    pub(super) fn check(&self) -> anyhow::Result<Count> {
        let failures = self.results.failures.lock();
        let count = self.count();
        ensure!(
            failures.is_empty(),
            "{} requests failed, {count:?}, the first with {}",
            failures.len(),
            failures[0]
        );
        Ok(count)
    }
}

impl Results {
    /// Counts a response.
    fn add(&self, who: &str, response: &FetchResponse, allowed: Allowed) {
        if response.status == StatusCode::OK {
            self.succeeded.fetch_add(1, Ordering::Relaxed);
        } else if matches!(allowed, Allowed::SuccessOrUnavailable) && is_unavailable(response) {
            self.unavailable.fetch_add(1, Ordering::Relaxed);
        } else {
            let challenge = bearer_challenge(&response.headers)
                .ok()
                .and_then(|challenge| challenge.error);
            self.fail(format!("{who}: {} {challenge:?}", response.status));
        }
    }

    fn fail(&self, failure: String) {
        self.failures.lock().push(failure);
    }
}

/// Returns whether a 401 does not reject the token: without `error` and with `Retry-After`.
pub(super) fn is_unavailable(response: &FetchResponse) -> bool {
    response.status == StatusCode::UNAUTHORIZED
        && response.headers.contains_key(http::header::RETRY_AFTER)
        && bearer_challenge(&response.headers).is_ok_and(|challenge| challenge.error.is_none())
}
