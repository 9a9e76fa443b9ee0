//! The text of all metrics: those of the current configuration and those of the process.

use portcullis_telemetry::metrics::{Exposition, family};
use portcullis_verifier::{IssuerHealth, TrustedIssuer};

use super::ServerState;

impl ServerState {
    /// Returns all metrics; `None` without metrics.
    pub(crate) fn metrics(&self) -> Option<String> {
        let process_metrics = self.process.observers.metrics.as_ref()?;
        let mut out = Exposition::default();
        for resource in &self.resources {
            let uri = resource.protected.resource().as_str();
            let labels = [("resource", uri)];
            if let Some(metrics) = &resource.metrics {
                metrics.write(&mut out, uri);
            }
            if let Some(verifier) = &resource.verifier {
                out.value(&family::CACHED_TOKENS, &labels, verifier.cached_tokens());
            }
            if let Some(connections) = &resource.upstream.connections {
                out.value(&family::UPSTREAM_CONNECTIONS, &labels, connections.open());
                out.value(
                    &family::UPSTREAM_CONNECTIONS_MAX,
                    &labels,
                    connections.max(),
                );
            }
        }
        for issuer in self.issuers() {
            write_issuer(&mut out, issuer);
        }
        let sessions = &self.process.sessions;
        out.value(&family::SESSIONS, &[], sessions.len());
        out.value(&family::SESSIONS_MAX, &[], self.process.max_sessions);
        out.value(&family::STREAMS, &[], self.process.streams.len());
        let budget = self.limits.body_budget_bytes();
        out.value(&family::BODY_BUDGET, &[], budget);
        out.value(
            &family::BODY_BUDGET_USED,
            &[],
            budget.saturating_sub(self.limits.body_budget.available()),
        );
        out.value(&family::ACCESS_DROPPED, &[], self.access().dropped());
        if let Some(audit) = &self.process.observers.audit {
            out.value(&family::AUDIT_WRITTEN, &[], audit.written());
            out.value(&family::AUDIT_LOST, &[], audit.lost());
        }
        let (status, _) = self.ready();
        out.value(&family::READY, &[], u8::from(status.is_success()));
        process_metrics.write(&mut out);
        Some(out.finish())
    }
}

fn write_issuer(out: &mut Exposition, issuer: &TrustedIssuer) {
    let labels = [("issuer", issuer.issuer().as_str())];
    let health = issuer.health();
    let activity = issuer.activity();
    out.value(
        &family::ISSUER_USABLE,
        &labels,
        u8::from(health.is_usable()),
    );
    if let IssuerHealth::Usable { keys, age } | IssuerHealth::Stale { keys, age, .. } = health {
        out.value(&family::ISSUER_KEYS, &labels, keys);
        out.value(&family::ISSUER_KEY_AGE, &labels, age.as_secs());
    }
    out.value(&family::ISSUER_FETCHES, &labels, activity.fetches);
    out.value(
        &family::ISSUER_FETCH_FAILURES,
        &labels,
        activity.fetch_failures,
    );
    out.value(&family::INTROSPECTIONS, &labels, activity.introspections);
    out.value(
        &family::INTROSPECTION_FAILURES,
        &labels,
        activity.introspection_failures,
    );
}
