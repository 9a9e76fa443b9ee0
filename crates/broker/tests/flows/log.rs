//! [`Log`]: the log of a test.

use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{self, DefaultGuard},
};

/// The log of this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Records the log of this thread until the guard is dropped.
    pub(crate) fn here() -> (Self, DefaultGuard) {
        // With one dispatcher, `tracing` would ask only the first thread whether an event is
        // enabled.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));
        LazyLock::force(&SECOND);
        let log = Self::default();
        (log.clone(), subscriber::set_default(log))
    }

    /// Returns all lines so far. Those of events begin with their level.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut line = Line(String::new());
        span.record(&mut line);
        self.0.lock().push(line.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
