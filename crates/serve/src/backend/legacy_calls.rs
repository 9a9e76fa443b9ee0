//! Requests of legacy clients. They continue at the upstream when the client disconnects, and can
//! be resumed if the upstream allows it (MCP 2025-11-25, Transports, Sending Messages). Modern
//! requests end with their client.

mod response;

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use portcullis_endpoint::Admitted;
use portcullis_gateway::UpstreamFuture;
use portcullis_guard::Caller;
use portcullis_mcp::Era;
use portcullis_session::CapacityPermit;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};

pub(crate) use response::{LegacyBody, LegacyFuture};

/// How long a request continues without its client.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// The requests of one session that continue at once. Further ones end with their client.
const MAX_PER_SESSION: usize = 16;
/// The requests of one resource that continue at once.
const MAX_TOTAL: usize = 1024;
/// How long a request that resumes a stream, or ends the session, waits for the end of the requests
/// before it.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The requests of one resource that continue without their clients.
pub(crate) struct LegacyCalls {
    /// The header with the upstream's session identifier.
    header: HeaderName,
    continued: Mutex<Continued>,
}

#[derive(Default)]
struct Continued {
    /// The requests by the upstream's session.
    sessions: HashMap<HeaderValue, Vec<Call>>,
    total: usize,
    next_number: u64,
}

/// A request that continues without its client.
struct Call {
    number: u64,
    task: AbortHandle,
    /// Completes when the request has ended.
    ended: oneshot::Receiver<()>,
}

/// The permission to continue one request.
struct Continuation {
    calls: Arc<LegacyCalls>,
    session: HeaderValue,
    /// Whose limit of requests in progress the request still counts for.
    caller: Caller,
}

impl LegacyCalls {
    pub(crate) fn new(header: HeaderName) -> Arc<Self> {
        Arc::new(Self {
            header,
            continued: Mutex::default(),
        })
    }

    /// Forwards a request. A POST of a legacy revision continues if the client disconnects, except
    /// those that open a session, for which
    /// [`InitializeCalls`](crate::sessions::initialize::InitializeCalls) exists.
    pub(crate) fn start(
        self: &Arc<Self>,
        admitted: Admitted,
        forward: impl FnOnce(Admitted) -> UpstreamFuture,
    ) -> LegacyFuture {
        let may_continue = admitted.method() == Method::POST
            && matches!(admitted.era(), Era::Legacy { .. })
            && admitted.extensions().get::<CapacityPermit>().is_none();
        let continuation = may_continue.then(|| {
            let session = admitted.headers().get(&self.header).cloned();
            // Without a session of the upstream, no other request belongs to the same one.
            let session =
                session.unwrap_or_else(|| admitted.caller().request_id().to_header_value());
            Continuation {
                calls: Arc::clone(self),
                session,
                caller: admitted.caller().clone(),
            }
        });
        LegacyFuture::new(forward(admitted), continuation)
    }

    /// Takes the continued requests of a session that must end before this request is forwarded: it
    /// resumes a stream, which has one reader at a time, or ends the session.
    pub(crate) fn superseded_by(&self, admitted: &Admitted) -> Option<Superseded> {
        let supersedes = match *admitted.method() {
            Method::GET => admitted.headers().contains_key("last-event-id"),
            ref method => method == Method::DELETE,
        };
        if !supersedes {
            return None;
        }
        let session = admitted.headers().get(&self.header)?;
        let mut continued = self.continued.lock();
        let calls = continued.sessions.remove(session)?;
        continued.total -= calls.len();
        Some(Superseded(calls))
    }

