//! The HTTP endpoints that control a running server.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode, header::ORIGIN};
use serde::Deserialize;

use crate::{
    app::App,
    control::{
        Control,
        faults::{Fault, FaultKind, FaultPoint},
        token_faults::TokenFault,
    },
    keys::OldKeys,
    logout::LogoutError,
    server::{
        endpoint::Endpoint,
        respond::{Reply, plain},
    },
};

/// Returns whether a request does not come from a browser, which sends at least one of these
/// headers. In addition, a page of another site needs a CORS preflight for these requests, and
/// preflights are rejected here.
pub(crate) fn is_not_from_browser(headers: &HeaderMap) -> bool {
    ["sec-fetch-site", "sec-fetch-mode"]
        .iter()
        .all(|name| !headers.contains_key(*name))
        && !headers.contains_key(ORIGIN)
}

/// Handles a request to an admin endpoint.
pub(crate) async fn handle(
    app: &Arc<App>,
    endpoint: Endpoint,
    method: &Method,
    body: &[u8],
) -> Reply {
    let control = Control(Arc::clone(app));
    let result = match endpoint {
        Endpoint::RotateKeys => rotate_keys(&control, body).await,
        Endpoint::ForgetClients => forget_clients(&control, body),
        Endpoint::AnswerDevice => answer_device(&control, body),
        Endpoint::ChangeUser => change_user(&control, body),
        Endpoint::LogOut => log_out(&control, body).await,
        _ if *method == Method::DELETE => {
            control.clear_faults();
            Ok(())
        }
        _ => inject_fault(&control, body),
    };
    match result {
        Ok(()) => plain(StatusCode::NO_CONTENT, ""),
        Err(AdminError { status, reason }) => plain(status, format!("{reason}\n")),
    }
}

/// Why a request to an admin endpoint fails. The reason is a sentence for the developer.
struct AdminError {
    status: StatusCode,
    reason: String,
}

impl AdminError {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
        }
    }

    fn bad_request(reason: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason.to_string())
    }
}

async fn rotate_keys(control: &Control, body: &[u8]) -> Result<(), AdminError> {
    let Rotation { old_keys } = parse_json(body)?;
    control
        .rotate_keys(old_keys.unwrap_or_default().into())
        .await
        .map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot rotate the signing keys"
            );
            AdminError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The keys could not be generated.",
            )
        })
}

fn forget_clients(control: &Control, body: &[u8]) -> Result<(), AdminError> {
    let ForgottenClient { client_id } = parse_json(body)?;
    let Some(id) = client_id else {
        control.forget_all_clients();
        return Ok(());
    };
    if !control.forget_client(&id) {
        return Err(AdminError::new(
            StatusCode::NOT_FOUND,
            "No registered client has this identifier.",
        ));
    }
    Ok(())
}

fn answer_device(control: &Control, body: &[u8]) -> Result<(), AdminError> {
    let DeviceAnswer {
        user_code,
        decision,
        user,
    } = parse_json(body)?;
    let user = user.as_deref().unwrap_or(&control.0.config.settings.user);
    let is_answered = match decision {
        DeviceDecision::Allow => control.approve_device(&user_code, user),
        DeviceDecision::Deny => control.deny_device(&user_code),
    };
    if !is_answered {
        let reason = "The user code is unknown, answered or expired, or the user name is invalid.";
        return Err(AdminError::new(StatusCode::NOT_FOUND, reason));
    }
    Ok(())
}

fn change_user(control: &Control, body: &[u8]) -> Result<(), AdminError> {
    let UserChange { user, action } = parse_json(body)?;
    let is_changed = match action {
        UserAction::Remove => control.remove_user(&user),
        UserAction::Restore => control.restore_user(&user),
    };
    if !is_changed {
        let reason = "The user is in this state already, or the name is invalid.";
        return Err(AdminError::new(StatusCode::NOT_FOUND, reason));
    }
    Ok(())
}

async fn log_out(control: &Control, body: &[u8]) -> Result<(), AdminError> {
    let LoggedOut { user } = parse_json(body)?;
    control
        .log_out(&user)
        .await
        .map(drop)
        .map_err(|error| match error {
            LogoutError::NoSession => AdminError::new(StatusCode::NOT_FOUND, error.to_string()),
            _ => AdminError::new(StatusCode::BAD_GATEWAY, error.to_string()),
        })
}

fn inject_fault(control: &Control, body: &[u8]) -> Result<(), AdminError> {
    let request: FaultRequest = parse_json(body)?;
    let fault = request.into_fault().map_err(AdminError::bad_request)?;
    control.inject(fault).map_err(AdminError::bad_request)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgottenClient {
    client_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceAnswer {
    user_code: String,
    decision: DeviceDecision,
    user: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeviceDecision {
    Allow,
    Deny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserChange {
    user: String,
    action: UserAction,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum UserAction {
    Remove,
    Restore,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoggedOut {
    user: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotation {
    old_keys: Option<OldKeysName>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OldKeysName {
    #[default]
    Keep,
    Withdraw,
}

impl From<OldKeysName> for OldKeys {
    fn from(name: OldKeysName) -> Self {
        match name {
            OldKeysName::Keep => Self::Keep,
            OldKeysName::Withdraw => Self::Withdraw,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultRequest {
    at: String,
    kind: String,
    status: Option<u16>,
    delay_ms: Option<u64>,
    times: Option<NonZeroU32>,
}

const UNKNOWN_KIND: &str = "kind must be delay, status, garbage, hang, wrong_issuer, drop, or the fault of a token: wrong_audience, wrong_azp, wrong_nonce, no_nonce, wrong_subject, expired, alg_none, unknown_key, wrong_signature, groups_overage or no_token";

impl FaultRequest {
    /// Converts the request to a fault. The error is a sentence for the developer.
    fn into_fault(self) -> Result<Fault, &'static str> {
        let at = FaultPoint::parse(&self.at).ok_or(
            "at must be metadata, jwks, register, client, authorize, device_authorization, token, introspect, revoke, userinfo, id_token or logout_token",
        )?;
        let kind = match (&*self.kind, self.status, self.delay_ms) {
            ("delay", None, Some(delay)) => FaultKind::Delay(Duration::from_millis(delay)),
            ("status", Some(status), None) => FaultKind::Status(
                StatusCode::from_u16(status).map_err(|_| "status is not an HTTP status")?,
            ),
            ("garbage", None, None) => FaultKind::Garbage,
            ("hang", None, None) => FaultKind::Hang,
            ("wrong_issuer", None, None) => FaultKind::WrongIssuer,
            ("drop", None, None) => FaultKind::Drop,
            ("delay" | "status" | "garbage" | "hang" | "wrong_issuer" | "drop", ..) => {
                return Err(
                    "delay requires delay_ms, status requires status, and the other kinds have neither",
                );
            }
            (name, None, None) => FaultKind::Token(TokenFault::parse(name).ok_or(UNKNOWN_KIND)?),
            _ => return Err(UNKNOWN_KIND),
        };
        Ok(Fault {
            at,
            kind,
            times: self.times,
        })
    }
}

fn parse_json<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, AdminError> {
    serde_json::from_slice(body).map_err(AdminError::bad_request)
}
