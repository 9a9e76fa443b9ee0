//! The consent page: displaying it and handling its submission.

use std::sync::Arc;

use http::{
    HeaderMap, StatusCode,
    header::{COOKIE, HOST, ORIGIN},
};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params, Policy, RandomError, StoreError,
    authorization::{AuthorizationRequest, User, error_location},
    random_secret,
};
use portcullis_metadata::Secret;

use crate::{
    app::App,
    authorize::{
        issue_code,
        page::{self, ConsentPage, Destination},
        suggested_user,
        tickets::{Question, TICKET_LIFETIME},
        user::is_user_name,
    },
    device,
    handle::Handle,
    server::{
        endpoint::Endpoint,
        respond::{self, Reply},
    },
};

/// The cookie that recognizes the browser of a consent page: random bytes in base64url.
const COOKIE_NAME: &str = "portcullis-consent";
const COOKIE_BYTES: usize = 16;
const COOKIE_CHARS: usize = 22;

/// Displays the consent page for an authorization request.
pub(crate) fn show_request(
    app: &App,
    request: AuthorizationRequest,
    headers: &HeaderMap,
) -> Result<Reply, RandomError> {
    let request = Arc::new(request);
    show(
        app,
        Question::Request(Arc::clone(&request)),
        headers,
        |ticket, action, nonce| {
            let page = ConsentPage {
                client: &request.client,
                client_id: &request.client_id,
                scopes: &request.scopes,
                audience: request.audience.as_deref(),
                destination: Destination::Redirect(&request.redirect),
                user: suggested_user(&app.config, &request),
                ticket,
                action,
            };
            page.html(nonce)
        },
    )
}

/// Displays a consent page. Its ticket can be used once and only in this browser. `html` gets the
/// ticket, the target of the form, and the nonce of the style sheet.
pub(crate) fn show(
    app: &App,
    question: Question,
    headers: &HeaderMap,
    html: impl FnOnce(&str, &str, &str) -> String,
) -> Result<Reply, RandomError> {
    // An existing cookie is reused, so several pages can be open in one browser.
    let browser = match parse_cookie(headers) {
        Some(browser) => browser,
        None => random_secret(COOKIE_BYTES)?,
    };
    let ticket = Handle::generate()?;
    let action = app.config.path(Endpoint::Consent);
    let reply = respond::page(StatusCode::OK, |nonce| {
        html(ticket.as_str(), &action, nonce)
    })?;
    // SameSite is Lax, because a Strict cookie is not sent when another site links here, and each
    // page would then set a new one. Form posts from other sites send neither. Cookies do not
    // depend on the port, so the path separates the cookie from those of other local servers. The
    // cookie is not Secure because the server uses http.
    let cookie = format!(
        "{COOKIE_NAME}={}; Path={}; Max-Age={}; HttpOnly; SameSite=Lax",
        browser.secret(),
        app.config.path(Endpoint::Authorize),
        TICKET_LIFETIME.as_secs()
    );
    app.tickets.insert(&ticket, browser, question);
    Ok(respond::with_cookie(reply, &cookie))
}

/// Handles the submission of a consent page. Redirects to the client with a code or
/// `access_denied`, or answers the device authorization.
///
/// The submission must come from a page of this server (`Origin`), from the browser to which the
/// page was sent (cookie), and must be the first one (ticket).
pub(crate) async fn decide(
    app: &App,
    headers: &HeaderMap,
    form: &Params,
) -> Result<Reply, StoreError> {
    let reject = |status, reason| {
        tracing::warn!(
            consent.description = reason,
            "rejected a consent page submission"
        );
        Ok(respond::error_page(status, reason)?)
    };
    if !is_same_origin(headers) {
        return reject(
            StatusCode::FORBIDDEN,
            "The answer did not come from a page of this server.",
        );
    }
    let decision = match Decision::parse(form) {
        Ok(decision) => decision,
        Err(reason) => return reject(StatusCode::BAD_REQUEST, reason),
    };
    let Some(question) = redeem_ticket(app, headers, form) else {
        return reject(
            StatusCode::BAD_REQUEST,
            "This page was answered before, is older than ten minutes, or was shown in another browser. Start again from the application.",
        );
    };
    match question {
        Question::Request(request) => {
            let location = match decision {
                Decision::Allow { user } => {
                    let user = User {
                        subject: user,
                        auth_time: app.config.now(),
                    };
                    issue_code(app, &request, user).await?
                }
                Decision::Deny => {
                    let error =
                        ErrorResponse::new(ErrorCode::AccessDenied, "the user denied the request");
                    error_location(
                        &request.redirect,
                        request.state.as_deref(),
                        error,
                        app.config.response_issuer(),
                    )
                }
            };
            Ok(respond::redirect(StatusCode::SEE_OTHER, &location))
        }
        Question::Device(user_code) => {
            let user = match decision {
                Decision::Allow { user } => Some(user),
                Decision::Deny => None,
            };
            let is_approved = user.is_some();
            if !device::answer(app, &user_code, user) {
                return reject(
                    StatusCode::BAD_REQUEST,
                    "The code was answered before or has expired.",
                );
            }
            Ok(respond::page(StatusCode::OK, |nonce| {
                page::device_answered_html(is_approved, nonce)
            })?)
        }
    }
}

/// The answer of the user.
enum Decision {
    Allow { user: Box<str> },
    Deny,
}

impl Decision {
    /// Parses the answer in a submitted form. The error is a sentence for the user.
    fn parse(form: &Params) -> Result<Self, &'static str> {
        match form.get("decision") {
            Ok(Some("allow")) => {
                let user = form
                    .get("user")
                    .ok()
                    .flatten()
                    .map(str::trim)
                    .filter(|user| is_user_name(user));
                let user =
                    user.ok_or("A user name has 1 to 64 characters and no control characters.")?;
                Ok(Self::Allow { user: user.into() })
            }
            Ok(Some("deny")) => Ok(Self::Deny),
            _ => Err("The answer is neither allow nor deny."),
        }
    }
}

/// Returns the question of the form's ticket if the ticket belongs to this browser. The ticket is
/// removed.
fn redeem_ticket(app: &App, headers: &HeaderMap, form: &Params) -> Option<Question> {
    let ticket = Handle::parse(form.get("ticket").ok()??)?;
    app.tickets.redeem(&ticket, &parse_cookie(headers)?)
}

/// Returns whether `Origin` is the origin of this server.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let (Some(origin), Some(host)) = (headers.get(ORIGIN), headers.get(HOST)) else {
        return false;
    };
    origin
        .as_bytes()
        .strip_prefix(b"http://")
        .is_some_and(|origin| origin == host.as_bytes())
}

/// Returns the value of the consent cookie if it is well formed.
fn parse_cookie(headers: &HeaderMap) -> Option<Secret> {
    let pairs = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    let mut values =
        pairs.filter_map(|pair| pair.trim().strip_prefix(COOKIE_NAME)?.strip_prefix('='));
    let is_well_formed = |value: &&str| {
        value.len() == COOKIE_CHARS
            && value
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    values.find(is_well_formed).map(Secret::new)
}
