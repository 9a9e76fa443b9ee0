//! Grants of the broker: their list, and their end.

mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::StatusCode;
use portcullis_broker::{Broker, EndGrantsError, GrantSummary};
use portcullis_metadata::UnixTime;
use portcullis_telemetry::timestamp;

pub(super) use self::request::{EndGrants, ListGrants};
use super::response::AdminError;
use crate::{
    administration::{EndGrantsResult, GrantEntry, GrantList},
    state::ServerState,
};

/// Returns one page of the grants. Fails without a broker, or if its store cannot be read.
pub(super) async fn list(
    state: &ServerState,
    request: &ListGrants,
) -> Result<GrantList, AdminError> {
    let after = request.after.as_deref();
    let page = broker(state)?
        .grants(&request.filter, after, request.limit)
        .await
        .map_err(|_| unavailable("the grants cannot be read; the log has the cause"))?;
    let now = state.clock().now();
    Ok(GrantList {
        grants: page.grants.iter().map(|grant| entry(grant, now)).collect(),
        unreadable: page.unreadable,
        next: page.next.map(String::from),
    })
}

/// Ends some of the grants of a request, and sets how many, also if it fails. Their end is recorded
/// then. Fails without a broker, if the grant of the request is unknown, or if the store fails.
pub(super) async fn end(
    state: &ServerState,
    request: &EndGrants,
    grants_ended: &mut Option<usize>,
) -> Result<EndGrantsResult, AdminError> {
    let ended = broker(state)?
        .end_grants(&request.filter, request.after.as_deref())
        .await;
    let ended = match ended {
        Ok(ended) => ended,
        Err(EndGrantsError { ended, .. }) => {
            *grants_ended = Some(ended);
            let message = format!(
                "{ended} of the grants have ended, and the end of the others could not be recorded; the log has the cause; try again"
            );
            return Err(unavailable(message));
        }
    };
    *grants_ended = Some(ended.ended);
    if request.filter.id.is_some() && ended.ended == 0 {
        return Err(not_ended(ended.unreadable > 0));
    }
    Ok(EndGrantsResult {
        grants_ended: ended.ended,
        unreadable: ended.unreadable,
        next: ended.next.map(String::from),
    })
}

fn broker(state: &ServerState) -> Result<&Arc<Broker>, AdminError> {
    let message = "this server has no grants, because its configuration has no [broker]; its issuers have them";
    let missing = || AdminError::new(StatusCode::NOT_FOUND, "admin.broker_missing", message);
    state.broker().ok_or_else(missing)
}

fn unavailable(message: impl Into<std::borrow::Cow<'static, str>>) -> AdminError {
    AdminError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "admin.grants_unavailable",
        message,
    )
}

/// Returns the error for a grant that a request named and that did not end.
fn not_ended(is_unreadable: bool) -> AdminError {
    let message = match is_unreadable {
        true => {
            "the grant cannot be read, because its key has been removed or its record was changed: it cannot be refreshed"
        }
        false => "there is no grant with this identifier: it is not that of a grant, or has ended",
    };
    AdminError::new(StatusCode::NOT_FOUND, "admin.grant_unknown", message)
}

fn entry(grant: &GrantSummary, now: UnixTime) -> GrantEntry {
    let since = |time: UnixTime| now.saturating_duration_since(time).as_secs();
    GrantEntry {
        grant: grant.id.to_string(),
        subject: grant.subject.to_string(),
        client: grant.client_id.to_string(),
        provider: grant.provider.as_deref().map(str::to_owned),
        scopes: grant.scopes.to_string(),
        resource: grant.resource.as_deref().map(str::to_owned),
        begun: timestamp(grant.begun).to_string(),
        age_seconds: since(grant.begun),
        last_used: timestamp(grant.last_used).to_string(),
        unused_seconds: since(grant.last_used),
    }
}
