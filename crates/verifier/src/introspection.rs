//! [`IntrospectionClient`]: introspects the tokens of an issuer (RFC 7662).

mod error;
mod probe;
mod request;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use portcullis_discovery::{Fetch, UrlPolicy};
use portcullis_metadata::{
    AccessToken, AuthorizationServerMetadata, IntrospectionResponse, syntax::url_without_secrets,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore, SemaphorePermit},
    time::{Instant, timeout, timeout_at},
};
use url::Url;

use super::issuer::{
    call_counter::{CallCounter, CallCounts},
    refresh_error::RefreshError,
    server_metadata::ServerMetadata,
};
use crate::{
    error::VerifyError,
    settings::{
        IntrospectionAuthentication, IntrospectionSettings, IssuerSettings, VerifierSettingsError,
    },
    single_flight::{Joined, SingleFlight},
    token_hash::{TokenHash, TokenHashKey},
};
pub(super) use error::CLIENT_REJECTED;
use error::CallError;
pub use request::{introspection_request, rejects_client};

/// The maximum duration of one call. A waiting request has a deadline of its own.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum duration of the discovery of the endpoint.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// The `retry_after` of a failed call. An endpoint that fails is often starting again.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The maximum number of requests that wait for calls, or for the discovery of the endpoint. Each
/// holds its head and its task.
const MAX_WAITING: usize = 512;

type CallResult = Result<Arc<IntrospectionResponse>, CallError>;

/// Introspects the tokens of one issuer.
///
/// Calls run on the control runtime, at most one per token and a bounded number in total. A call
/// completes even if no request waits for it any more. Responses are not cached here.
pub(crate) struct IntrospectionClient {
    issuer: IssuerSettings,
    settings: IntrospectionSettings,
    /// `None` until it is discovered, and while the metadata names no usable one.
    endpoint: ArcSwapOption<Endpoint>,
    /// `None` if the endpoint is configured.
    metadata: Option<Arc<ServerMetadata>>,
    hash_key: TokenHashKey,
    running: Arc<SingleFlight<(TokenHash, CallState), CallResult>>,
    /// The requests that may still wait. Their number, unlike that of the calls, is not bounded by
    /// different tokens.
    waiting: Semaphore,
    last_failure: Mutex<Option<&'static str>>,
    calls_made: CallCounter,
    /// Whether the endpoint rejected this client at the last probe.
    is_client_rejected: AtomicBool,
    /// Notifies the background refresh of rejected calls.
    rejections: Arc<Notify>,
    fetch: Arc<dyn Fetch>,
    control: Handle,
}

/// What was known of a token when its call began. A request with another state does not join the
/// call, because the token may have been dropped since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallState {
    /// The generation of the issuer's keys.
    pub(crate) generation: u64,
    /// The number of the introspection, which changes when another process finds the token
    /// inactive.
    pub(crate) number: u64,
}

/// The introspection endpoint, and how the client authenticates there.
pub(crate) struct Endpoint {
    url: Url,
    policy: UrlPolicy,
    authentication: IntrospectionAuthentication,
}

impl IntrospectionClient {
    /// Creates a client. Without a configured endpoint it is not [ready](Self::is_ready) until
    /// [`discover_endpoint`](Self::discover_endpoint) has succeeded. Fails if the random number
    /// generator fails.
    pub(crate) fn new(
        issuer: &IssuerSettings,
        settings: &IntrospectionSettings,
        metadata: &Arc<ServerMetadata>,
        fetch: Arc<dyn Fetch>,
        control: Handle,
    ) -> Result<Arc<Self>, VerifierSettingsError> {
        let configured = settings.endpoint.clone().map(|url| {
            let authentication = settings.method(None);
            Arc::new(Endpoint {
                url,
                policy: issuer.url_policy,
                authentication,
            })
        });
        Ok(Arc::new(Self {
            metadata: configured.is_none().then(|| Arc::clone(metadata)),
            endpoint: ArcSwapOption::new(configured),
            hash_key: TokenHashKey::generate().map_err(|_| VerifierSettingsError::Random)?,
            running: SingleFlight::new(settings.max_in_flight),
            waiting: Semaphore::new(MAX_WAITING),
            last_failure: Mutex::new(None),
            calls_made: CallCounter::default(),
            is_client_rejected: AtomicBool::new(false),
            rejections: Arc::default(),
            issuer: issuer.clone(),
            settings: settings.clone(),
            fetch,
            control,
        }))
    }

    /// Returns whether the endpoint is known.
    pub(crate) fn is_ready(&self) -> bool {
        self.endpoint.load().is_some()
    }

    /// Returns whether the endpoint is discovered, not configured.
    pub(crate) fn is_discovered(&self) -> bool {
        self.metadata.is_some()
    }

