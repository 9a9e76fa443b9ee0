//! [`VerifierBuilder`]: a verifier with the defaults of `portcullis serve`.

mod error;

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use portcullis_discovery::{Fetch, FetchSettings, HttpFetch};
use portcullis_metadata::{
    Clock, Issuer, ResourceUri, SystemClock, syntax::is_https_or_loopback_http,
};
use tokio::{
    runtime::Handle,
    time::{MissedTickBehavior, interval},
};

pub use self::error::VerifierBuilderError;
use crate::{
    issuer::TrustedIssuer,
    settings::IssuerSettings,
    verify::{Verifier, VerifierSettings},
};

/// How often introspected tokens that are watched are checked again if they are due.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Expired tokens are removed from the cache at every tenth recheck: every 5 s.
const RECHECKS_PER_SWEEP: u64 = 10;

impl Verifier {
    /// Starts a builder for a verifier of the access tokens of `resource`, an absolute URL as
    /// clients write it.
    ///
    /// ```
    /// use portcullis_verifier::Verifier;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let verifier = Verifier::builder("https://api.example.com/").issuer("https://auth.example.com").build()?;
    /// assert_eq!(verifier.resource().as_str(), "https://api.example.com/");
    ///
    /// let error = Verifier::builder("https://api.example.com/").build().unwrap_err();
    /// assert_eq!(error.code(), "settings.no_issuer");
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(resource: impl Into<String>) -> VerifierBuilder {
        VerifierBuilder {
            resource: resource.into(),
            issuers: Vec::new(),
            max_token_bytes: None,
            cache_entries: None,
            fetch: None,
            clock: None,
            runtime: None,
        }
    }
}

/// Builds a [`Verifier`] and its issuers. [`Verifier::builder`] creates it.
///
/// Without further settings the verifier behaves as in `portcullis serve`: the issuer's keys are
/// discovered and fetched over HTTP, tokens are verified by signature with RS256, and the system's
/// clock is used. `build` starts the background refresh of the keys. The refresh stops when the
/// last reference to the verifier is dropped.
///
/// The verifier does not check scopes. For the options of one issuer, such as introspection or
/// other algorithms, see [`issuer_settings`](Self::issuer_settings).
#[must_use = "a builder does nothing until `build` is called"]
pub struct VerifierBuilder {
    resource: String,
    issuers: Vec<IssuerSource>,
    max_token_bytes: Option<usize>,
    cache_entries: Option<usize>,
    fetch: Option<Arc<dyn Fetch>>,
    clock: Option<Arc<dyn Clock>>,
    runtime: Option<Handle>,
}

/// An issuer as it was given to the builder.
enum IssuerSource {
    /// An issuer identifier, not parsed yet.
    Identifier(String),
    Settings(Box<IssuerSettings>),
    /// An issuer that exists already.
    Trusted(Arc<TrustedIssuer>),
}

