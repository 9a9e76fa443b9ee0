//! The HTTP endpoints that control a running server.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header::ORIGIN};
use http_body_util::Full;
use serde::Deserialize;

use crate::{
    app::App,
    control::{
        Control,
        faults::{Fault, FaultKind, FaultPoint},
    },
    keys::OldKeys,
    server::{
        endpoint::Endpoint,
        respond::{Reply, plain},
    },
};

/// Returns whether a request does not come from a browser, which sends at least one of these headers. In addition, a
/// page of another site needs a CORS preflight for these requests, and preflights are rejected here.
pub(crate) fn is_not_from_browser(headers: &HeaderMap) -> bool {
    ["sec-fetch-site", "sec-fetch-mode"].iter().all(|name| !headers.contains_key(*name))
        && !headers.contains_key(ORIGIN)
}

/// Handles a request to an admin endpoint.
pub(crate) async fn handle(app: &Arc<App>, endpoint: Endpoint, method: &Method, body: &[u8]) -> Reply {
    let control = Control(Arc::clone(app));
    let result = match (endpoint, method) {
        (Endpoint::RotateKeys, _) => match parse_json::<Rotation>(body) {
            Err(reason) => Err(reason),
            Ok(Rotation { old_keys }) => {
                if control.rotate_keys(old_keys.unwrap_or_default().into()).await.is_err() {
                    return plain(StatusCode::INTERNAL_SERVER_ERROR, "The keys could not be generated.\n");
                }
                Ok(())
            }
        },
        (Endpoint::ForgetClients, _) => match parse_json::<ForgottenClient>(body) {
            Err(reason) => Err(reason),
            Ok(ForgottenClient { client_id: Some(id) }) if !control.forget_client(&id) => {
                return plain(StatusCode::NOT_FOUND, "No registered client has this identifier.\n");
            }
            Ok(ForgottenClient { client_id: Some(_) }) => Ok(()),
            Ok(ForgottenClient { client_id: None }) => {
                control.forget_all_clients();
                Ok(())
            }
        },
        (Endpoint::AnswerDevice, _) => match parse_json::<DeviceAnswer>(body) {
            Err(reason) => Err(reason),
            Ok(answer) => {
                let user = answer.user.as_deref().unwrap_or(&app.config.settings.user);
                let is_answered = match answer.decision {
                    DeviceDecision::Allow => control.approve_device(&answer.user_code, user),
                    DeviceDecision::Deny => control.deny_device(&answer.user_code),
                };
                if !is_answered {
                    let text = "The user code is unknown, answered or expired, or the user name is invalid.\n";
                    return plain(StatusCode::NOT_FOUND, text);
                }
                Ok(())
            }
        },
        (_, &Method::DELETE) => {
            control.clear_faults();
            Ok(())
        }
        _ => parse_json(body)
            .and_then(FaultRequest::into_fault)
            .and_then(|fault| control.inject(fault).map_err(|problem| problem.to_string())),
    };
    match result {
        Ok(()) => plain(StatusCode::NO_CONTENT, ""),
        Err(reason) => {
            let mut reply = plain(StatusCode::BAD_REQUEST, "");
            *reply.body_mut() = Full::new(Bytes::from(format!("{reason}\n")));
            reply
        }
    }
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
    kind: FaultName,
    status: Option<u16>,
    delay_ms: Option<u64>,
    times: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FaultName {
    Delay,
    Status,
    Garbage,
    Hang,
    WrongIssuer,
    Drop,
}

impl FaultRequest {
    /// Converts the request to a fault. The error is a sentence for the developer.
    fn into_fault(self) -> Result<Fault, String> {
        let at = FaultPoint::parse(&self.at).ok_or(
            "at must be metadata, jwks, register, client, authorize, device_authorization, token, introspect or revoke",
        )?;
        let kind = match (self.kind, self.status, self.delay_ms) {
            (FaultName::Delay, None, Some(delay)) => FaultKind::Delay(Duration::from_millis(delay)),
            (FaultName::Status, Some(status), None) => {
                FaultKind::Status(StatusCode::from_u16(status).map_err(|_| "status is not an HTTP status")?)
            }
            (FaultName::Garbage, None, None) => FaultKind::Garbage,
            (FaultName::Hang, None, None) => FaultKind::Hang,
            (FaultName::WrongIssuer, None, None) => FaultKind::WrongIssuer,
            (FaultName::Drop, None, None) => FaultKind::Drop,
            _ => {
                return Err(
                    "delay requires delay_ms, status requires status, and the other kinds have neither".to_owned()
                );
            }
        };
        Ok(Fault { at, kind, times: self.times })
    }
}

fn parse_json<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}
