use std::time::Duration;

use http::StatusCode;
use portcullis_session::EndTicket;
use tokio::time::timeout;

use super::{
    confirmation::{self, Unconfirmed},
    response::AdminError,
};
use crate::{
    administration::{DROP_NOT_SHARED, DropResult},
    replicas::revocations::{self, Dropped},
    state::ServerState,
};

/// How long a response waits for the issuer's keys.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Tokens that were dropped in this process, and that the other replicas drop.
#[must_use = "the drop is not confirmed"]
pub(super) struct Dropping {
    pub(super) result: DropResult,
    /// `None` without other replicas.
    ticket: Option<EndTicket>,
}

/// Fetches the keys and metadata of an issuer again, drops its cached tokens, ends the streams that
/// they opened, and begins to have the other replicas do the same. Fails if the issuer is not
/// configured.
pub(super) async fn begin(state: &ServerState, name: &str) -> Result<Dropping, AdminError> {
    let unknown = || {
        AdminError::unknown_issuer(
            "the issuer is not configured; write it exactly as in the configuration",
        )
    };
    let issuer = state
        .issuers()
        .find(|issuer| issuer.issuer().as_str() == name)
        .ok_or_else(unknown)?;
    // New keys first: a token that is verified meanwhile is not cached with the former ones.
    let keys_fetched = matches!(
        timeout(FETCH_TIMEOUT, issuer.refresh_now()).await,
        Ok(Ok(()))
    );
    let Dropped { tokens, streams } = revocations::drop_issuer(state, issuer);
    let replicas = state.process().replicas.as_ref();
    let ticket = replicas.map(|replicas| replicas.drop_tokens(revocations::issuer_id(issuer)));
    let result = DropResult {
        tokens_dropped: tokens,
        streams_ended: streams,
        keys_fetched,
    };
    Ok(Dropping { result, ticket })
}

impl Dropping {
    /// Waits until all replicas have dropped the tokens. Fails if one has not confirmed it in time.
    /// The tokens are dropped in this process.
    pub(super) async fn confirmed(self) -> Result<DropResult, AdminError> {
        let Err(unconfirmed) = confirmation::wait(self.ticket).await else {
            return Ok(self.result);
        };
        let message = match unconfirmed {
            Unconfirmed::Failed => {
                "the tokens are dropped in this process, and the other replicas could not be told: they drop them as soon as \
                 redis allows; try again"
            }
            Unconfirmed::TimedOut => {
                "the tokens are dropped in this process, and not all other replicas have confirmed it within 5 s: they drop \
                 them as soon as redis allows; try again"
            }
        };
        Err(AdminError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            DROP_NOT_SHARED,
            message,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C11, E13: a drop that not all replicas confirm is not confirmed.
    #[tokio::test(start_paused = true)]
    async fn a_drop_is_confirmed_when_all_replicas_know_it() {
        let result = || DropResult {
            tokens_dropped: 1,
            streams_ended: 0,
            keys_fetched: true,
        };
        for ticket in [None, Some(EndTicket::done())] {
            assert_eq!(
                Dropping {
                    result: result(),
                    ticket
                }
                .confirmed()
                .await
                .unwrap()
                .tokens_dropped,
                1
            );
        }
        let (_confirmation, pending) = EndTicket::pending();
        for ticket in [EndTicket::failed(), pending] {
            let error = Dropping {
                result: result(),
                ticket: Some(ticket),
            }
            .confirmed()
            .await
            .unwrap_err();
            assert_eq!(error.status, StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(error.code, "admin.drop_not_shared");
        }
    }
}