    /// Returns the code of the last call's error, if it failed.
    pub(crate) fn last_failure(&self) -> Option<&'static str> {
        *self.last_failure.lock()
    }

    /// Returns the number of calls, and of those that failed.
    pub(crate) fn counts(&self) -> CallCounts {
        self.calls_made.get()
    }

    /// Discovers the endpoint. If the metadata cannot be fetched, the current endpoint remains in
    /// use. If the metadata names no usable endpoint, the current one is removed. Fails if the
    /// metadata cannot be fetched within 10 s or names no usable endpoint. A configured endpoint
    /// never fails.
    pub(crate) async fn discover_endpoint(&self) -> Result<(), RefreshError> {
        let Some(metadata) = &self.metadata else {
            return Ok(());
        };
        let found = match timeout(DISCOVERY_TIMEOUT, metadata.get()).await {
            Ok(Ok(document)) => self.usable_endpoint(metadata, &document).await,
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(RefreshError::Timeout),
        };
        let (endpoint, result) = match found {
            Ok(endpoint) => (Some(Arc::new(endpoint)), Ok(())),
            Err(error) => {
                metadata.forget();
                (None, Err(error))
            }
        };
        self.endpoint.store(endpoint);
        result
    }

    /// Returns the place of a request that may wait. Fails with [`VerifyError::IntrospectionBusy`]
    /// if too many requests wait.
    pub(crate) fn place(&self) -> Result<SemaphorePermit<'_>, VerifyError> {
        self.waiting
            .try_acquire()
            .map_err(|_| VerifyError::IntrospectionBusy)
    }

    /// Introspects a token, or waits until the deadline for the running call for the same token in
    /// the same state. The response is not validated: the token may be inactive. The caller holds a
    /// [`place`](Self::place). Fails with [`VerifyError::IntrospectionBusy`] if too many calls are
    /// running, and with [`VerifyError::IssuerUnavailable`] if the call fails, or at the deadline.
    pub(crate) async fn introspect(
        self: &Arc<Self>,
        token: &AccessToken,
        state: CallState,
        deadline: Instant,
    ) -> Result<Arc<IntrospectionResponse>, VerifyError> {
        let receiver = match self
            .running
            .join((self.hash_key.hash(0, token.secret().as_bytes()), state))
        {
            Joined::Follower(receiver) => receiver,
            Joined::Full => {
                self.log_failure(&CallError::Busy);
                return Err(VerifyError::IntrospectionBusy);
            }
            Joined::Leader(operation, receiver) => {
                let this = Arc::clone(self);
                let token = token.clone();
                self.control
                    .spawn(async move { operation.complete(this.call(&token).await) });
                receiver
            }
        };
        match timeout_at(deadline, receiver.recv()).await {
            Ok(Some(Ok(response))) => Ok(response),
            Ok(_) | Err(_) => Err(VerifyError::IssuerUnavailable {
                retry_after: RETRY_AFTER_FAILURE,
            }),
        }
    }

    /// Calls the endpoint about the token of a request.
    async fn call(&self, token: &AccessToken) -> CallResult {
        let result = self.send(token).await;
        if let Err(error) = &result {
            self.log_failure(error);
            if error.is_client_rejected() {
                self.rejections.notify_one();
            }
        }
        result
    }

    /// Calls the endpoint once and records whether it works.
    async fn send(&self, token: &AccessToken) -> CallResult {
        let Some(endpoint) = self.endpoint.load_full() else {
            return Err(CallError::NoEndpoint);
        };
        let Endpoint {
            url,
            policy,
            authentication,
        } = &*endpoint;
        let mut request =
            introspection_request(url.clone(), *authentication, &self.settings, token, *policy);
        request.timeout = CALL_TIMEOUT;
        let shown = || String::from(url_without_secrets(url));
        let result = match timeout(CALL_TIMEOUT, self.fetch.fetch(request)).await {
            Ok(Ok(response)) => request::parse_response(url, &response).map(Arc::new),
            Ok(Err(error)) => Err(CallError::Fetch {
                url: shown(),
                error,
            }),
            Err(_) => Err(CallError::Timeout { url: shown() }),
        };
        if result.is_ok() && self.is_client_rejected.swap(false, Ordering::Relaxed) {
            tracing::info!(token.issuer = %self.issuer.issuer, "the introspection endpoint accepts this client again");
        }
        let failure = result.as_ref().err().map(CallError::code);
        self.calls_made.add(failure.is_none());
        *self.last_failure.lock() = failure;
        if failure.is_some()
            && let Some(metadata) = &self.metadata
        {
            // The endpoint may have moved, so the next refresh fetches the metadata again.
            metadata.forget();
        }
        result
    }

    /// Returns the endpoint that the metadata names, if the URL policy admits it.
    async fn usable_endpoint(
        &self,
        metadata: &ServerMetadata,
        document: &AuthorizationServerMetadata,
    ) -> Result<Endpoint, RefreshError> {
        let url = document
            .introspection_endpoint
            .clone()
            .ok_or(RefreshError::NoIntrospectionEndpoint)?;
        let policy = metadata.policy_of(&url).await;
        if let Err(error) = policy.check(&url) {
            let url = url_without_secrets(&url).into();
            return Err(RefreshError::IntrospectionEndpoint { url, error });
        }
        Ok(Endpoint {
            url,
            policy,
            authentication: self.settings.method(Some(document)),
        })
    }

    fn log_failure(&self, error: &CallError) {
        tracing::warn!(
            token.issuer = %self.issuer.issuer,
            introspection.failure = error.code(),
            "cannot introspect a token: {error}"
        );
    }
}

#[cfg(test)]
mod tests;