impl VerifierBuilder {
    /// Accepts the tokens of one more issuer, with the default [`IssuerSettings`]. The issuer
    /// identifier must be an `https` URL, or `http` with a loopback host, and must be equal byte
    /// for byte to the `iss` of the issuer's tokens.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(IssuerSource::Identifier(issuer.into()));
        self
    }

    /// Accepts the tokens of one more issuer, with these settings.
    pub fn issuer_settings(mut self, settings: IssuerSettings) -> Self {
        self.issuers
            .push(IssuerSource::Settings(Box::new(settings)));
        self
    }

    /// Accepts the tokens of an issuer that exists already, so that several verifiers share its
    /// keys. Its own fetcher, clock and runtime are used for it.
    pub fn trusted_issuer(mut self, issuer: Arc<TrustedIssuer>) -> Self {
        self.issuers.push(IssuerSource::Trusted(issuer));
        self
    }

    /// Sets the maximum length of a token in bytes. Longer tokens are rejected before they are
    /// parsed. Default: 16 KiB.
    pub fn max_token_bytes(mut self, bytes: usize) -> Self {
        self.max_token_bytes = Some(bytes);
        self
    }

    /// Sets the number of verified tokens that are cached; 0 disables the cache. Default: 10,000.
    pub fn cache_entries(mut self, entries: usize) -> Self {
        self.cache_entries = Some(entries);
        self
    }

    /// Sets how keys and metadata are fetched, for example an [`HttpFetch`] with a CA file or
    /// proxy. Default: [`HttpFetch`] with the default [`FetchSettings`].
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// Sets the clock. Default: [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the tokio runtime that fetches run on. It must outlive the verifier and have time and
    /// I/O enabled. Default: the runtime that `build` is called on.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the verifier and starts the background refresh of its issuers' keys. It does not wait
    /// for a fetch: until the first one completes, requests wait for it for at most 5 s.
    ///
    /// # Errors
    /// Fails if the resource or an issuer is not a valid identifier or is plain `http` outside
    /// loopback, if there is no issuer, if an issuer is given twice or its settings cannot be used,
    /// or outside a tokio runtime. The message names the method to correct.
    pub fn build(self) -> Result<Arc<Verifier>, VerifierBuilderError> {
        let resource = parse_resource(self.resource)?;
        if self.issuers.is_empty() {
            return Err(VerifierBuilderError::NoIssuer);
        }
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => Handle::try_current().map_err(|_| VerifierBuilderError::NoRuntime)?,
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let fetch = match self.fetch {
            Some(fetch) => fetch,
            None => Arc::new(
                HttpFetch::new(FetchSettings::default()).map_err(VerifierBuilderError::Fetch)?,
            ),
        };
        let trusted = |settings| {
            TrustedIssuer::new(
                settings,
                Arc::clone(&fetch),
                Arc::clone(&clock),
                runtime.clone(),
            )
        };
        let mut issuers = Vec::with_capacity(self.issuers.len());
        for source in self.issuers {
            issuers.push(match source {
                IssuerSource::Identifier(text) => {
                    trusted(IssuerSettings::new(parse_issuer(text)?))?
                }
                IssuerSource::Settings(settings) => trusted(*settings)?,
                IssuerSource::Trusted(issuer) => issuer,
            });
        }
        let mut settings = VerifierSettings::new(resource);
        settings.max_token_bytes = self.max_token_bytes.unwrap_or(settings.max_token_bytes);
        settings.cache_entries = self.cache_entries.unwrap_or(settings.cache_entries);
        let verifier = Verifier::new(settings, issuers, clock)?;
        verifier
            .issuers()
            .iter()
            .for_each(TrustedIssuer::spawn_refresh);
        runtime.spawn(maintain(Arc::downgrade(&verifier)));
        Ok(verifier)
    }
}

impl fmt::Debug for VerifierBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifierBuilder")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

/// Parses the resource, which must be `https`, or `http` with a loopback host.
fn parse_resource(text: String) -> Result<ResourceUri, VerifierBuilderError> {
    match ResourceUri::parse(&text) {
        Ok(resource) if is_https_or_loopback_http(resource.url()) => Ok(resource),
        Ok(_) => Err(VerifierBuilderError::InsecureResource(text)),
        Err(reason) => Err(VerifierBuilderError::Resource {
            resource: text,
            reason,
        }),
    }
}

/// Parses an issuer identifier, which must be `https`, or `http` with a loopback host.
fn parse_issuer(text: String) -> Result<Issuer, VerifierBuilderError> {
    Issuer::parse(&text).map_err(|reason| VerifierBuilderError::Issuer {
        issuer: text,
        reason,
    })
}

/// Checks watched tokens again and removes expired ones from the cache, until the verifier is
/// dropped.
async fn maintain(verifier: Weak<Verifier>) {
    let mut ticks = interval(RECHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 1_u64.. {
        ticks.tick().await;
        let Some(verifier) = verifier.upgrade() else {
            return;
        };
        verifier
            .issuers()
            .iter()
            .for_each(|issuer| issuer.start_due_rechecks());
        if tick % RECHECKS_PER_SWEEP == 0 {
            verifier.sweep();
        }
    }
}

#[cfg(test)]
mod tests;
