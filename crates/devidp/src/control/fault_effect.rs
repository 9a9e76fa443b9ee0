//! What a simulated fault does to a request.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, header::LOCATION};
use http_body_util::{BodyExt as _, Full};
use portcullis_metadata::Issuer;
use tokio::sync::watch;
use url::form_urlencoded;

use crate::{
    control::faults::{FaultKind, Faults},
    server::{
        endpoint::Endpoint,
        respond::{self, Reply},
    },
};

const MAX_HANG: Duration = Duration::from_secs(300);
const TRUNCATED_JSON: &[u8] = br#"{"keys":[{"kty":"RSA","#;
/// The issuer that replaces the real one. It has another host, so a client that does not compare
/// issuers contacts that host.
pub(crate) const WRONG_ISSUER: &str = "https://wrong-issuer.example";

/// What to do with a request.
pub(crate) enum FaultEffect {
    /// Handle the request normally.
    None,
    /// Handle the request and replace the issuer in the response.
    WrongIssuer,
    /// Send this response.
    Respond(Reply),
    /// Close the connection without a response.
    CloseConnection,
}

/// Takes the next fault for this endpoint, if any, and waits if it delays the response.
pub(crate) async fn apply(
    faults: &Faults,
    stop: &watch::Sender<bool>,
    endpoint: Endpoint,
) -> FaultEffect {
    let Some((at, kind)) = faults.take_next(endpoint) else {
        return FaultEffect::None;
    };
    tracing::warn!(fault.at = at.as_str(), fault.kind = ?kind, "a scripted fault applies");
    match kind {
        FaultKind::Delay(delay) => {
            wait(stop, delay).await;
            FaultEffect::None
        }
        FaultKind::Status(status) => {
            FaultEffect::Respond(respond::plain(status, "This is a scripted fault.\n"))
        }
        FaultKind::Garbage => {
            FaultEffect::Respond(respond::document(Bytes::from_static(TRUNCATED_JSON)))
        }
        FaultKind::Hang => {
            wait(stop, MAX_HANG).await;
            FaultEffect::CloseConnection
        }
        FaultKind::WrongIssuer => FaultEffect::WrongIssuer,
        FaultKind::Drop => FaultEffect::CloseConnection,
        // Such a fault is never at an endpoint.
        FaultKind::Token(_) => FaultEffect::None,
    }
}

/// Waits for a duration or until the server stops.
async fn wait(stop: &watch::Sender<bool>, duration: Duration) {
    let mut stopped = stop.subscribe();
    let stopped = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let _ = tokio::time::timeout(duration, stopped).await;
}

/// Replaces the issuer in the response's redirect or body.
pub(crate) async fn with_wrong_issuer(issuer: &Issuer, reply: Reply) -> Reply {
    let (mut head, body) = reply.into_parts();
    let Ok(body) = body.collect().await;
    let encoded =
        |issuer: &str| form_urlencoded::byte_serialize(issuer.as_bytes()).collect::<String>();
    let location = head
        .headers
        .get(LOCATION)
        .and_then(|location| location.to_str().ok());
    let location = location.map(|location| {
        let issuer = encoded(issuer.as_str());
        let wrong_issuer = encoded(WRONG_ISSUER);
        location.replace(&format!("iss={issuer}"), &format!("iss={wrong_issuer}"))
    });
    if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
        head.headers.insert(LOCATION, location);
    }
    let member = |issuer: &str| format!("\"issuer\":{}", serde_json::Value::from(issuer));
    let body = String::from_utf8_lossy(&body.to_bytes())
        .replace(&member(issuer.as_str()), &member(WRONG_ISSUER));
    Response::from_parts(head, Full::new(Bytes::from(body)))
}
