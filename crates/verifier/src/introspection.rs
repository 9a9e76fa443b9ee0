//! Asking an issuer about its tokens (RFC 7662).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use portcullis_discovery::Fetch;
use portcullis_metadata::{AccessToken, AuthorizationServerMetadata, IntrospectionResponse};
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};
use url::Url;

use crate::{IssuerSettings, RefreshError, VerifierSettingsError, VerifyError, server_metadata::ServerMetadata};

mod calls;
mod error;
mod judge;
mod probe;
mod request;
mod settings;

use calls::{Boarding, Calls, outcome};
pub(crate) use error::CLIENT_REJECTED;
use error::CallError;
pub(crate) use judge::judge;
pub use settings::{IntrospectionAuthentication, IntrospectionSettings};

/// How long one call takes at most. Whoever waits for it has a deadline of its own.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// How long finding the endpoint takes at most.
const FIND_LIMIT: Duration = Duration::from_secs(10);
/// When to come again after a call that failed.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// When to come again after finding too many calls under way.
const RETRY_AFTER_BUSY: Duration = Duration::from_secs(1);

/// The way to one issuer's judgement on its tokens.
///
/// Calls run on the control runtime: one a token at a time, bounded in number, each to its end whoever stops waiting
/// for it. What an issuer says is not remembered here, and an inactive token nowhere: its next use asks again.
pub(crate) struct Introspection {
    issuer: IssuerSettings,
    settings: IntrospectionSettings,
    /// None until it is found, and while the issuer's metadata names none that can be used.
    endpoint: ArcSwapOption<Endpoint>,
    /// None where the endpoint is configured.
    metadata: Option<Arc<ServerMetadata>>,
    calls: Arc<Calls>,
    last_failure: Mutex<Option<&'static str>>,
    /// Whether the endpoint rejected this client at its last test.
    rejecting: AtomicBool,
    /// Tells the background refresh of rejected calls.
    rejections: Arc<Notify>,
    fetch: Arc<dyn Fetch>,
    control: Handle,
}

/// Where to ask, and how to authenticate there.
pub(crate) struct Endpoint {
    url: Url,
    authentication: IntrospectionAuthentication,
}

impl Introspection {
    pub(crate) fn new(
        issuer: &IssuerSettings,
        settings: &IntrospectionSettings,
        metadata: &Arc<ServerMetadata>,
        fetch: Arc<dyn Fetch>,
        control: Handle,
    ) -> Result<Arc<Self>, VerifierSettingsError> {
        let configured = settings.endpoint.clone().map(|url| {
            let authentication = settings.authentication.unwrap_or(IntrospectionAuthentication::Post);
            Arc::new(Endpoint { url, authentication })
        });
        Ok(Arc::new(Self {
            metadata: configured.is_none().then(|| Arc::clone(metadata)),
            endpoint: ArcSwapOption::new(configured),
            calls: Calls::new(settings.max_in_flight).map_err(|_| VerifierSettingsError::Random)?,
            last_failure: Mutex::new(None),
            rejecting: AtomicBool::new(false),
            rejections: Arc::default(),
            issuer: issuer.clone(),
            settings: settings.clone(),
            fetch,
            control,
        }))
    }

    /// Whether it is known where to ask.
    pub(crate) fn is_ready(&self) -> bool {
        self.endpoint.load().is_some()
    }

    /// Whether the endpoint is found by the issuer's metadata.
    pub(crate) fn is_discovered(&self) -> bool {
        self.metadata.is_some()
    }

    /// The code of the last call's failure, if it failed.
    pub(crate) fn last_failure(&self) -> Option<&'static str> {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up where to ask. A failed look-up takes nothing away; metadata without a usable endpoint does.
    pub(crate) async fn find_endpoint(&self) -> Result<(), RefreshError> {
        let Some(metadata) = &self.metadata else { return Ok(()) };
        let found = match timeout(FIND_LIMIT, metadata.get()).await {
            Ok(Ok(metadata)) => self.usable_endpoint(&metadata),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(RefreshError::Timeout),
        };
        let (endpoint, outcome) = match found {
            Ok(endpoint) => (Some(Arc::new(endpoint)), Ok(())),
            Err(error) => {
                metadata.forget();
                (None, Err(error))
            }
        };
        self.endpoint.store(endpoint);
        outcome
    }

    /// Asks about a token, or waits for the call that asks about it already, until the deadline.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        token: &AccessToken,
        deadline: Instant,
    ) -> Result<Arc<IntrospectionResponse>, VerifyError> {
        let answered = match self.calls.board(token) {
            Boarding::Join(answered) => answered,
            Boarding::Full => {
                self.report(&CallError::Busy);
                return Err(VerifyError::IssuerUnavailable { retry_after: RETRY_AFTER_BUSY });
            }
            Boarding::Start(ticket, answered) => {
                let (this, token) = (Arc::clone(self), token.clone());
                self.control.spawn(async move { ticket.land(this.call(&token).await) });
                answered
            }
        };
        match timeout_at(deadline, outcome(answered)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(VerifyError::IssuerUnavailable { retry_after: RETRY_AFTER_FAILURE }),
        }
    }

    /// Asks about a client's token.
    async fn call(&self, token: &AccessToken) -> calls::Outcome {
        let outcome = self.send(token).await;
        if let Err(error) = &outcome {
            self.report(error);
            if error.is_rejection() {
                self.rejections.notify_one();
            }
        }
        outcome
    }

    /// Sends one call and keeps what it says of the endpoint.
    async fn send(&self, token: &AccessToken) -> calls::Outcome {
        let Some(endpoint) = self.endpoint.load_full() else { return Err(CallError::Interrupted) };
        let request = request::build(&endpoint, &self.settings, token, self.issuer.url_policy, CALL_LIMIT);
        let outcome = match timeout(CALL_LIMIT, self.fetch.fetch(request)).await {
            Ok(Ok(answer)) => request::read(&answer).map(Arc::new),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(CallError::Timeout),
        };
        if outcome.is_ok() && self.rejecting.swap(false, Ordering::Relaxed) {
            tracing::info!(token.issuer = %self.issuer.issuer, "the introspection endpoint accepts this client again");
        }
        let failure = outcome.as_ref().err().map(CallError::code);
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        if failure.is_some()
            && let Some(metadata) = &self.metadata
        {
            // The endpoint may have moved: the next refresh asks anew.
            metadata.forget();
        }
        outcome
    }

    fn usable_endpoint(&self, metadata: &AuthorizationServerMetadata) -> Result<Endpoint, RefreshError> {
        let url = metadata.introspection_endpoint.clone().ok_or(RefreshError::NoIntrospectionEndpoint)?;
        if self.issuer.url_policy.check(&url).is_err() {
            return Err(RefreshError::IntrospectionEndpoint);
        }
        let listed = metadata.introspection_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
        let lists = |method: &str| listed.iter().any(|listed| listed == method);
        let authentication = self.settings.authentication.unwrap_or({
            if lists("client_secret_basic") && !lists("client_secret_post") {
                IntrospectionAuthentication::Basic
            } else {
                IntrospectionAuthentication::Post
            }
        });
        Ok(Endpoint { url, authentication })
    }

    fn report(&self, error: &CallError) {
        tracing::warn!(
            token.issuer = %self.issuer.issuer,
            introspection.failure = error.code(),
            "cannot introspect a token: {error}"
        );
    }
}

#[cfg(test)]
mod tests;
