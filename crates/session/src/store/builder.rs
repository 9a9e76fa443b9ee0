//! [`SessionStoreBuilder`]: what a store needs besides its settings.

use std::sync::Arc;

use portcullis_metadata::{Clock, SystemClock};

use super::SessionStore;
use crate::{
    ends::EndsLimits, journal::SessionJournal, observer::SessionObserver, settings::SessionSettings,
};

/// Builds a [`SessionStore`].
pub struct SessionStoreBuilder {
    settings: SessionSettings,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn SessionObserver>,
    journal: Arc<dyn SessionJournal>,
}

impl SessionStoreBuilder {
    pub(super) fn new(settings: SessionSettings) -> Self {
        Self {
            settings,
            clock: Arc::new(SystemClock::new()),
            observer: Arc::new(()),
            journal: Arc::new(()),
        }
    }

    /// Sets the clock. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets what is told about opened and ended sessions. Default: nothing.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn SessionObserver>) -> Self {
        self.observer = observer;
        self
    }

    /// Sets what keeps ends and last uses outside this process. Default: nothing.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn SessionJournal>) -> Self {
        self.journal = journal;
        self
    }

    /// Returns the store, which is empty.
    pub fn build(self) -> SessionStore {
        self.with_limits(EndsLimits::DEFAULT)
    }

    /// Returns the store with other limits of remembered ends.
    pub(super) fn with_limits(self, limits: EndsLimits) -> SessionStore {
        let Self {
            settings,
            clock,
            observer,
            journal,
        } = self;
        SessionStore::new(settings, clock, observer, journal, limits)
    }
}
