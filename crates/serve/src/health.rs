//! The report of `/readyz`: which issuers are usable, and whether the ends of other replicas are
//! known.

use std::sync::Arc;

use http::StatusCode;
use portcullis_verifier::{IssuerHealth, TrustedIssuer};
use serde_json::{Value, json};

/// The issuers of one resource.
pub(super) struct Readiness<'a> {
    pub(super) endpoint: &'a str,
    pub(super) issuers: &'a [Arc<TrustedIssuer>],
}

/// Whether the connection to other replicas permits that clients are sent to this one, with the
/// report about it.
pub(crate) struct ReplicaReadiness {
    pub(crate) is_ready: bool,
    pub(crate) report: Value,
}

/// Returns 200 if every resource that requires tokens has an issuer whose tokens can be verified,
/// and 503 otherwise and while the server shuts down, or the connection to other `replicas` does
/// not permit it. Also returns the report.
pub(super) fn ready<'a>(
    is_draining: bool,
    resources: impl Iterator<Item = Readiness<'a>>,
    replicas: Option<ReplicaReadiness>,
) -> (StatusCode, Value) {
    let mut all_ready = !is_draining && replicas.as_ref().is_none_or(|replicas| replicas.is_ready);
    let resources: Vec<Value> = resources
        .map(|Readiness { endpoint, issuers }| {
            all_ready &=
                issuers.is_empty() || issuers.iter().any(|issuer| issuer.health().is_usable());
            let issuers: Vec<Value> = issuers.iter().map(|issuer| describe(issuer)).collect();
            json!({ "endpoint": endpoint, "issuers": issuers })
        })
        .collect();
    let status = if all_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let mut report = json!({ "ready": all_ready, "draining": is_draining, "resources": resources });
    if let Some(replicas) = replicas {
        report["shared"] = replicas.report;
    }
    (status, report)
}

/// Returns the state of an issuer, and why its tokens cannot be verified.
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
