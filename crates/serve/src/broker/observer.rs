//! [`BrokerEvents`]: reports what happened at the broker, and ends what depends on an ended grant.

mod log;

use portcullis_audit::{BrokerAction, BrokerEvent as Audited};
use portcullis_broker::{BrokerEvent, BrokerObserver, EndReason, GrantOwner};
use portcullis_endpoint::{StreamEndReason, StreamRequest};
use portcullis_metadata::{Issuer, UnixTime};
use portcullis_session::{EndReason as SessionEndReason, EndScope, EndTicket};
use portcullis_telemetry::metrics::BrokerMetrics;
use portcullis_verifier::Principal;
use serde_json::Value;

use crate::{sessions::unrecorded, state::Process};

/// Logs, audits and counts what happened at the broker. When a grant ends, ends its streams; when
/// its user lost access, ends the sessions and streams of the user with all clients.
pub(crate) struct BrokerEvents {
    process: Process,
    issuer: Issuer,
}

impl BrokerEvents {
    /// Returns the observer of the broker that is this issuer.
    pub(crate) fn new(process: &Process, issuer: Issuer) -> Self {
        let observer = Self {
            process: process.clone(),
            issuer,
        };
        // The counts exist from the start on, not from the first event on.
        observer.metrics();
        observer
    }

    fn metrics(&self) -> Option<&BrokerMetrics> {
        let metrics = self.process.observers.metrics.as_ref();
        metrics.map(|metrics| metrics.broker())
    }

    fn audit(&self, event: &BrokerEvent<'_>) {
        if let Some(audit) = &self.process.observers.audit
            && let Some(action) = action(self.issuer.as_str(), event)
        {
            audit.brokered(&action);
        }
    }

    /// The access tokens of the grant are rejected already, so that nothing new is opened with
    /// them.
    fn grant_ended(&self, grant_id: &str, owner: Option<GrantOwner<'_>>, reason: EndReason) {
        let user = owner
            .filter(|_| reason.is_about_user())
            .map(|owner| owner.subject);
        if let Some(subject) = user {
            self.end_sessions(subject);
        }
        self.end_streams(grant_id, user, |_| true);
    }

    /// The other replica has reported the end, and has ended the sessions of the user everywhere.
    fn grant_ended_elsewhere(
        &self,
        grant_id: &str,
        owner: Option<GrantOwner<'_>>,
        reason: Option<EndReason>,
        at: UnixTime,
    ) {
        let user = owner
            .filter(|_| reason.is_some_and(EndReason::is_about_user))
            .map(|owner| owner.subject);
        // The user may have signed in again before this replica learned of the end.
        let was_issued_before = |principal: &Principal| {
            let issued = principal.claims().get("iat").and_then(Value::as_u64);
            issued.is_none_or(|issued| issued <= at.as_secs())
        };
        self.end_streams(grant_id, user, was_issued_before);
    }

    /// Ends the streams of a grant and, if there is a user, those that were opened with a token of
    /// the user that `is_of_end` selects.
    fn end_streams(
        &self,
        grant_id: &str,
        user: Option<&str>,
        is_of_end: impl Fn(&Principal) -> bool,
    ) {
        let is_ended = |request: &StreamRequest<'_>| {
            request.principal.is_some_and(|principal| {
                let is_of_grant =
                    principal.claims().get("sid").and_then(Value::as_str) == Some(grant_id);
                let is_of_user =
                    user.is_some() && principal.subject() == user && is_of_end(principal);
                *principal.issuer() == self.issuer && (is_of_grant || is_of_user)
            })
        };
        let streams = self
            .process
            .streams
            .end(StreamEndReason::GrantEnded, is_ended);
        if streams > 0 {
            tracing::info!(
                grant.id = grant_id,
                streams.ended = streams,
                "event streams ended with a grant"
            );
        }
    }

    /// Ends the sessions of a user with all clients, including those that are in no table.
    fn end_sessions(&self, subject: &str) {
        let scope = EndScope::Subject {
            issuer: self.issuer.as_str(),
            subject,
        };
        let ended = self
            .process
            .sessions
            .end_scope(scope, SessionEndReason::SignedOut);
        self.process.upstream_ends.add_all(&ended.sessions);
        self.report_unrecorded(ended.ticket);
    }

    /// Reports later if the end of the sessions is not recorded.
    fn report_unrecorded(&self, ticket: EndTicket) {
        let Some(broker) = &self.process.broker else {
            return;
        };
        let audit = self.process.observers.audit.clone();
        broker.control.spawn(async move {
            let count = unrecorded::count_unrecorded(vec![ticket]).await;
            if count == 0 {
                return;
            }
            tracing::warn!(
                error.code = "session.end_not_recorded",
                ends.unrecorded = count,
                "sessions of a user whose sign-in ended are known after a restart, although no token is accepted for them: their end could \
                 not be recorded; restore state_dir"
            );
            if let Some(audit) = audit {
                audit.ends_not_recorded(count);
            }
        });
    }
}

