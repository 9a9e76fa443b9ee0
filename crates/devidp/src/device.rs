//! The device flow (RFC 8628): device authorizations and the endpoint that starts them.

mod user_code;
pub(crate) mod verification;

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use portcullis_metadata::{DeviceAuthorizationResponse, Scopes, Secret, UnixTime};

pub(crate) use self::user_code::UserCode;
use crate::{
    app::App,
    authentication::authenticate,
    authorize::{RefreshRequest, audience::parse_audience, scopes::grant_scopes},
    clients::{Client, grant_type::GrantType},
    handle::Handle,
    server::{
        endpoint::Endpoint,
        form::Params,
        oauth_error::{ErrorCode, ErrorResponse},
        respond::{Reply, json_error, json_reply},
    },
    tables::RowAction,
};

/// The time in which a device authorization can be answered and polled.
const LIFETIME: Duration = Duration::from_secs(600);
/// The time for which an expired device authorization is remembered, so that a poll learns that it has expired.
const RETENTION: Duration = Duration::from_secs(600);
/// The time for which the table keeps an entry.
pub(crate) const ENTRY_LIFETIME: Duration = Duration::from_secs(LIFETIME.as_secs() + RETENTION.as_secs());
/// The initial minimum time between two polls (RFC 8628 section 3.2).
const INTERVAL: Duration = Duration::from_secs(5);

/// A device authorization (RFC 8628 section 3.2). Its key in the table is the first half of the device code.
pub(crate) struct DeviceAuthorization {
    pub(crate) device_code: Handle,
    pub(crate) client_id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) scopes: Scopes,
    pub(crate) audience: Option<Box<str>>,
    pub(crate) is_refreshable: bool,
    pub(crate) answer: Answer,
    /// The monotonic time at which it expires.
    pub(crate) expires_at: Duration,
    /// The minimum time between two polls. Each poll that comes too early adds to it.
    pub(crate) interval: Duration,
    /// The monotonic time of the last poll.
    pub(crate) last_poll: Option<Duration>,
}

/// The user's answer to a device authorization.
#[derive(Clone)]
pub(crate) enum Answer {
    Pending,
    Approved { subject: Box<str>, auth_time: UnixTime },
    Denied,
}

/// Handles the device authorization endpoint (RFC 8628 section 3.1).
pub(crate) async fn authorize_device(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    start(app, headers, form).await.unwrap_or_else(|error| {
        tracing::info!(
            device.error = error.error.as_str(),
            device.description = error.description,
            "rejected a device authorization request"
        );
        json_error(error)
    })
}

async fn start(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, ErrorResponse> {
    let caller = authenticate(app, headers, form).await?;
    if !caller.client.may_use(GrantType::DeviceCode) {
        let description = "the client is not registered for the device code grant";
        return Err(ErrorResponse::new(ErrorCode::UnauthorizedClient, description));
    }
    let scopes = grant_scopes(app, &caller.client, form)?;
    let refresh = RefreshRequest::parse(app, &caller.client, form, &scopes)?;
    let clock = &app.settings.clock;
    let answer = if app.settings.auto_consent {
        Answer::Approved { subject: app.settings.user.as_str().into(), auth_time: clock.now() }
    } else {
        Answer::Pending
    };
    let (device_code, user_code) = (Handle::generate()?, UserCode::generate()?);
    let page = |endpoint: Endpoint| {
        let mut url = app.issuer.url().clone();
        url.set_path(&endpoint.path(&app.settings.issuer_path));
        url
    };
    let mut complete = page(Endpoint::DeviceConsent);
    complete.query_pairs_mut().append_pair("user_code", &user_code.to_string());
    let response = DeviceAuthorizationResponse {
        device_code: Secret::new(device_code.as_str()),
        user_code: user_code.to_string(),
        verification_uri: page(Endpoint::Device).into(),
        verification_uri_complete: Some(complete.into()),
        expires_in: LIFETIME.as_secs(),
        interval: Some(INTERVAL.as_secs()),
    };
    tracing::info!(client.id = &*caller.id, "started a device authorization");
    let id = device_code.id().to_owned();
    let authorization = DeviceAuthorization {
        device_code,
        client_id: caller.id,
        client: caller.client,
        scopes,
        audience: parse_audience(app, form)?,
        is_refreshable: refresh != RefreshRequest::No,
        answer,
        expires_at: clock.monotonic().saturating_add(LIFETIME),
        interval: INTERVAL,
        last_poll: None,
    };
    // Every entry is evictable, so this never fails.
    let _ = app.device_authorizations.insert(&id, authorization, |_| true);
    let _ = app.user_codes.insert(user_code.as_key(), id.into(), |_| true);
    Ok(json_reply(StatusCode::OK, response.to_json()))
}

/// The data of a device authorization that the user approves or denies.
pub(crate) struct PendingDevice {
    pub(crate) client_id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) scopes: Scopes,
    pub(crate) audience: Option<Box<str>>,
}

/// Returns the device authorization with a user code if it is not answered yet and has not expired.
pub(crate) fn find_pending(app: &App, user_code: &UserCode) -> Option<PendingDevice> {
    update_pending(app, user_code, |authorization| PendingDevice {
        client_id: authorization.client_id.clone(),
        client: Arc::clone(&authorization.client),
        scopes: authorization.scopes.clone(),
        audience: authorization.audience.clone(),
    })
}

/// Approves a device authorization for a user, or denies it if there is none. Returns whether the user code is that of a
/// device authorization that is not answered yet and has not expired.
pub(crate) fn answer(app: &App, user_code: &UserCode, subject: Option<Box<str>>) -> bool {
    let answer = match subject {
        Some(subject) => Answer::Approved { subject, auth_time: app.settings.clock.now() },
        None => Answer::Denied,
    };
    let is_approved = matches!(answer, Answer::Approved { .. });
    let client_id = update_pending(app, user_code, |authorization| {
        authorization.answer = answer;
        authorization.client_id.clone()
    });
    if let Some(client_id) = &client_id {
        app.user_codes.update(user_code.as_key(), |_| ((), RowAction::Remove));
        if is_approved {
            app.clients.update(client_id, |row| (row.used = true, RowAction::Renew));
        }
        tracing::info!(client.id = &**client_id, device.approved = is_approved, "a device authorization was answered");
    }
    client_id.is_some()
}

fn update_pending<R>(app: &App, user_code: &UserCode, f: impl FnOnce(&mut DeviceAuthorization) -> R) -> Option<R> {
    let id = app.user_codes.update(user_code.as_key(), |id| (id.clone(), RowAction::Keep))?;
    let now = app.settings.clock.monotonic();
    app.device_authorizations.update(&id, |authorization| {
        let is_pending = matches!(authorization.answer, Answer::Pending) && now < authorization.expires_at;
        (is_pending.then(|| f(authorization)), RowAction::Keep)
    })?
}
