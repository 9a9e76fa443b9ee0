//! What stands in for a person's browser at Keycloak's pages.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use url::{Url, form_urlencoded};

use super::form::forms;
use crate::e2e::{expect, wire::Wire};

/// Pages and redirects that one sign-in may take.
const MAX_STEPS: usize = 10;

/// What came of a sign-in.
pub(super) struct Arrival {
    /// The redirect, with its parameters.
    pub(super) location: Url,
    /// The pages on the way, in their order.
    pub(super) pages: Vec<Page>,
}

/// A page that a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Login,
    Consent,
}

/// Visits an authorization URL as somebody who is signed in nowhere, and answers the pages until one redirects to
/// `redirect_uri`.
///
/// # Errors
/// When a page is neither the login nor the consent page, or the login is refused.
pub(super) async fn sign_in(
    wire: &Wire,
    url: &Url,
    redirect_uri: &str,
    user: &str,
    password: &str,
) -> anyhow::Result<Arrival> {
    let (mut cookies, mut pages) = (BTreeMap::new(), Vec::new());
    let mut request = FetchRequest::new(Method::GET, url.clone(), UrlPolicy::Operator);
    for _ in 0..MAX_STEPS {
        let here = request.url.clone();
        let answer = visit(wire, request, &mut cookies).await?;
        if answer.status.is_redirection() {
            let location = here.join(expect::header(&answer.headers, header::LOCATION.as_str()))?;
            if location.as_str().split('?').next() == Some(redirect_uri) {
                return Ok(Arrival { location, pages });
            }
            request = FetchRequest::new(Method::GET, location, UrlPolicy::Operator);
            continue;
        }
        expect::equal("status of a page", StatusCode::OK, answer.status)
            .with_context(|| shown(&String::from_utf8_lossy(&answer.body)))?;
        let page = String::from_utf8_lossy(&answer.body).into_owned();
        request = answered(&here, &page, &mut pages, [("username", user), ("password", password)])?;
    }
    bail!("expected a redirect within {MAX_STEPS} steps, got {pages:?}")
}

/// Fills in a page's form.
fn answered(here: &Url, page: &str, pages: &mut Vec<Page>, login: [(&str, &str); 2]) -> anyhow::Result<FetchRequest> {
    for mut form in forms(page) {
        if form.fields.contains_key("username") && !pages.contains(&Page::Login) {
            pages.push(Page::Login);
            form.fields.extend(login.map(|(name, value)| (name.to_owned(), value.to_owned())));
        } else if form.fields.contains_key("accept") && !pages.contains(&Page::Consent) {
            pages.push(Page::Consent);
            form.fields.remove("cancel");
        } else {
            continue;
        }
        let fields = form.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        return Ok(FetchRequest::post_form(here.join(&form.action)?, fields, UrlPolicy::Operator));
    }
    bail!("expected a page to sign in or to consent, after {pages:?}: {}", shown(page))
}

async fn visit(
    wire: &Wire,
    mut request: FetchRequest,
    cookies: &mut BTreeMap<String, String>,
) -> anyhow::Result<FetchResponse> {
    request = request.header(header::ACCEPT, HeaderValue::from_static("text/html"));
    let held: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !held.is_empty() {
        request = request.header(header::COOKIE, HeaderValue::from_str(&held.join("; "))?);
    }
    let answer = wire.fetch(request).await?;
    keep_cookies(&answer.headers, cookies);
    Ok(answer)
}

/// Keeps what is set. All is of one host, and what is marked Secure is sent to loopback as browsers do.
fn keep_cookies(headers: &HeaderMap, cookies: &mut BTreeMap<String, String>) {
    for cookie in headers.get_all(header::SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok()) {
        if let Some((name, value)) = cookie.split(';').next().and_then(|pair| pair.split_once('=')) {
            cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// The text of a page.
fn shown(page: &str) -> String {
    let body = page.split_once("<body").map_or(page, |(_, body)| body);
    let pieces = body.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text.trim());
    let text = pieces.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    text.chars().take(300).collect()
}

/// The parameters of a redirect.
pub(super) fn parameters(location: &Url) -> BTreeMap<String, String> {
    form_urlencoded::parse(location.query().unwrap_or_default().as_bytes()).into_owned().collect()
}
