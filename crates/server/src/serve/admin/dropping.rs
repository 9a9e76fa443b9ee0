//! Dropping of an issuer's cached tokens.

use std::time::Duration;

use portcullis_endpoint::{StreamEndReason, StreamRequest};
use tokio::time::timeout;

use super::{ending::unknown_issuer, response::AdminError};
use crate::{administration::DropResult, serve::state::ServerState};

/// How long a response waits for the issuer's keys.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Drops the cached tokens of an issuer, ends the streams that its tokens opened, and fetches its keys and metadata again.
///
/// # Errors
/// Fails if the issuer is not configured.
pub(super) async fn drop_tokens(state: &ServerState, name: &str) -> Result<DropResult, AdminError> {
    let issuer = state.issuers().find(|issuer| issuer.issuer().as_str() == name).ok_or_else(unknown_issuer)?;
    // New keys first: a token that is verified meanwhile is not cached with the former ones.
    let keys_fetched = matches!(timeout(FETCH_TIMEOUT, issuer.refresh_now()).await, Ok(Ok(())));
    issuer.drop_cached_tokens();
    let tokens_dropped = state.verifiers().map(|verifier| verifier.sweep()).sum();
    let is_of_issuer =
        |request: &StreamRequest<'_>| request.principal.is_some_and(|principal| principal.issuer().as_str() == name);
    let streams_ended = state.process().streams.end(StreamEndReason::Administrator, is_of_issuer);
    Ok(DropResult { tokens_dropped, streams_ended, keys_fetched })
}
