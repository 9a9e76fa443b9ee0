//! [`ConfirmingUser`]: a user who is asked before and during a sign-in.

use portcullis_discovery::BoxFuture;
use portcullis_metadata::ResourceUri;

use super::*;
use crate::{
    AuthorizationRequest, InteractionError, RedirectParameters,
    provider::{KnownIssuer, UnboundSignIn},
    registration::{ClientAuthentication, ClientInformation},
};

/// A user who accepts or rejects a broader resource and an unbound token, enters a client, and
/// consents.
pub(super) struct ConfirmingUser {
    pub(super) scripted: Arc<ScriptedUser>,
    accepts: bool,
    client: Option<ClientInformation>,
    questions: Mutex<Vec<String>>,
    client_requests: Mutex<Vec<Issuer>>,
    recognized: Mutex<Vec<&'static str>>,
}

impl ConfirmingUser {
    pub(super) fn new(accepts: bool) -> Arc<Self> {
        Self::with(ScriptedUser::consents(), accepts, Some(public_client()))
    }

    /// As [`new`](Self::new), with the client that the user enters.
    pub(super) fn with_client(client: Option<ClientInformation>) -> Arc<Self> {
        Self::with(ScriptedUser::consents(), true, client)
    }

    /// As [`new`](Self::new), for an authorization server whose redirect has no `iss`.
    pub(super) fn without_iss(accepts: bool) -> Arc<Self> {
        Self::with(
            ScriptedUser::responds(|state| format!("code=the-code&state={state}")),
            accepts,
            Some(public_client()),
        )
    }

    fn with(
        scripted: Arc<ScriptedUser>,
        accepts: bool,
        client: Option<ClientInformation>,
    ) -> Arc<Self> {
        Arc::new(Self {
            scripted,
            accepts,
            client,
            questions: Mutex::default(),
            client_requests: Mutex::default(),
            recognized: Mutex::default(),
        })
    }

    /// Returns the questions: "START RESOURCE" for a broader resource, "START ISSUER SCOPES" for an
    /// unbound token.
    pub(super) fn questions(&self) -> Vec<String> {
        self.questions.lock().clone()
    }

    pub(super) fn client_requests(&self) -> Vec<Issuer> {
        self.client_requests.lock().clone()
    }

    /// Returns the names of the recognized providers.
    pub(super) fn recognized(&self) -> Vec<&'static str> {
        self.recognized.lock().clone()
    }

    fn ask(&self, question: String) -> BoxFuture<'_, Result<bool, InteractionError>> {
        self.questions.lock().push(question);
        Box::pin(async { Ok(self.accepts) })
    }
}

fn public_client() -> ClientInformation {
    ClientInformation {
        client_id: "by-hand".into(),
        authentication: ClientAuthentication::None,
    }
}

impl Interaction for ConfirmingUser {
    fn redirect_uri(&self) -> &Url {
        self.scripted.redirect_uri()
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        self.scripted.authorize(request)
    }

    fn client_information<'a>(
        &'a self,
        issuer: &'a Issuer,
    ) -> BoxFuture<'a, Result<Option<ClientInformation>, InteractionError>> {
        self.client_requests.lock().push(issuer.clone());
        Box::pin(async { Ok(self.client.clone()) })
    }

    fn accept_broader_resource<'a>(
        &'a self,
        start: &'a StartUrl,
        resource: &'a ResourceUri,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        self.ask(format!("{} {}", start.url(), resource.as_str()))
    }

    fn accept_unbound_token<'a>(
        &'a self,
        sign_in: &'a UnboundSignIn,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        self.ask(format!(
            "{} {} {}",
            sign_in.start, sign_in.issuer, sign_in.scopes
        ))
    }

    fn provider_recognized(&self, provider: &'static KnownIssuer) {
        self.recognized.lock().push(provider.name);
    }
}