    /// Continues a request on the current runtime. At a limit, or without a runtime, the request
    /// ends.
    fn add(self: Arc<Self>, session: HeaderValue, call: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let all = Arc::clone(&self);
        let mut continued = all.continued.lock();
        let in_session = continued.sessions.get(&session).map_or(0, Vec::len);
        if continued.total >= MAX_TOTAL || in_session >= MAX_PER_SESSION {
            tracing::debug!("too many requests continue without their clients; one more ends");
            return;
        }
        let number = continued.next_number;
        continued.next_number += 1;
        continued.total += 1;
        let (ending, ended) = oneshot::channel();
        let key = session.clone();
        let task = runtime.spawn(async move {
            // Dropped after the call, even if the task is aborted.
            let _ending: oneshot::Sender<()> = ending;
            if timeout(CONTINUE_TIMEOUT, call).await.is_err() {
                tracing::debug!("a request without its client ends after the time limit");
            }
            self.remove(&session, number);
        });
        continued.sessions.entry(key).or_default().push(Call {
            number,
            task: task.abort_handle(),
            ended,
        });
    }

    fn remove(&self, session: &HeaderValue, number: u64) {
        let mut continued = self.continued.lock();
        let Some(calls) = continued.sessions.get_mut(session) else {
            return;
        };
        let Some(position) = calls.iter().position(|call| call.number == number) else {
            return;
        };
        calls.swap_remove(position);
        if calls.is_empty() {
            continued.sessions.remove(session);
        }
        continued.total -= 1;
    }
}

impl Continuation {
    /// Continues a request, which still counts as one in progress of its caller.
    fn run(self, call: impl Future<Output = ()> + Send + 'static) {
        let Self {
            calls,
            session,
            caller,
        } = self;
        let counted = caller.continue_request();
        calls.add(session, async move {
            call.await;
            drop(counted);
        });
    }
}

/// Continued requests that must end.
pub(crate) struct Superseded(Vec<Call>);

impl Superseded {
    /// Ends the requests, and waits for their end, all together at most [`END_TIMEOUT`].
    pub(crate) async fn end(self) {
        let deadline = Instant::now() + END_TIMEOUT;
        self.0.iter().for_each(|call| call.task.abort());
        for call in self.0 {
            // The sender is never used: an error of the receiver means that the request has ended.
            let _ = timeout_at(deadline, call.ended).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn continued(
        calls: &Arc<LegacyCalls>,
        session: &'static str,
        call: impl Future<Output = ()> + Send + 'static,
    ) {
        Arc::clone(calls).add(HeaderValue::from_static(session), call);
    }

    fn total(calls: &LegacyCalls) -> (usize, usize) {
        let continued = calls.continued.lock();
        (continued.total, continued.sessions.len())
    }

    /// L4: a request that has ended, or has taken too long, leaves nothing behind.
    #[tokio::test(start_paused = true)]
    async fn requests_end() {
        let calls = LegacyCalls::new(HeaderName::from_static("mcp-session-id"));
        continued(&calls, "a", async {});
        continued(&calls, "a", pending());
        assert_eq!(total(&calls), (2, 1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(total(&calls), (1, 1));
        tokio::time::sleep(CONTINUE_TIMEOUT).await;
        assert_eq!(total(&calls), (0, 0));
    }

    /// L4: one time limit applies to all requests that are waited for.
    #[tokio::test(start_paused = true)]
    async fn the_wait_for_ended_requests_is_bounded() {
        let runtime = Handle::current();
        let (senders, calls): (Vec<_>, Vec<_>) = (0..MAX_PER_SESSION as u64)
            .map(|number| {
                let (sender, ended) = oneshot::channel();
                (
                    sender,
                    Call {
                        number,
                        task: runtime.spawn(async {}).abort_handle(),
                        ended,
                    },
                )
            })
            .unzip();
        let started = Instant::now();
        Superseded(calls).end().await;
        assert_eq!(started.elapsed(), END_TIMEOUT);
        drop(senders);
    }

    /// L4: the requests that continue are bounded for each session and in total.
    #[tokio::test]
    async fn requests_are_bounded() {
        let calls = LegacyCalls::new(HeaderName::from_static("mcp-session-id"));
        for _ in 0..=MAX_PER_SESSION {
            continued(&calls, "a", pending());
        }
        assert_eq!(total(&calls), (MAX_PER_SESSION, 1));
        for number in 0..MAX_TOTAL {
            Arc::clone(&calls).add(HeaderValue::from(number), pending());
        }
        assert_eq!(total(&calls).0, MAX_TOTAL);
    }
}
