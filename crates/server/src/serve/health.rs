//! The report of `/readyz`: which issuers are usable, and whether the ends of other replicas are known.

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
/// the server shuts down. `replicas` says whether the connection to other replicas permits 200, with a report.
pub(super) fn ready<'a>(
    is_draining: bool,
    resources: impl Iterator<Item = Readiness<'a>>,
    replicas: Option<(bool, Value)>,
) -> (StatusCode, Value) {
    let (has_joined, shared) = replicas.map_or((true, None), |(has_joined, report)| (has_joined, Some(report)));
    let mut all_ready = has_joined && !is_draining;
    let resources: Vec<Value> = resources
        .map(|Readiness { endpoint, issuers }| {
            all_ready &= issuers.is_empty() || issuers.iter().any(|issuer| issuer.health().is_usable());
            let issuers: Vec<Value> = issuers.iter().map(|issuer| describe(issuer)).collect();
            json!({ "endpoint": endpoint, "issuers": issuers })
        })
        .collect();
    let status = if all_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut report = json!({ "ready": all_ready, "draining": is_draining, "resources": resources });
    if let Some(shared) = shared {
        report["shared"] = shared;
    }
    (status, report)
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
