//! The time that an upstream takes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use pin_project_lite::pin_project;

use super::WorkerMetrics;

pin_project! {
    /// A request to an upstream whose time is counted, if there are metrics. A cancelled request is not counted.
    pub(crate) struct Measured<F> {
        #[pin]
        future: F,
        started: Option<(Instant, Arc<WorkerMetrics>)>,
    }
}

impl<F> Measured<F> {
    pub(crate) fn new(future: F, metrics: Option<&Arc<WorkerMetrics>>) -> Self {
        Self { future, started: metrics.map(|metrics| (Instant::now(), Arc::clone(metrics))) }
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        if let Some((started, metrics)) = this.started.take() {
            metrics.answered(started.elapsed());
        }
        Poll::Ready(output)
    }
}
