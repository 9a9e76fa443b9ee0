//! The pages on which the user enters a user code and answers the device authorization (RFC 8628
//! section 3.3).

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{Params, RandomError};

use crate::{
    app::App,
    authorize::{
        consent,
        page::{self, ConsentPage, Destination},
        tickets::Question,
    },
    device::user_code::UserCode,
    server::{
        endpoint::Endpoint,
        respond::{self, Reply},
    },
};

/// Displays the page on which the user enters the user code.
pub(crate) fn show_entry(app: &App) -> Result<Reply, RandomError> {
    entry_page(app, StatusCode::OK, None)
}

/// Displays the consent page for the user code in the query, or the entry page if there is none.
/// The answer needs the ticket of the page and the same browser, as that to an authorization
/// request. The page shows the code, so that the user can compare it (RFC 8628 section 3.3.1).
pub(crate) fn show_consent(
    app: &App,
    query: &str,
    headers: &HeaderMap,
) -> Result<Reply, RandomError> {
    // After 100 wrong codes in a minute, no code is looked up, so codes cannot be guessed (RFC 8628
    // section 5.1).
    if app.devices.has_too_many_wrong_user_codes() {
        return respond::error_page(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many wrong codes were entered. Wait a minute.",
        );
    }
    let params = Params::parse(query.as_bytes());
    let user_code = match params.get("user_code") {
        Ok(None) => return show_entry(app),
        Ok(Some(typed)) => UserCode::parse(typed),
        Err(_) => None,
    };
    let pending =
        user_code.and_then(|user_code| Some((app.devices.find_pending(&user_code)?, user_code)));
    let Some((pending, user_code)) = pending else {
        app.devices.count_wrong_user_code()?;
        let message = "This code is wrong, was answered before, or is older than ten minutes.";
        return entry_page(app, StatusCode::BAD_REQUEST, Some(message));
    };
    let shown = user_code.to_string();
    consent::show(
        app,
        Question::Device(user_code),
        headers,
        |ticket, action, nonce| {
            let page = ConsentPage {
                client: &pending.client,
                client_id: &pending.client_id,
                scopes: &pending.scopes,
                audience: pending.audience.as_deref(),
                destination: Destination::Device(&shown),
                user: &app.config.settings.user,
                ticket,
                action,
            };
            page.html(nonce)
        },
    )
}

fn entry_page(app: &App, status: StatusCode, message: Option<&str>) -> Result<Reply, RandomError> {
    let action = app.config.path(Endpoint::DeviceConsent);
    respond::page(status, |nonce| {
        page::device_code_html(&action, message, nonce)
    })
}
