use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use portcullis_reason_codes::ReasonCodes;

/// Completes when an end is durable, or known to the other processes. The end is recorded even if
/// the ticket is dropped.
#[derive(Debug)]
pub struct EndTicket(State);

#[derive(Debug)]
enum State {
    Known(Result<(), NotRecorded>),
    Pending(Arc<Pending>),
}

/// Completes an [`EndTicket`]. If it is dropped, the ticket fails.
#[derive(Debug)]
pub struct EndConfirmation(Arc<Pending>);

#[derive(Debug, Default)]
struct Pending(Mutex<Progress>);

#[derive(Debug, Default)]
struct Progress {
    result: Option<Result<(), NotRecorded>>,
    waker: Option<Waker>,
}

/// An end could not be recorded. In this process, the session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[error("the end of a session could not be recorded")]
#[code = "session.end_not_recorded"]
pub struct NotRecorded;

impl EndTicket {
    /// Returns a ticket that is complete.
    pub fn done() -> Self {
        Self(State::Known(Ok(())))
    }

    /// Returns a ticket that has failed.
    pub fn failed() -> Self {
        Self(State::Known(Err(NotRecorded)))
    }

    /// Returns a ticket and its confirmation.
    pub fn pending() -> (EndConfirmation, Self) {
        let pending = Arc::<Pending>::default();
        (
            EndConfirmation(Arc::clone(&pending)),
            Self(State::Pending(pending)),
        )
    }

    /// Returns whether the ticket has completed without a failure.
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Known(result) => result.is_ok(),
            State::Pending(pending) => pending.0.lock().result == Some(Ok(())),
        }
    }
}

impl EndConfirmation {
    /// Completes the ticket.
    pub fn confirm(self) {
        self.0.finish(Ok(()));
    }
}

impl Drop for EndConfirmation {
    fn drop(&mut self) {
        self.0.finish(Err(NotRecorded));
    }
}

impl Future for EndTicket {
    type Output = Result<(), NotRecorded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pending = match &self.0 {
            State::Known(result) => return Poll::Ready(*result),
            State::Pending(pending) => pending,
        };
        let mut progress = pending.0.lock();
        match progress.result {
            Some(result) => Poll::Ready(result),
            None => {
                progress.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Pending {
    /// Sets the result, unless there is one.
    fn finish(&self, result: Result<(), NotRecorded>) {
        let mut progress = self.0.lock();
        progress.result.get_or_insert(result);
        let waker = progress.waker.take();
        drop(progress);
        waker.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12: a ticket completes when its end is confirmed, and fails when the confirmation is
    /// dropped.
    #[tokio::test]
    async fn tickets_follow_their_confirmation() {
        assert_eq!(EndTicket::done().await, Ok(()));
        assert_eq!(EndTicket::failed().await, Err(NotRecorded));
        let (confirmation, ticket) = EndTicket::pending();
        assert!(!ticket.is_done());
        let waiting = tokio::spawn(ticket);
        tokio::task::yield_now().await;
        confirmation.confirm();
        assert_eq!(waiting.await.unwrap(), Ok(()));
        let (confirmation, ticket) = EndTicket::pending();
        drop(confirmation);
        assert_eq!(ticket.await, Err(NotRecorded));
    }
}
