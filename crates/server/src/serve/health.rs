//! The report of `/readyz`: which issuers are usable.

use std::sync::Arc;

use http::StatusCode;
use portcullis_verifier::{IssuerHealth, TrustedIssuer};
use serde_json::{Value, json};

/// The issuers of one resource.
pub(super) struct Readiness<'a> {
    pub(super) endpoint: &'a str,
    pub(super) issuers: &'a [Arc<TrustedIssuer>],
}

/// Returns 200 if every resource that requires tokens has an issuer whose tokens can be verified, and 503 otherwise and while
/// the server shuts down.
pub(super) fn ready<'a>(is_draining: bool, resources: impl Iterator<Item = Readiness<'a>>) -> (StatusCode, Value) {
    let mut all_ready = !is_draining;
    let resources: Vec<Value> = resources
        .map(|Readiness { endpoint, issuers }| {
            all_ready &= issuers.is_empty() || issuers.iter().any(|issuer| issuer.health().is_usable());
            let issuers: Vec<Value> = issuers.iter().map(|issuer| describe(issuer)).collect();
            json!({ "endpoint": endpoint, "issuers": issuers })
        })
        .collect();
    let status = if all_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, json!({ "ready": all_ready, "draining": is_draining, "resources": resources }))
}

fn describe(issuer: &TrustedIssuer) -> Value {
    let health = issuer.health();
    let (state, reason) = match health {
        IssuerHealth::Usable { .. } => ("usable", None),
        IssuerHealth::Introspected { reason } => ("introspected", reason),
        IssuerHealth::Stale { reason, .. } => ("stale", reason),
        IssuerHealth::Pending => ("not asked yet", None),
        IssuerHealth::Failed { reason } => ("failed", Some(reason)),
        _ => ("unknown", None),
    };
    json!({ "issuer": issuer.issuer().as_str(), "usable": health.is_usable(), "state": state, "reason": reason })
}
