//! Requests without a pause between them, and how they were answered.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchResponse, HttpFetch};
use tokio::{task::JoinSet, time::sleep};

use crate::walks::{discovery::bearer_challenge, request};

/// A pause between two requests of one visitor, so that the machine has time for others.
const PAUSE: Duration = Duration::from_millis(50);

/// Visitors that ask for as long as this lives.
#[derive(Default)]
pub(super) struct Load {
    visitors: JoinSet<()>,
    account: Arc<Account>,
}

/// What may come back.
#[derive(Clone, Copy)]
pub(super) enum Allowed {
    /// Nothing but the answer.
    Answer,
    /// Also a 401 that lets the client keep its token: no `error`, and `Retry-After`.
    AnswerOrLater,
}

#[derive(Default)]
struct Account {
    answered: AtomicU64,
    later: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// How many requests were answered, and how many were put off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) answered: u64,
    pub(super) later: u64,
}

impl Load {
    /// Adds a visitor with a token of its own.
    pub(super) fn add(
        &mut self,
        who: &'static str,
        address: SocketAddr,
        token: &str,
        allowed: Allowed,
    ) -> anyhow::Result<()> {
        let (fetch, account) = (HttpFetch::new(Default::default())?, Arc::clone(&self.account));
        let request = request::tool_list(address, token)?;
        self.visitors.spawn(async move {
            loop {
                match fetch.fetch(request.clone()).await {
                    Ok(answer) => account.enter(who, &answer, allowed),
                    Err(error) => account.fail(format!("{who}: {error}")),
                }
                sleep(PAUSE).await;
            }
        });
        Ok(())
    }

    pub(super) fn count(&self) -> Count {
        let Account { answered, later, .. } = self.account.as_ref();
        Count { answered: answered.load(Ordering::Relaxed), later: later.load(Ordering::Relaxed) }
    }

    /// Waits until so many more were answered.
    pub(super) async fn answers(&self, more: u64) {
        let enough = self.count().answered + more;
        while self.count().answered < enough {
            sleep(PAUSE).await;
        }
    }

    /// Fails when an answer was one that is not allowed.
    pub(super) fn check(&self) -> anyhow::Result<Count> {
        let failures = self.account.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.count();
        ensure!(failures.is_empty(), "{} requests failed beside {count:?}, first {}", failures.len(), failures[0]);
        Ok(count)
    }
}

impl Account {
    fn enter(&self, who: &str, answer: &FetchResponse, allowed: Allowed) {
        if answer.status == StatusCode::OK {
            self.answered.fetch_add(1, Ordering::Relaxed);
        } else if matches!(allowed, Allowed::AnswerOrLater) && is_later(answer) {
            self.later.fetch_add(1, Ordering::Relaxed);
        } else {
            let challenge = bearer_challenge(&answer.headers).ok().and_then(|challenge| challenge.error);
            self.fail(format!("{who}: {} {challenge:?}", answer.status));
        }
    }

    fn fail(&self, failure: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

/// Whether a refusal leaves the token's worth open.
pub(super) fn is_later(answer: &FetchResponse) -> bool {
    answer.status == StatusCode::UNAUTHORIZED
        && answer.headers.contains_key(http::header::RETRY_AFTER)
        && bearer_challenge(&answer.headers).is_ok_and(|challenge| challenge.error.is_none())
}
