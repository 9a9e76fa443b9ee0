//! A scripted user and a clock for the tests of this crate.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use portcullis_discovery::BoxFuture;
use portcullis_metadata::UnixTime;
pub(crate) use portcullis_testkit::{
    FetchFn, ManualClock, Reply, ScratchDirectory, form,
    protected_resource::{
        ISSUER, METADATA_URL, PRM_URL, REGISTRATION_URL, RESOURCE, TOKEN_URL, metadata, prm,
        well_behaved,
    },
};
use url::Url;

use crate::{
    AuthorizationRequest, Interaction, InteractionError, NewRegistration, RedirectParameters,
};

/// A user whose response a function creates from `state`.
pub(crate) struct ScriptedUser {
    respond: Box<dyn Fn(&str) -> String + Send + Sync>,
    redirect_uri: Url,
    visited: Mutex<Vec<Url>>,
    registrations: Mutex<Vec<NewRegistration>>,
    refuses_registration: AtomicBool,
}

impl ScriptedUser {
    /// Consents, with the correct `iss`.
    pub(crate) fn consents() -> Arc<Self> {
        Self::responds(|state| {
            format!("code=the-code&state={state}&iss=https%3A%2F%2Fauth.example.com")
        })
    }

    /// Responds with the redirect parameters that a function creates from `state`.
    pub(crate) fn responds(respond: impl Fn(&str) -> String + Send + Sync + 'static) -> Arc<Self> {
        let redirect_uri = Url::parse("http://127.0.0.1:7/callback").unwrap();
        Arc::new(Self {
            respond: Box::new(respond),
            redirect_uri,
            visited: Mutex::default(),
            registrations: Mutex::default(),
            refuses_registration: AtomicBool::new(false),
        })
    }

    /// The new registrations that the user was asked for.
    pub(crate) fn registrations(&self) -> Vec<NewRegistration> {
        self.registrations.lock().clone()
    }

    /// Refuses or accepts new registrations from now on.
    pub(crate) fn refuse_registration(&self, refuses: bool) {
        self.refuses_registration.store(refuses, Ordering::Relaxed);
    }

    /// The number of authorization requests.
    pub(crate) fn visits(&self) -> usize {
        self.visited.lock().len()
    }

    /// The URL of the last authorization request.
    pub(crate) fn last_visit(&self) -> Url {
        self.visited.lock().last().unwrap().clone()
    }
}

impl Interaction for ScriptedUser {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        self.visited.lock().push(request.url().clone());
        let state = request
            .url()
            .query_pairs()
            .find(|(name, _)| name == "state")
            .unwrap()
            .1
            .into_owned();
        let parameters = RedirectParameters::parse(&(self.respond)(&state)).unwrap();
        Box::pin(async {
            // Other tasks run while the user decides.
            tokio::task::yield_now().await;
            Ok(parameters)
        })
    }

    fn accept_new_registration<'a>(
        &'a self,
        registration: &'a NewRegistration,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        self.registrations.lock().push(registration.clone());
        let accepts = !self.refuses_registration.load(Ordering::Relaxed);
        Box::pin(async move { Ok(accepts) })
    }
}

/// Returns a clock at 1,000 s.
pub(crate) fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.set_unix(UnixTime::from_secs(1_000));
    Arc::new(clock)
}
