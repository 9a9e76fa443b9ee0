//! [`Family`]: the refresh tokens of one grant.

use std::collections::BTreeMap;

use portcullis_scenarios::{BrokerClient, BrokerServer, TokenPair};

/// The refresh tokens of one grant. Each has one successor: a grant has no two branches.
#[derive(Default)]
pub(super) struct Family {
    successors: BTreeMap<String, String>,
}

impl Family {
    /// Refreshes a token, which must succeed, and checks its successor.
    pub(super) async fn refresh(
        &mut self,
        server: &BrokerServer,
        client: &BrokerClient,
        refresh_token: &str,
    ) -> TokenPair {
        let response = client.refresh(server, refresh_token).await;
        let pair = TokenPair::parse(&response);
        self.add(refresh_token, &pair);
        pair
    }

    /// Adds the response to a refresh. Panics if an earlier response had another refresh token.
    pub(super) fn add(&mut self, presented: &str, pair: &TokenPair) {
        assert_ne!(presented, pair.refresh, "a token is its own successor");
        let known = self
            .successors
            .entry(presented.to_owned())
            .or_insert_with(|| pair.refresh.clone());
        assert_eq!(*known, pair.refresh, "a token has two successors");
    }

    /// Returns the number of tokens that were replaced.
    pub(super) fn rotations(&self) -> usize {
        self.successors.len()
    }
}
