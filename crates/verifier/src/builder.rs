//! [`VerifierBuilder`]: a verifier with the defaults of `portcullis serve`.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use portcullis_discovery::{Fetch, FetchError, FetchSettings, HttpFetch};
use portcullis_metadata::{
    Clock, Issuer, IssuerError, ResourceUri, ResourceUriError, SystemClock, is_https_or_loopback_http,
};
use tokio::{
    runtime::Handle,
    time::{MissedTickBehavior, interval},
};

use crate::{IssuerSettings, TrustedIssuer, Verifier, VerifierSettings, VerifierSettingsError};

/// How often introspected tokens that are watched are checked again if they are due.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Expired tokens are removed from the cache at every tenth recheck: every 5 s.
const RECHECKS_PER_SWEEP: u64 = 10;

impl Verifier {
    /// Starts a builder for a verifier of the access tokens of `resource`, an absolute URL as clients write it.
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
/// Without further settings the verifier behaves as in `portcullis serve`: the issuer's keys are discovered and fetched
/// over HTTP, tokens are verified by signature with RS256, and the system's clock is used. `build` starts the
/// background refresh of the keys. The refresh stops when the last reference to the verifier is dropped.
///
/// The verifier does not check scopes. For the options of one issuer, such as introspection or other algorithms, see
/// [`issuer_settings`](Self::issuer_settings).
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

enum IssuerSource {
    Identifier(String),
    Settings(Box<IssuerSettings>),
    Trusted(Arc<TrustedIssuer>),
}

impl VerifierBuilder {
    /// Accepts the tokens of one more issuer, with the default [`IssuerSettings`]. The issuer identifier must be an
    /// `https` URL, or `http` with a loopback host, and must be equal byte for byte to the `iss` of the issuer's
    /// tokens.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(IssuerSource::Identifier(issuer.into()));
        self
    }

    /// Accepts the tokens of one more issuer, with these settings.
    pub fn issuer_settings(mut self, settings: IssuerSettings) -> Self {
        self.issuers.push(IssuerSource::Settings(Box::new(settings)));
        self
    }

    /// Accepts the tokens of an issuer that exists already, so that several verifiers share its keys. Its own fetcher,
    /// clock and runtime are used for it.
    pub fn trusted_issuer(mut self, issuer: Arc<TrustedIssuer>) -> Self {
        self.issuers.push(IssuerSource::Trusted(issuer));
        self
    }

    /// Sets the largest token in bytes. Default: 16 KiB.
    pub fn max_token_bytes(mut self, bytes: usize) -> Self {
        self.max_token_bytes = Some(bytes);
        self
    }

    /// Sets the number of verified tokens that are cached; 0 disables the cache. Default: 10,000.
    pub fn cache_entries(mut self, entries: usize) -> Self {
        self.cache_entries = Some(entries);
        self
    }

    /// Sets how keys and metadata are fetched, for example an [`HttpFetch`] with a CA file or proxy. Default:
    /// [`HttpFetch`] with the default [`FetchSettings`].
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// Sets the clock. Default: [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the tokio runtime that fetches run on. It must outlive the verifier and have time and I/O enabled. Default:
    /// the runtime that `build` is called on.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the verifier and starts the background refresh of its issuers' keys. It does not wait for a fetch: until
    /// the first one completes, requests wait for it for at most 5 s.
    ///
    /// # Errors
    /// Fails if the resource or an issuer is not a valid identifier or is plain `http` outside loopback, if there is no
    /// issuer, if an issuer is given twice or its settings cannot be used, or outside a tokio runtime. The message
    /// names the method to correct.
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
            None => Arc::new(HttpFetch::new(FetchSettings::default()).map_err(VerifierBuilderError::Fetch)?),
        };
        let trusted = |settings| {
            TrustedIssuer::new(settings, Arc::clone(&fetch), Arc::clone(&clock), runtime.clone())
                .map_err(VerifierBuilderError::from)
        };
        let issuers: Vec<_> = self
            .issuers
            .into_iter()
            .map(|source| match source {
                IssuerSource::Identifier(text) => trusted(IssuerSettings::new(parse_issuer(text)?)),
                IssuerSource::Settings(settings) => trusted(*settings),
                IssuerSource::Trusted(issuer) => Ok(issuer),
            })
            .collect::<Result<_, _>>()?;

        let mut settings = VerifierSettings::new(resource);
        settings.max_token_bytes = self.max_token_bytes.unwrap_or(settings.max_token_bytes);
        settings.cache_entries = self.cache_entries.unwrap_or(settings.cache_entries);
        let verifier = Verifier::new(settings, issuers, clock)?;
        verifier.issuers().iter().for_each(TrustedIssuer::spawn_refresh);
        runtime.spawn(maintain(Arc::downgrade(&verifier)));
        Ok(verifier)
    }
}

