//! The answer of a user to a consent page.

use bytes::Bytes;
use http::{
    Response, StatusCode,
    header::{ORIGIN, SET_COOKIE},
};
use portcullis_authorization_server::{ErrorCode, ErrorResponse, client::RedirectUri};
use portcullis_identity_provider::{IdentityProvider, SignInRequest};
use portcullis_metadata::authorization::PkceChallenge;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::BrokerRequest;
use crate::{
    Broker,
    observer::BrokerEvent,
    pages::{ContinuePage, Decision},
    problem::Problem,
    sign_in::{
        ConsentForm, LIFETIME, Memory, PendingRequest, Transaction, cookie_name, surplus_cookies,
    },
};

impl Broker {
    /// Handles the answer of a user. It must come from a page of this server, in the browser that
    /// received the page (CO3).
    pub(super) async fn consent(&self, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.pages(request.address) {
            return self.problem(&Problem::TooManyRequests(exceeded));
        }
        if !self.is_same_origin(request) {
            self.rejected(
                "consent",
                "cross_origin",
                "the answer comes from another origin",
            );
            return self.problem(&Problem::CrossOrigin);
        }
        let Some(form) = request.form() else {
            return self.problem(&Problem::MalformedForm);
        };
        let Some(browser) = self.browser(request) else {
            return self.problem(&Problem::NoCookie);
        };
        let sealed = form.get("request").ok().flatten().unwrap_or_default();
        let Some(answered) = ConsentForm::open(&self.keys, browser, sealed, self.clock.now())
        else {
            return self.problem(&Problem::FormExpired);
        };
        // The rules may have changed since the page was displayed (RG2).
        let redirect = answered.request.redirect();
        let Some(redirect) = redirect.filter(|redirect| self.is_usable(redirect)) else {
            return self.problem(&Problem::RedirectNotUsable);
        };
        let decision = form
            .get("decision")
            .ok()
            .flatten()
            .and_then(Decision::parse);
        let provider = match decision {
            Some(Decision::Deny) => return self.deny(&answered, &redirect),
            Some(Decision::Allow(name)) => {
                let mut providers = self.providers.iter();
                providers.find(|provider| provider.name() == name)
            }
            None => None,
        };
        let Some(provider) = provider else {
            return self.problem(&Problem::MalformedForm);
        };
        let is_remote = self.settings.pages.paste_callback
            && redirect.is_loopback()
            && form.get("remote").ok().flatten() == Some("on");
        let wants_memory = form.get("remember").ok().flatten() == Some("on");
        let may_remember =
            self.settings.pages.remember && answered.request.may_be_remembered(&redirect);
        let memory = match wants_memory && may_remember {
            true => Memory::Remember,
            false => Memory::None,
        };
        self.observe(&BrokerEvent::Decided {
            client_id: &answered.request.client_id,
            is_approved: true,
        });
        self.approve(request, provider, answered, &redirect, is_remote, memory)
            .await
    }

    /// Continues with a request that the user with this subject approved before.
    pub(super) async fn approve_again(
        &self,
        request: &BrokerRequest,
        provider: &IdentityProvider,
        pending: PendingRequest,
        redirect: &RedirectUri,
        subject: Box<str>,
    ) -> Response<Bytes> {
        let Ok(form) = ConsentForm::new(pending, self.clock.now()) else {
            return self.problem(&Problem::ServerError);
        };
        let memory = Memory::Remembered(subject);
        self.approve(request, provider, form, redirect, false, memory)
            .await
    }

    fn deny(&self, answered: &ConsentForm, redirect: &RedirectUri) -> Response<Bytes> {
        self.observe(&BrokerEvent::Decided {
            client_id: &answered.request.client_id,
            is_approved: false,
        });
        let error = ErrorResponse::new(ErrorCode::AccessDenied, "the user denied the request");
        let issuer = &self.settings.issuer;
        self.continue_to(&answered.request.error_location(redirect, error, issuer))
    }

    /// Begins a transaction and sends the browser to the provider.
    async fn approve(
        &self,
        answer: &BrokerRequest,
        provider: &IdentityProvider,
        answered: ConsentForm,
        redirect: &RedirectUri,
        is_remote: bool,
        memory: Memory,
    ) -> Response<Bytes> {
        let Some(secrets) = answered.secrets(&self.keys, provider.name()) else {
            return self.problem(&Problem::ServerError);
        };
        let challenge = s256(&secrets.verifier);
        let Some(challenge) = challenge else {
            return self.problem(&Problem::ServerError);
        };
        let request = SignInRequest {
            redirect_uri: &self.callback_url(provider.name()),
            state: &secrets.state,
            nonce: &secrets.nonce,
            challenge: &challenge,
        };
        let url = match provider.authorization_url(&request).await {
            Ok(url) => url,
            Err(error) => return self.provider_problem(provider.name(), &error),
        };
        let request = answered.request;
        let transaction = Transaction::new(
            request.clone(),
            provider.name(),
            &secrets,
            is_remote,
            memory,
        );
        if let Err(error) = transaction
            .begin(self.store.records(), &secrets.state)
            .await
        {
            self.store_failed(&error);
            let error = ErrorResponse::from(error);
            return self.continue_to(&request.error_location(
                redirect,
                error,
                &self.settings.issuer,
            ));
        }
        let name = cookie_name(&secrets.state);
        let Some(cookie) = self.cookies.set(&name, &secrets.cookie, LIFETIME) else {
            return self.problem(&Problem::ServerError);
        };
        let mut response = self.continue_to(url.as_str());
        response.headers_mut().append(SET_COOKIE, cookie);
        let surplus = surplus_cookies(self.cookies.names(&answer.headers), &name);
        for cookie in surplus.filter_map(|name| self.cookies.remove(name)) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }

    /// Continues at another URL. It is a page and not a redirect, because browsers apply
    /// `form-action` to every redirect after a form, also to those of the provider.
    fn continue_to(&self, location: &str) -> Response<Bytes> {
        match Url::parse(location) {
            Ok(url) => ContinuePage { url: &url }
                .render(&self.layout)
                .into_response(StatusCode::OK),
            Err(_) => self.problem(&Problem::ServerError),
        }
    }

    /// Returns whether a browser sent the request from a page of this server.
    fn is_same_origin(&self, request: &BrokerRequest) -> bool {
        let single = |name: &str| {
            let mut values = request.headers.get_all(name).iter();
            let first = values.next();
            (first, values.next().is_some())
        };
        let (origin, repeated) = single(ORIGIN.as_str());
        let is_ours = origin.is_some_and(|origin| origin.as_bytes() == self.origin.as_bytes());
        let (site, site_repeated) = single("sec-fetch-site");
        let is_same_site = site.is_none_or(|site| site.as_bytes() == b"same-origin");
        is_ours && !repeated && is_same_site && !site_repeated
    }
}

/// Returns the S256 challenge of a verifier (RFC 7636 section 4.2).
fn s256(verifier: &str) -> Option<PkceChallenge> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    PkceChallenge::parse(&hash).ok()
}
