use std::sync::atomic::{AtomicU64, Ordering};

use super::{codes::CodeCounts, exposition::Exposition, family, pairs::PairCounts};

/// The counts of the broker.
#[derive(Debug, Default)]
pub struct BrokerMetrics {
    clients_registered: AtomicU64,
    consents: CodeCounts,
    sign_ins: PairCounts,
    tokens_issued: CodeCounts,
    grants_ended: CodeCounts,
    rejected: PairCounts,
}

impl BrokerMetrics {
    /// Counts the registration of a client.
    pub fn client_registered(&self) {
        self.clients_registered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the decision of a user about a client.
    pub fn decided(&self, is_approved: bool) {
        self.consents
            .add(if is_approved { "approved" } else { "denied" });
    }

    /// Counts a sign-in at a configured provider.
    pub fn signed_in(&self, provider: &str) {
        self.sign_ins.add_named(provider, "succeeded");
    }

    /// Counts a sign-in at a configured provider, or a check of a user, that failed, by reason
    /// code.
    pub fn provider_failed(&self, provider: &str, code: &'static str) {
        self.sign_ins.add_named(provider, code);
    }

    /// Counts an access token that was issued.
    pub fn token_issued(&self, is_refresh: bool) {
        self.tokens_issued
            .add(if is_refresh { "refresh" } else { "code" });
    }

    /// Counts the end of a grant, by reason code.
    pub fn grant_ended(&self, reason: &'static str) {
        self.grants_ended.add(reason);
    }

    /// Counts a rejected request, by endpoint and OAuth error code.
    pub fn rejected(&self, endpoint: &'static str, error: &'static str) {
        self.rejected.add(endpoint, error);
    }

    pub(super) fn write(&self, out: &mut Exposition) {
        out.value(
            &family::BROKER_CLIENTS_REGISTERED,
            &[],
            self.clients_registered.load(Ordering::Relaxed),
        );
        self.consents
            .write(out, &family::BROKER_CONSENTS, "decision", &[]);
        self.sign_ins
            .write(out, &family::BROKER_SIGN_INS, ["provider", "result"]);
        self.tokens_issued
            .write(out, &family::BROKER_TOKENS_ISSUED, "kind", &[]);
        self.grants_ended
            .write(out, &family::BROKER_GRANTS_ENDED, "reason", &[]);
        self.rejected
            .write(out, &family::BROKER_REJECTED, ["endpoint", "error"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the broker did is counted by configured names and codes of the program.
    #[test]
    fn events_are_counted() {
        let metrics = BrokerMetrics::default();
        metrics.client_registered();
        metrics.decided(true);
        metrics.signed_in("entra");
        metrics.signed_in("entra");
        metrics.provider_failed("entra", "provider.unreachable");
        metrics.token_issued(true);
        metrics.grant_ended("grant.revoked");
        metrics.rejected("token", "invalid_grant");
        metrics.rejected("token", "invalid_client");
        let mut out = Exposition::default();
        metrics.write(&mut out);
        let text = out.finish();
        for line in [
            "portcullis_broker_clients_registered_total 1",
            "portcullis_broker_consents_total{decision=\"approved\"} 1",
            "portcullis_broker_sign_ins_total{provider=\"entra\",result=\"succeeded\"} 2",
            "portcullis_broker_sign_ins_total{provider=\"entra\",result=\"provider.unreachable\"} 1",
            "portcullis_broker_tokens_issued_total{kind=\"refresh\"} 1",
            "portcullis_broker_grants_ended_total{reason=\"grant.revoked\"} 1",
            "portcullis_broker_rejected_total{endpoint=\"token\",error=\"invalid_grant\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
