//! [`AuthorizerBuilder`]: what an authorizer needs besides its grant.

use std::sync::Arc;

use portcullis_discovery::{
    Fetch, FetchError, FetchSettings, HttpFetch, RecordingFetch, SentSecrets,
};
use portcullis_metadata::{Clock, SystemClock};

use super::{Authorizer, Mode};
use crate::AuthorizerSettings;

/// Builds an [`Authorizer`].
#[must_use]
pub struct AuthorizerBuilder {
    mode: Mode,
    fetch: Option<Arc<dyn Fetch>>,
    clock: Arc<dyn Clock>,
    settings: AuthorizerSettings,
}

impl AuthorizerBuilder {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            fetch: None,
            clock: Arc::new(SystemClock::new()),
            settings: AuthorizerSettings::default(),
        }
    }

    /// Sets what sends the requests. Default: an [`HttpFetch`] with its default settings.
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// Sets the clock that decides when tokens expire. Default: the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the settings. Default: [`AuthorizerSettings::default`].
    pub fn settings(mut self, settings: AuthorizerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the authorizer.
    ///
    /// # Errors
    /// As [`HttpFetch::new`], without a [`fetch`](Self::fetch).
    pub fn build(self) -> Result<Authorizer, FetchError> {
        let Self {
            mode,
            fetch,
            clock,
            settings,
        } = self;
        let fetch = match fetch {
            Some(fetch) => fetch,
            None => Arc::new(HttpFetch::new(FetchSettings::default())?),
        };
        let sent_secrets = SentSecrets::new();
        let fetch = Arc::new(RecordingFetch::new(fetch, sent_secrets.clone()));
        let (bound, sign_in_limit) = Default::default();
        Ok(Authorizer {
            fetch,
            sent_secrets,
            clock,
            mode,
            settings,
            bound,
            sign_in_limit,
        })
    }
}
