//! The authorization endpoint.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, header::SET_COOKIE};
use portcullis_authorization_server::{
    authorization::{AuthorizationError, AuthorizationRequest, error_location},
    client::RedirectUri,
    random_secret,
};
use portcullis_identity_provider::IdentityProvider;
use portcullis_metadata::Secret;

use super::{BrokerRequest, respond};
use crate::{
    Broker,
    clients::UNKNOWN_CLIENT,
    pages::{ClientView, ConsentPage, ProviderView, RedirectTarget, ResourceView, ScopeView},
    problem::Problem,
    sign_in::{ConsentForm, PendingRequest, RememberedConsent},
};

/// The name of the cookie that recognizes the browser of a consent page.
pub(super) const BROWSER_COOKIE: &str = "browser";
/// How long a browser is recognized after the last page: a day longer than a consent is remembered,
/// which begins with the sign-in after the page.
const BROWSER_COOKIE_AGE: Duration = Duration::from_secs(91 * 24 * 3600);
/// The length of the value: 16 random bytes in base64url.
const BROWSER_COOKIE_CHARS: usize = 22;

impl Broker {
    /// Validates a request and asks the user. Displaying the page stores nothing.
    pub(super) async fn authorize(&self, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.pages(request.address) {
            return self.problem(&Problem::TooManyRequests(exceeded));
        }
        let params = request.query();
        let parsed = AuthorizationRequest::parse(
            self,
            &self.clients.for_authorization(),
            &params,
            &request.headers,
        )
        .await;
        match parsed {
            Ok(authorization) => {
                let redirect = &authorization.redirect;
                let pending = PendingRequest::new(&authorization);
                match self.remembered(request, &pending, redirect).await {
                    Some((provider, subject)) => {
                        self.approve_again(request, provider, pending, redirect, subject)
                            .await
                    }
                    None => self.ask_user(request, pending),
                }
            }
            Err(AuthorizationError::Untrusted(UNKNOWN_CLIENT)) => {
                self.problem(&Problem::UnknownClient)
            }
            Err(AuthorizationError::Untrusted(reason)) => {
                self.rejected("authorize", "untrusted", reason);
                self.problem(&Problem::Untrusted(reason))
            }
            Err(AuthorizationError::Unavailable(reason)) => {
                self.rejected("authorize", "temporarily_unavailable", reason);
                self.problem(&Problem::ClientUnavailable(reason))
            }
            Err(AuthorizationError::Returned {
                redirect,
                state,
                error,
            }) => {
                self.rejected("authorize", error.code.as_str(), error.description);
                let issuer = Some(&self.settings.issuer);
                respond::redirect(&error_location(&redirect, state.as_deref(), error, issuer))
            }
        }
    }

    /// Returns the consent page for a valid request.
    pub(super) fn ask_user(
        &self,
        request: &BrokerRequest,
        pending: PendingRequest,
    ) -> Response<Bytes> {
        // A browser keeps its value, so that its other pages stay valid (CO7).
        let browser = match self.browser(request) {
            Some(browser) => Ok(Secret::new(browser)),
            None => random_secret(16),
        };
        let form = ConsentForm::new(pending, self.clock.now());
        let (Ok(browser), Ok(form)) = (browser, form) else {
            return self.problem(&Problem::ServerError);
        };
        let sealed = form.seal(&self.keys, browser.secret());
        let pending = &form.request;
        let target = RedirectTarget::parse(&pending.redirect_uri);
        let (Ok(sealed), Some(target), Some(redirect)) = (sealed, target, pending.redirect())
        else {
            return self.problem(&Problem::ServerError);
        };
        let resource = pending.audience.as_deref().unwrap_or_default();
        let resource_name = self
            .resource(resource)
            .and_then(|resource| resource.name.as_deref());
        let requested = pending.scopes();
        let scopes: Vec<ScopeView<'_>> = requested
            .iter()
            .map(|name| ScopeView {
                name,
                description: self.settings.pages.scopes.get(name).map(String::as_str),
            })
            .collect();
        let providers: Vec<ProviderView<'_>> = self
            .settings
            .providers
            .iter()
            .map(|provider| ProviderView {
                name: &provider.settings.name,
                display_name: provider.settings.kind.display_name(),
            })
            .collect();
        let page = ConsentPage {
            client: ClientView {
                document_host: pending.document_host.as_deref(),
                name: pending.client_name.as_deref(),
            },
            redirect: &target,
            resource: ResourceView {
                name: resource_name,
                url: resource,
            },
            scopes: &scopes,
            providers: &providers,
            is_remember_offered: self.settings.pages.remember
                && pending.may_be_remembered(&redirect),
            is_remote_offered: self.settings.pages.paste_callback && redirect.is_loopback(),
            request: &sealed,
        };
        let mut response = page.render(&self.layout).into_response(StatusCode::OK);
        let cookie = self
            .cookies
            .set(BROWSER_COOKIE, browser.secret(), BROWSER_COOKIE_AGE);
        let Some(cookie) = cookie else {
            return self.problem(&Problem::ServerError);
        };
        response.headers_mut().append(SET_COOKIE, cookie);
        response
    }

    /// Returns the provider and the subject of the user who approved this request before, if that
    /// was remembered in this browser. A page of another site cannot use it (CO5).
    async fn remembered(
        &self,
        request: &BrokerRequest,
        pending: &PendingRequest,
        redirect: &RedirectUri,
    ) -> Option<(&IdentityProvider, Box<str>)> {
        if !self.settings.pages.remember || !pending.may_be_remembered(redirect) {
            return None;
        }
        let mut sites = request.headers.get_all("sec-fetch-site").iter();
        let site = sites.next().filter(|_| sites.next().is_none())?;
        ["none", "same-origin", "same-site"]
            .iter()
            .any(|allowed| site == allowed)
            .then_some(())?;
        let browser = self.browser(request)?;
        let found = RememberedConsent::find(self.store.records(), browser, pending).await;
        let consent = found.unwrap_or_else(|error| {
            self.store_failed(&error);
            None
        })?;
        let mut providers = self.providers.iter();
        let provider = providers.find(|provider| *provider.name() == *consent.provider)?;
        Some((provider, consent.subject))
    }

    /// Returns the value of the cookie that recognizes the browser.
    pub(super) fn browser<'r>(&self, request: &'r BrokerRequest) -> Option<&'r str> {
        let value = self.cookies.get(&request.headers, BROWSER_COOKIE)?;
        let is_ours = value.len() == BROWSER_COOKIE_CHARS
            && value
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        is_ours.then_some(value)
    }
}
