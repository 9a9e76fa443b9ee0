//! [`Signals`]: what ends the wait of a connection besides its own input and output.

use std::pin::Pin;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Why a connection must be examined.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The server shuts down.
    Draining,
    /// The timer has expired.
    Timer,
}

type SignalFuture = Pin<Box<dyn Future<Output = Signal> + Send>>;

/// The shutdown and the timer of one connection. Each is polled only after it has woken the task,
/// because a connection is polled several times per request, and the signals almost never come.
pub(super) struct Signals(FuturesUnordered<SignalFuture>);

impl Signals {
    /// Waits for the shutdown and this time.
    pub(super) fn new(draining: watch::Receiver<bool>, timer: Instant) -> Self {
        Self(FuturesUnordered::from_iter([
            shutdown(draining),
            until(timer),
        ]))
    }

    /// Waits for this time only: the shutdown has begun.
    pub(super) fn draining_until(timer: Instant) -> Self {
        Self(FuturesUnordered::from_iter([until(timer)]))
    }

    /// Sets the timer again after it has expired.
    pub(super) fn set_timer(&mut self, timer: Instant) {
        self.0.push(until(timer));
    }

    /// Waits for the next signal. `None` if there will be none.
    pub(super) async fn next(&mut self) -> Option<Signal> {
        self.0.next().await
    }
}

fn shutdown(mut draining: watch::Receiver<bool>) -> SignalFuture {
    Box::pin(async move {
        // An error means that the server has ended.
        let _ = draining.wait_for(|draining| *draining).await;
        Signal::Draining
    })
}

fn until(time: Instant) -> SignalFuture {
    Box::pin(async move {
        sleep_until(time).await;
        Signal::Timer
    })
}
