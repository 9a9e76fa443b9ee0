//! [`ScriptedUser`]: a user for the tests of this crate and of crates above it.
#![allow(clippy::expect_used, reason = "test utilities fail the test")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use portcullis_discovery::BoxFuture;
use url::Url;

use crate::{
    AuthorizationRequest, EndedSignIn, Interaction, InteractionError, NewRegistration,
    RedirectParameters, StartUrl,
};

/// A user for tests, who responds at once: a function creates the response from `state`. The user
/// accepts new registrations by default.
pub struct ScriptedUser {
    respond: Box<dyn Fn(&str) -> String + Send + Sync>,
    redirect_uri: Url,
    visited: Mutex<Vec<Url>>,
    registrations: Mutex<Vec<NewRegistration>>,
    refuses_registration: AtomicBool,
    waits: Mutex<Vec<StartUrl>>,
    ended: Mutex<Vec<EndedSignIn>>,
}

impl ScriptedUser {
    /// A user who consents, with the `iss` `https://auth.example.com`.
    pub fn consents() -> Arc<Self> {
        Self::responds(|state| {
            format!("code=the-code&state={state}&iss=https%3A%2F%2Fauth.example.com")
        })
    }

    /// A user who responds with the redirect parameters that a function creates from `state`.
    pub fn responds(respond: impl Fn(&str) -> String + Send + Sync + 'static) -> Arc<Self> {
        let redirect_uri = Url::parse("http://127.0.0.1:7/callback").expect("a URL");
        Arc::new(Self {
            respond: Box::new(respond),
            redirect_uri,
            visited: Mutex::default(),
            registrations: Mutex::default(),
            refuses_registration: AtomicBool::new(false),
            waits: Mutex::default(),
            ended: Mutex::default(),
        })
    }

    /// The new registrations that the user was asked for.
    pub fn registrations(&self) -> Vec<NewRegistration> {
        self.registrations.lock().clone()
    }

    /// The URLs for which another sign-in was waited for.
    pub fn waits(&self) -> Vec<StartUrl> {
        self.waits.lock().clone()
    }

    /// The earlier sign-ins that have ended.
    pub fn ended(&self) -> Vec<EndedSignIn> {
        self.ended.lock().clone()
    }

    /// Refuses or accepts new registrations from now on.
    pub fn refuse_registration(&self, refuses: bool) {
        self.refuses_registration.store(refuses, Ordering::Relaxed);
    }

    /// The number of authorization requests.
    pub fn visits(&self) -> usize {
        self.visited.lock().len()
    }

    /// The URL of the last authorization request.
    ///
    /// # Panics
    /// Panics if there was none.
    pub fn last_visit(&self) -> Url {
        self.visited
            .lock()
            .last()
            .cloned()
            .expect("no authorization request")
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
            .expect("a request without state")
            .1
            .into_owned();
        let parameters =
            RedirectParameters::parse(&(self.respond)(&state)).expect("redirect parameters");
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

    fn sign_in_ended(&self, ended: &EndedSignIn) {
        self.ended.lock().push(ended.clone());
    }

    fn waiting_for_other_sign_in(&self, start: &StartUrl) {
        self.waits.lock().push(start.clone());
    }
}