impl fmt::Debug for VerifierBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifierBuilder").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// Why a [`VerifierBuilder`] cannot build a verifier. The message names the builder's method and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierBuilderError {
    /// The resource is not a valid resource identifier (RFC 8707 section 2).
    #[error(
        "Verifier::builder({resource:?}): {reason}; pass the URL that clients use, such as https://api.example.com/"
    )]
    Resource {
        /// The string that was passed.
        resource: String,
        /// The reason why the identifier is invalid.
        reason: ResourceUriError,
    },
    /// The resource is plain `http` on a host other than loopback (RFC 9728 section 1.2).
    #[error("Verifier::builder({0:?}): plain http is accepted for loopback hosts only; pass an https URL")]
    InsecureResource(String),
    /// There is no issuer.
    #[error("no issuer; call issuer(\"https://…\") with the issuer identifier of your authorization server")]
    NoIssuer,
    /// An issuer is not a valid issuer identifier (RFC 8414 section 2), or is plain `http` on a host other than
    /// loopback.
    #[error("issuer({issuer:?}): {reason}; pass the issuer as the authorization server's metadata writes it")]
    Issuer {
        /// The string that was passed.
        issuer: String,
        /// The reason why the identifier is invalid.
        reason: IssuerError,
    },
    /// `build` was called outside a tokio runtime.
    #[error("no tokio runtime; call build() inside one, or pass its handle with runtime(handle)")]
    NoRuntime,
    /// The default fetcher cannot be created.
    #[error("the default fetcher cannot be created: {0}; pass another one with fetch(…)")]
    Fetch(FetchError),
    /// The settings of an issuer, or all of them together, cannot be used.
    #[error(transparent)]
    Settings(#[from] VerifierSettingsError),
}

impl VerifierBuilderError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Resource { reason, .. } => reason.code(),
            Self::InsecureResource(_) => "settings.insecure_resource",
            Self::NoIssuer => "settings.no_issuer",
            Self::Issuer { reason, .. } => reason.code(),
            Self::NoRuntime => "settings.no_runtime",
            Self::Fetch(error) => error.code(),
            Self::Settings(error) => error.code(),
        }
    }
}

fn parse_resource(text: String) -> Result<ResourceUri, VerifierBuilderError> {
    match ResourceUri::parse(&text) {
        Ok(resource) if is_https_or_loopback_http(resource.url()) => Ok(resource),
        Ok(_) => Err(VerifierBuilderError::InsecureResource(text)),
        Err(reason) => Err(VerifierBuilderError::Resource { resource: text, reason }),
    }
}

fn parse_issuer(text: String) -> Result<Issuer, VerifierBuilderError> {
    Issuer::parse(&text).map_err(|reason| VerifierBuilderError::Issuer { issuer: text, reason })
}

