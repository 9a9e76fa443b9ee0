//! Dropping of cached tokens, by an administrator here or at another replica, and of tokens that
//! another one has found inactive.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_endpoint::{StreamEndReason, StreamRequest};
use portcullis_session::{EndScope, ScopeId};
use portcullis_state_store::Revocations;
use portcullis_verifier::{InactiveTokens, TokenId, TrustedIssuer};

use super::Replicas;
use crate::state::ServerState;

/// The numbers of tokens and streams that were dropped with an issuer's cached tokens.
pub(crate) struct Dropped {
    pub(crate) tokens: usize,
    pub(crate) streams: usize,
}

/// Returns the id by which replicas name an issuer.
pub(crate) fn issuer_id(issuer: &TrustedIssuer) -> ScopeId {
    EndScope::Issuer(issuer.issuer().as_str()).id()
}

/// Drops the cached tokens of an issuer, and ends the streams that its tokens opened.
pub(crate) fn drop_issuer(state: &ServerState, issuer: &TrustedIssuer) -> Dropped {
    issuer.drop_cached_tokens();
    let tokens = state.verifiers().map(|verifier| verifier.sweep()).sum();
    let is_of_issuer = |request: &StreamRequest<'_>| {
        request
            .principal
            .is_some_and(|principal| principal.issuer() == issuer.issuer())
    };
    let streams = state
        .process()
        .streams
        .end(StreamEndReason::Administrator, is_of_issuer);
    Dropped { tokens, streams }
}

/// Applies what other replicas have found out about tokens to the current configuration.
pub(crate) struct CurrentRevocations(pub(crate) Arc<ArcSwap<ServerState>>);

impl Revocations for CurrentRevocations {
    fn drop_issuer(&self, issuer: ScopeId) {
        let state = self.0.load_full();
        let Some(issuer) = state
            .issuers()
            .find(|known| issuer_id(known) == issuer)
            .cloned()
        else {
            return;
        };
        // At once. What takes longer follows.
        issuer.drop_cached_tokens();
        tracing::info!(
            token.issuer = issuer.issuer().as_str(),
            "the issuer's cached tokens were dropped at another replica, and are dropped here"
        );
        tokio::spawn(async move {
            let of_issuer = Arc::clone(&issuer);
            drop(tokio::task::spawn_blocking(move || drop_issuer(&state, &of_issuer)).await);
            // If it fails, the former keys remain in use, as at the other replica.
            drop(issuer.refresh_now().await);
        });
    }

    fn drop_tokens(&self, tokens: &[[u8; 16]]) {
        let state = self.0.load();
        for verifier in state.verifiers() {
            for token in tokens {
                verifier.drop_token(TokenId(*token));
            }
        }
    }

    fn drop_introspected(&self) {
        self.0
            .load()
            .issuers()
            .for_each(|issuer| issuer.drop_introspected_tokens());
    }
}

impl InactiveTokens for Replicas {
    fn found(&self, token: TokenId) {
        self.share_inactive_token(token);
    }
}
