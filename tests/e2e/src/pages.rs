//! A simple browser for the pages of an authorization server: it submits forms and keeps cookies.

mod form;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use url::{Url, form_urlencoded};

use super::{expect, recorder::Recorder};
use form::{Form, continued, forms, links};

/// The maximum number of pages and redirects of a sign-in.
const MAX_STEPS: usize = 10;

/// The result of a sign-in.
pub(crate) struct Arrival {
    /// The redirect, with its parameters.
    pub(crate) location: Url,
    /// The pages, in order.
    pub(crate) pages: Vec<Page>,
}

/// A page to which the user responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Login,
    Consent,
    /// The consent page of a broker, before the pages of its provider.
    Broker,
}

/// The cookies of a browser, by their names.
pub(crate) type Cookies = BTreeMap<String, String>;

/// The user's input.
#[derive(Clone, Copy)]
pub(crate) struct UserInput<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) consents: bool,
}

impl<'a> UserInput<'a> {
    pub(crate) fn consents(user: &'a str, password: &'a str) -> Self {
        Self {
            user,
            password,
            consents: true,
        }
    }
}

/// Returns the password of every user in the files of `tests/idp`.
pub(crate) fn password(user: &str) -> String {
    format!("{user}-password")
}

/// Opens an authorization URL without existing sessions, and responds to the pages until one
/// redirects to `redirect_uri`. Fails if a page is neither a login nor a consent page, or the login
/// is rejected.
pub(crate) async fn visit(
    recorder: &Recorder,
    url: &Url,
    redirect_uri: &str,
    user_input: &UserInput<'_>,
) -> anyhow::Result<Arrival> {
    visit_in_session(recorder, &mut Cookies::new(), url, redirect_uri, user_input).await
}

/// As [`visit`], in a browser that has cookies.
pub(crate) async fn visit_in_session(
    recorder: &Recorder,
    cookies: &mut Cookies,
    url: &Url,
    redirect_uri: &str,
    user_input: &UserInput<'_>,
) -> anyhow::Result<Arrival> {
    let mut pages = Vec::new();
    let mut request = get(url.clone());
    for _ in 0..MAX_STEPS {
        let here = request.url.clone();
        let response = send(recorder, request, cookies).await?;
        if response.status.is_redirection() {
            let location = here.join(expect::header(
                &response.headers,
                header::LOCATION.as_str(),
            )?)?;
            if location.as_str().split('?').next() == Some(redirect_uri) {
                return Ok(Arrival { location, pages });
            }
            request = get(location);
            continue;
        }
        expect::equal("status of a page", StatusCode::OK, response.status)
            .with_context(|| shown(&String::from_utf8_lossy(&response.body)))?;
        let page = String::from_utf8_lossy(&response.body).into_owned();
        request = match continued(&page) {
            Some(target) => get(here.join(&target)?),
            None => submission(&here, &page, &mut pages, user_input)?,
        };
    }
    bail!("expected a redirect within {MAX_STEPS} steps, got {pages:?}")
}

/// Opens a page without a redirect URI, such as that of a logout, and submits its form.
pub(crate) async fn confirm(
    recorder: &Recorder,
    cookies: &mut Cookies,
    url: &Url,
) -> anyhow::Result<()> {
    let response = send(recorder, get(url.clone()), cookies).await?;
    expect::equal("status of the page", StatusCode::OK, response.status)?;
    let page = String::from_utf8_lossy(&response.body).into_owned();
    let form = forms(&page).into_iter().next();
    let form = form.with_context(|| format!("expected a form, got: {}", shown(&page)))?;
    let response = send(recorder, post(url, &form)?, cookies).await?;
    expect::that(
        response.status.is_success() || response.status.is_redirection(),
        "status of the submitted form",
        "2xx or 3xx",
        response.status,
    )
}

fn get(url: Url) -> FetchRequest {
    FetchRequest::new(Method::GET, url, UrlPolicy::Operator)
}

