//! The log lines about the broker.

use portcullis_broker::{BrokerEvent, EndReason, logged_client_id};

/// Logs an event, without the user and without the query of a document's URL.
pub(super) fn log(event: &BrokerEvent<'_>) {
    match *event {
        BrokerEvent::ClientRegistered { client_id } => {
            tracing::info!(
                client.id = logged_client_id(client_id),
                "a client registered"
            );
        }
        BrokerEvent::Decided {
            client_id,
            is_approved,
        } => {
            tracing::info!(
                client.id = logged_client_id(client_id),
                consent.approved = is_approved,
                "a user decided about a client"
            );
        }
        BrokerEvent::SignedIn {
            provider,
            client_id,
            grant_id,
            ..
        } => {
            tracing::info!(
                provider.name = provider,
                client.id = logged_client_id(client_id),
                grant.id = grant_id,
                "a user signed in"
            );
        }
        // The broker logs the error itself, with its cause.
        BrokerEvent::ProviderFailed { .. } => {}
        BrokerEvent::TokenIssued {
            client_id,
            grant_id,
            is_refresh,
            ..
        } => {
            tracing::info!(
                client.id = logged_client_id(client_id),
                grant.id = grant_id,
                token.refreshed = is_refresh,
                "an access token was issued"
            );
        }
        BrokerEvent::Rejected {
            endpoint,
            error,
            description,
        } => {
            tracing::info!(
                broker.endpoint = endpoint,
                error.code = error,
                "the broker rejected a request: {description}"
            );
        }
        BrokerEvent::GrantEnded {
            grant_id, reason, ..
        } => {
            tracing::info!(
                grant.id = grant_id,
                grant.reason = reason.code(),
                "a grant ended"
            );
        }
        BrokerEvent::EndNotStored {
            grant_id, reason, ..
        } => {
            tracing::error!(
                grant.id = grant_id,
                grant.reason = reason.code(),
                "a grant ended in this process only, because its end cannot be stored: after a restart, and at other replicas, its \
                 tokens are valid; see why the broker cannot use its store, and end the grant again"
            );
        }
        BrokerEvent::GrantEndedElsewhere {
            grant_id, reason, ..
        } => {
            tracing::info!(
                grant.id = grant_id,
                grant.reason = reason.as_ref().map(EndReason::code),
                "a grant ended at another replica"
            );
        }
        _ => {}
    }
}
