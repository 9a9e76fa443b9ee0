use std::sync::Arc;

use http::{
    HeaderMap, StatusCode,
    header::{COOKIE, HOST, ORIGIN},
};
use portcullis_metadata::Secret;

use crate::{
    app::{App, TICKET_LIFETIME},
    authorize::{AuthorizationRequest, error_location},
    code,
    endpoint::Endpoint,
    form::Params,
    handle::{Handle, random_text},
    oauth_error::{ErrorName, OAuthRefusal},
    page::ConsentPage,
    respond::{self, Reply},
    tables::Keep,
    user::is_user_name,
};

/// A consent page that waits for its answer.
pub(crate) struct Pending {
    ticket: Handle,
    browser: Secret,
    request: Arc<AuthorizationRequest>,
}

enum Decision {
    Allow,
    Deny,
}

const COOKIE_NAME: &str = "portcullis-consent";
const COOKIE_BYTES: usize = 16;
const COOKIE_CHARS: usize = 22;

/// Shows the consent page, with a ticket that counts once and only in this browser.
pub(crate) fn ask(app: &App, request: AuthorizationRequest, headers: &HeaderMap) -> Result<Reply, getrandom::Error> {
    // A browser keeps the value that it has, so that several pages can be open in it.
    let browser = match browser_of(headers) {
        Some(browser) => browser,
        None => Secret::new(random_text(COOKIE_BYTES)?.as_str()),
    };
    let ticket = Handle::generate()?;
    let user = request.login_hint.as_deref().unwrap_or(&app.settings.user);
    let page = ConsentPage {
        request: &request,
        user,
        ticket: ticket.text(),
        action: &Endpoint::Consent.path(&app.settings.issuer_path),
    };
    let reply = respond::page(StatusCode::OK, |nonce| page.html(nonce))?;
    // Lax, because Strict is not sent when another site leads here, which would make every page begin a new value; a
    // form post from another site carries neither. Cookies know no ports, so the path keeps it from other local servers.
    // Not Secure, because this is plain http.
    let cookie = format!(
        "{COOKIE_NAME}={}; Path={}; Max-Age={}; HttpOnly; SameSite=Lax",
        browser.secret(),
        Endpoint::Authorize.path(&app.settings.issuer_path),
        TICKET_LIFETIME.as_secs()
    );
    let id = ticket.id().to_owned();
    // A full table lets its oldest page go, so that there is always room.
    let _ = app.tickets.insert(&id, Pending { ticket, browser, request: Arc::new(request) }, |_| true);
    Ok(respond::with_cookie(reply, &cookie))
}

/// Takes the answer of a consent page, and redirects to the client with a code or with `access_denied`.
///
/// The post counts only when it comes from a page of this server (`Origin`), in the browser that the page was shown
/// in (cookie), and for the first time (ticket).
pub(crate) fn decide(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, getrandom::Error> {
    let refuse = |status, reason| {
        tracing::warn!(consent.refused = reason, "refused an answer to a consent page");
        respond::page_refusal(status, reason)
    };
    if !is_same_origin(headers) {
        return refuse(StatusCode::FORBIDDEN, "The answer did not come from a page of this server.");
    }
    let decision = match form.one("decision") {
        Ok(Some("allow")) => Decision::Allow,
        Ok(Some("deny")) => Decision::Deny,
        _ => return refuse(StatusCode::BAD_REQUEST, "The answer is neither allow nor deny."),
    };
    let user = form.one("user").ok().flatten().map(str::trim).filter(|user| is_user_name(user));
    let user: Box<str> = match (&decision, user) {
        (_, Some(user)) => user.into(),
        (Decision::Deny, None) => "".into(),
        (Decision::Allow, None) => {
            return refuse(StatusCode::BAD_REQUEST, "A user name has 1 to 64 characters and no control characters.");
        }
    };
    let Some(request) = redeem(app, headers, form) else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "This page was answered before, is older than ten minutes, or was shown in another browser. Start again from the application.",
        );
    };
    let location = match decision {
        Decision::Allow => code::issue(app, Arc::unwrap_or_clone(request), user)?,
        Decision::Deny => {
            let refusal = OAuthRefusal::new(ErrorName::AccessDenied, "the person at the browser said no");
            error_location(app, &request.redirect, request.state.as_deref(), refusal)
        }
    };
    Ok(respond::redirect(StatusCode::SEE_OTHER, &location))
}

/// Takes the request that the ticket stands for, where the ticket belongs to this browser.
fn redeem(app: &App, headers: &HeaderMap, form: &Params) -> Option<Arc<AuthorizationRequest>> {
    let presented = Handle::parse(form.one("ticket").ok()??)?;
    let browser = browser_of(headers)?;
    app.tickets.look_up(presented.id(), |pending| {
        if presented.proves(&pending.ticket) && browser == pending.browser {
            (Some(Arc::clone(&pending.request)), Keep::Removed)
        } else {
            (None, Keep::AsItWas)
        }
    })?
}

/// Whether the browser says that the page it posts from has the origin it posts to.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let (Some(origin), Some(host)) = (headers.get(ORIGIN), headers.get(HOST)) else {
        return false;
    };
    origin.as_bytes().strip_prefix(b"http://").is_some_and(|origin| origin == host.as_bytes())
}

/// The value of the consent cookie, where it has the form of one.
fn browser_of(headers: &HeaderMap) -> Option<Secret> {
    let pairs =
        headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    let mut values = pairs.filter_map(|pair| pair.trim().strip_prefix(COOKIE_NAME)?.strip_prefix('='));
    let is_ours = |value: &&str| {
        value.len() == COOKIE_CHARS
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    values.find(is_ours).map(Secret::new)
}
