//! The authorization endpoint.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{Response, StatusCode, header::SET_COOKIE};
use portcullis_authorization_server::{
    authorization::{AuthorizationError, AuthorizationRequest, error_location},
    random_secret,
};
use portcullis_metadata::Secret;
use url::Url;

use super::{BrokerRequest, respond};
use crate::{
    Broker,
    clients::UNKNOWN_CLIENT,
    pages::{ClientView, ConsentPage, ProviderView, RedirectTarget, ResourceView, ScopeView},
    problem::Problem,
    sign_in::{ConsentForm, PendingRequest},
};

/// The name of the cookie that recognizes the browser of a consent page.
pub(super) const BROWSER_COOKIE: &str = "browser";
/// How long a browser is recognized. A new page renews nothing.
const BROWSER_COOKIE_AGE: Duration = Duration::from_secs(24 * 3600);
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
            Ok(authorization) => self.ask_user(request, &authorization),
            Err(AuthorizationError::Untrusted(UNKNOWN_CLIENT)) => {
                self.problem(&Problem::UnknownClient)
            }
            Err(AuthorizationError::Untrusted(reason)) => {
                self.rejected("authorize", "untrusted", reason);
                self.problem(&Problem::Untrusted(reason))
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
    fn ask_user(
        &self,
        request: &BrokerRequest,
        authorization: &AuthorizationRequest,
    ) -> Response<Bytes> {
        let known = self.browser(request);
        let browser = match known {
            Some(browser) => Ok(Secret::new(browser)),
            None => random_secret(16),
        };
        let pending = PendingRequest::new(authorization);
        let sealed = browser.map_err(|_| ()).and_then(|browser| {
            let form = ConsentForm::new(pending, self.clock.now()).map_err(|_| ())?;
            let sealed = form.seal(&self.keys, browser.secret()).map_err(|_| ())?;
            Ok((browser, sealed))
        });
        let redirect = RedirectTarget::parse(authorization.redirect.as_str());
        let (Ok((browser, sealed)), Some(redirect)) = (sealed, redirect) else {
            return self.problem(&Problem::ServerError);
        };
        let document = document_host(authorization);
        let resource = authorization.audience.as_deref().unwrap_or_default();
        let resource_name = self
            .resource(resource)
            .and_then(|resource| resource.name.as_deref());
        let scopes: Vec<ScopeView<'_>> = authorization
            .scopes
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
                document_host: document.as_deref(),
                name: authorization.client.name.as_deref(),
            },
            redirect: &redirect,
            resource: ResourceView {
                name: resource_name,
                url: resource,
            },
            scopes: &scopes,
            providers: &providers,
            is_remember_offered: false,
            is_remote_offered: self.settings.pages.paste_callback
                && authorization.redirect.is_loopback(),
            request: &sealed,
        };
        let mut response = page.render(&self.layout).into_response(StatusCode::OK);
        if known.is_none() {
            // A browser that has a cookie keeps it, so that its other pages stay valid (CO7).
            let cookie = self
                .cookies
                .set(BROWSER_COOKIE, browser.secret(), BROWSER_COOKIE_AGE);
            let Some(cookie) = cookie else {
                return self.problem(&Problem::ServerError);
            };
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
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

/// Returns the host of a client's metadata document.
fn document_host(authorization: &AuthorizationRequest) -> Option<Cow<'static, str>> {
    if !authorization.client.is_document {
        return None;
    }
    let url = Url::parse(&authorization.client_id).ok()?;
    url.host_str().map(|host| Cow::Owned(host.to_owned()))
}