impl BrokerObserver for BrokerEvents {
    fn observe(&self, event: &BrokerEvent<'_>) {
        log::log(event);
        self.audit(event);
        if let Some(metrics) = self.metrics() {
            count(metrics, event);
        }
        match *event {
            BrokerEvent::GrantEnded {
                grant_id,
                owner,
                reason,
            }
            | BrokerEvent::EndNotStored {
                grant_id,
                owner,
                reason,
            } => self.grant_ended(grant_id, owner, reason),
            BrokerEvent::GrantEndedElsewhere {
                grant_id,
                owner,
                reason,
                at,
            } => self.grant_ended_elsewhere(grant_id, owner, reason, at),
            _ => {}
        }
    }
}

fn count(metrics: &BrokerMetrics, event: &BrokerEvent<'_>) {
    match *event {
        BrokerEvent::ClientRegistered { .. } => metrics.client_registered(),
        BrokerEvent::Decided { is_approved, .. } => metrics.decided(is_approved),
        BrokerEvent::SignedIn { provider, .. } => metrics.signed_in(provider),
        BrokerEvent::ProviderFailed { provider, code } => metrics.provider_failed(provider, code),
        BrokerEvent::TokenIssued { is_refresh, .. } => metrics.token_issued(is_refresh),
        BrokerEvent::Rejected {
            endpoint, error, ..
        } => metrics.rejected(endpoint, error),
        BrokerEvent::GrantEnded { reason, .. } => metrics.grant_ended(reason.code()),
        _ => {}
    }
}

/// Returns what is audited. `None` for a rejected request, because anybody can send many, for an
/// end that is not stored, because it is audited as soon as it is, and for an end at another
/// replica, which audits it.
fn action<'a>(issuer: &'a str, event: &BrokerEvent<'a>) -> Option<BrokerAction<'a>> {
    let of = |event| BrokerAction {
        event,
        issuer,
        subject: None,
        client: None,
        grant: None,
        provider: None,
    };
    Some(match *event {
        BrokerEvent::ClientRegistered { client_id } => BrokerAction {
            client: Some(client_id),
            ..of(Audited::ClientRegistered)
        },
        BrokerEvent::Decided {
            client_id,
            is_approved,
        } => BrokerAction {
            client: Some(client_id),
            ..of(Audited::ConsentDecided { is_approved })
        },
        BrokerEvent::SignedIn {
            provider,
            subject,
            client_id,
            grant_id,
        } => BrokerAction {
            subject: Some(subject),
            client: Some(client_id),
            grant: Some(grant_id),
            provider: Some(provider),
            ..of(Audited::SignedIn)
        },
        BrokerEvent::ProviderFailed { provider, code } => BrokerAction {
            provider: Some(provider),
            ..of(Audited::ProviderFailed { code })
        },
        BrokerEvent::TokenIssued {
            subject,
            client_id,
            grant_id,
            is_refresh,
        } => BrokerAction {
            subject: Some(subject),
            client: Some(client_id),
            grant: Some(grant_id),
            ..of(Audited::TokenIssued { is_refresh })
        },
        BrokerEvent::GrantEnded {
            grant_id,
            owner,
            reason,
        } => BrokerAction {
            subject: owner.map(|owner| owner.subject),
            client: owner.map(|owner| owner.client_id),
            grant: Some(grant_id),
            ..of(Audited::GrantEnded {
                reason: reason.code(),
            })
        },
        _ => return None,
    })
}