/// Checks watched tokens again and removes expired ones from the cache, until the verifier is dropped.
async fn maintain(verifier: Weak<Verifier>) {
    let mut ticks = interval(RECHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 1_u64.. {
        ticks.tick().await;
        let Some(verifier) = verifier.upgrade() else { return };
        verifier.issuers().iter().for_each(|issuer| issuer.start_due_rechecks());
        if tick % RECHECKS_PER_SWEEP == 0 {
            verifier.sweep();
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::AccessToken;
    use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};

    use super::*;

    const RESOURCE: &str = "https://mcp.example.com/mcp";
    const ISSUER: &str = "https://auth.example.com";

    fn code(builder: VerifierBuilder) -> &'static str {
        builder.build().unwrap_err().code()
    }

    /// Waits until the background refresh has had every opportunity to fetch.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    /// C10: the keys are fetched before the first token arrives and refreshed later; the refresh stops when the
    /// verifier is dropped.
    #[tokio::test(start_paused = true)]
    async fn the_refresh_starts_by_itself_and_stops_on_drop() {
        let (issuer, fetch) = (TestIssuer::new(ISSUER), ScriptedFetch::new());
        fetch.publish(&issuer);
        let clock = Arc::new(ManualClock::new());
        let builder = Verifier::builder(RESOURCE).issuer(ISSUER).fetch(Arc::new(fetch.clone())).clock(clock);
        let verifier = builder.build().unwrap();
        settle().await;
        let fetched = fetch.urls().len();
        assert!(fetched > 0, "nothing was fetched");
        let token = AccessToken::new(issuer.token().sign());
        assert_eq!(verifier.verify(&token).await.unwrap().principal().subject(), Some("alice"));
        assert_eq!(fetch.urls().len(), fetched);

        tokio::time::sleep(Duration::from_secs(15 * 60)).await;
        let refreshed = fetch.urls().len();
        assert!(refreshed > fetched, "the keys were not refreshed");

        drop(verifier);
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        assert_eq!(fetch.urls().len(), refreshed, "the refresh did not stop");
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    }

    /// Without a valid resource and at least one valid issuer there is no verifier.
    #[tokio::test]
    async fn incomplete_or_insecure_arguments_do_not_build() {
        let builder = || Verifier::builder(RESOURCE);
        assert_eq!(code(builder()), "settings.no_issuer");
        assert_eq!(code(builder().issuer("auth.example.com")), "issuer.not_a_url");
        assert_eq!(code(builder().issuer("http://auth.example.com")), "issuer.insecure_scheme");
        assert_eq!(code(builder().issuer(ISSUER).issuer(ISSUER)), "settings.duplicate_issuer");
        assert_eq!(code(Verifier::builder("").issuer(ISSUER)), "resource.not_a_url");
        assert_eq!(code(Verifier::builder("http://mcp.example.com/").issuer(ISSUER)), "settings.insecure_resource");
        let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
        settings.leeway = Duration::from_secs(3600);
        assert_eq!(code(builder().issuer_settings(settings)), "settings.leeway_too_long");
        assert!(Verifier::builder("http://localhost:3000/").issuer("http://127.0.0.1:4000").build().is_ok());
    }

    /// The messages name the method to correct.
    #[test]
    fn errors_name_the_fix() {
        let message = |builder: VerifierBuilder| builder.build().unwrap_err().to_string();
        let builder = || Verifier::builder(RESOURCE);
        assert!(message(builder()).contains("call issuer("));
        assert!(message(builder().issuer(ISSUER)).contains("runtime(handle)"), "outside a runtime");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let insecure = builder().issuer("http://auth.example.com").runtime(runtime.handle().clone());
        assert!(message(insecure).starts_with("issuer(\"http://auth.example.com\"): "));
        assert!(builder().issuer(ISSUER).runtime(runtime.handle().clone()).build().is_ok());
    }

    /// Settings of an issuer and limits reach the verifier, and verifiers can share an issuer.
    #[tokio::test]
    async fn settings_reach_the_verifier() {
        let first = Verifier::builder(RESOURCE)
            .issuer_settings(IssuerSettings::new(Issuer::parse(ISSUER).unwrap()))
            .max_token_bytes(10)
            .cache_entries(0)
            .fetch(Arc::new(ScriptedFetch::new()))
            .build()
            .unwrap();
        let error = first.verify(&AccessToken::new("12345678901")).await.unwrap_err();
        assert_eq!(error.code(), "token.too_large");
        let shared = Arc::clone(&first.issuers()[0]);
        let second = Verifier::builder("https://api.example.com/").trusted_issuer(shared).build().unwrap();
        assert!(Arc::ptr_eq(&first.issuers()[0], &second.issuers()[0]));
    }
}
