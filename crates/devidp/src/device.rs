//! The device authorization endpoint (RFC 8628 section 3.1), and the user's answer.

pub(crate) mod authorizations;
pub(crate) mod user_code;
pub(crate) mod verification;

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params, Policy, RefreshRequest, client::GrantType,
};
use portcullis_metadata::{Secret, authorization::DeviceAuthorizationResponse};

use crate::{
    app::App,
    authentication::authenticate,
    config::Config,
    device::{
        authorizations::{Answer, DeviceRequest, INTERVAL, LIFETIME},
        user_code::UserCode,
    },
    handle::Handle,
    server::{
        endpoint::Endpoint,
        respond::{Reply, json_error, json_reply},
    },
};

/// Handles the device authorization endpoint.
pub(crate) async fn authorize_device(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    start(app, headers, form).await.unwrap_or_else(|error| {
        tracing::info!(
            device.error = error.code.as_str(),
            device.description = error.description,
            "rejected a device authorization request"
        );
        json_error(error)
    })
}

async fn start(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, ErrorResponse> {
    let config = &app.config;
    let caller = authenticate(app, headers, form).await?;
    if !caller.client.may_use(GrantType::DeviceCode) {
        let description = "the client is not registered for the device code grant";
        return Err(ErrorResponse::new(
            ErrorCode::UnauthorizedClient,
            description,
        ));
    }
    let scopes = config.scopes(&caller.client, form)?;
    let refresh = config.refresh(&caller.client, form, &scopes)?;
    let device_code = Handle::generate()?;
    let user_code = UserCode::generate()?;
    let request = DeviceRequest {
        client_id: caller.id,
        client: caller.client,
        scopes,
        audience: config.audience(form)?,
        is_refreshable: refresh != RefreshRequest::No,
    };
    let answer = if config.settings.auto_consent {
        Answer::Approved {
            subject: config.settings.user.as_str().into(),
            auth_time: config.now(),
        }
    } else {
        Answer::Pending
    };
    tracing::info!(
        client.id = &*request.client_id,
        "started a device authorization"
    );
    let response = response(config, &device_code, &user_code);
    app.devices.start(device_code, &user_code, request, answer);
    Ok(json_reply(StatusCode::OK, response.to_json()))
}

/// Returns the device authorization response (RFC 8628 section 3.2).
fn response(
    config: &Config,
    device_code: &Handle,
    user_code: &UserCode,
) -> DeviceAuthorizationResponse {
    let mut complete = config.url(Endpoint::DeviceConsent);
    complete
        .query_pairs_mut()
        .append_pair("user_code", &user_code.to_string());
    DeviceAuthorizationResponse {
        device_code: Secret::new(device_code.as_str()),
        user_code: user_code.to_string(),
        verification_uri: config.url(Endpoint::Device).into(),
        verification_uri_complete: Some(complete.into()),
        expires_in: LIFETIME.as_secs(),
        interval: Some(INTERVAL.as_secs()),
    }
}

/// Approves a device authorization for a user, or denies it if there is none. Returns whether the
/// user code is that of a device authorization that is not answered yet and has not expired.
pub(crate) fn answer(app: &App, user_code: &UserCode, subject: Option<Box<str>>) -> bool {
    let is_approved = subject.is_some();
    let answer = match subject {
        Some(subject) => Answer::Approved {
            subject,
            auth_time: app.config.now(),
        },
        None => Answer::Denied,
    };
    let Some(client_id) = app.devices.answer(user_code, answer) else {
        return false;
    };
    if is_approved {
        app.clients.record_approval(&client_id);
    }
    tracing::info!(
        client.id = &*client_id,
        device.approved = is_approved,
        "a device authorization was answered"
    );
    true
}