/// Returns the request that submits a page's form.
fn submission(
    here: &Url,
    page: &str,
    pages: &mut Vec<Page>,
    user_input: &UserInput<'_>,
) -> anyhow::Result<FetchRequest> {
    for mut form in forms(page) {
        let found = page_of(&form);
        let Some(found) = found.filter(|found| !pages.contains(found)) else {
            continue;
        };
        pages.push(found);
        if found == Page::Consent
            && !user_input.consents
            && let Some(link) = links(page)
                .into_iter()
                .find(|link| link.ends_with("/abort"))
        {
            return Ok(get(here.join(&link)?));
        }
        fill_in(&mut form, user_input);
        return post(here, &form);
    }
    bail!(
        "expected a page to sign in or to consent, after {pages:?}: {}",
        shown(page)
    )
}

/// Returns the request that submits a form of the page at this URL.
fn post(here: &Url, form: &Form) -> anyhow::Result<FetchRequest> {
    let fields = form
        .fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    // Browsers send the origin of the page.
    let origin = HeaderValue::from_str(&here.origin().ascii_serialization())?;
    let post = FetchRequest::post_form(here.join(&form.action)?, fields, UrlPolicy::Operator);
    Ok(post.header(header::ORIGIN, origin))
}

/// Recognizes the pages of Keycloak, the broker, oidc-provider, FastMCP's OAuthProxy, the Python
/// SDK's example and the development server.
fn page_of(form: &Form) -> Option<Page> {
    let has = |name| form.fields.contains_key(name);
    if has("password") {
        Some(Page::Login)
    } else if has("request") && has("decision") {
        Some(Page::Broker)
    } else if has("accept")
        || has("decision")
        || (has("action") && has("csrf_token"))
        || form
            .fields
            .get("prompt")
            .is_some_and(|prompt| prompt == "consent")
    {
        Some(Page::Consent)
    } else {
        None
    }
}

/// Fills in the fields for name, password and consent.
fn fill_in(form: &mut Form, user_input: &UserInput<'_>) {
    for (name, value) in [
        ("username", user_input.user),
        ("login", user_input.user),
        ("user", user_input.user),
        ("password", user_input.password),
        (
            "decision",
            if user_input.consents { "allow" } else { "deny" },
        ),
        (
            "action",
            if user_input.consents {
                "approve"
            } else {
                "deny"
            },
        ),
    ] {
        form.fields.entry(name.to_owned()).and_modify(|field| {
            // A broker names the provider in the decision.
            if !(user_input.consents && field.starts_with("allow:")) {
                value.clone_into(field);
            }
        });
    }
    form.fields.remove(if user_input.consents {
        "cancel"
    } else {
        "accept"
    });
}

/// Sends a request with the cookies, and stores new ones.
async fn send(
    recorder: &Recorder,
    mut request: FetchRequest,
    cookies: &mut BTreeMap<String, String>,
) -> anyhow::Result<FetchResponse> {
    request = request.header(header::ACCEPT, HeaderValue::from_static("text/html"));
    let pairs: Vec<_> = cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !pairs.is_empty() {
        request = request.header(header::COOKIE, HeaderValue::from_str(&pairs.join("; "))?);
    }
    let response = recorder.fetch(request).await?;
    keep_cookies(&response.headers, cookies);
    Ok(response)
}

/// Stores cookies. All pages have one host, and Secure cookies are sent to loopback, as in
/// browsers.
fn keep_cookies(headers: &HeaderMap, cookies: &mut BTreeMap<String, String>) {
    for cookie in headers
        .get_all(header::SET_COOKIE)
        .iter()
        .filter_map(|cookie| cookie.to_str().ok())
    {
        match cookie
            .split(';')
            .next()
            .and_then(|pair| pair.split_once('='))
        {
            // An empty value deletes the cookie.
            Some((name, "")) => drop(cookies.remove(name)),
            Some((name, value)) => drop(cookies.insert(name.to_owned(), value.to_owned())),
            None => {}
        }
    }
}

/// Returns the text of a page.
pub(crate) fn shown(page: &str) -> String {
    let body = page.split_once("<body").map_or(page, |(_, body)| body);
    let pieces = body
        .split('<')
        .filter_map(|piece| piece.split_once('>'))
        .map(|(_, text)| text.trim());
    let text = pieces
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    text.chars().take(300).collect()
}

pub(crate) fn parameters(location: &Url) -> BTreeMap<String, String> {
    form_urlencoded::parse(location.query().unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}
