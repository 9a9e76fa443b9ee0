//! A sign-in in twelve steps, between which something happens.

use portcullis_scenarios::{BrokerClient, BrokerServer, Browser, McpSession, TokenPair};

use super::{Family, assert_invalid_grant, wait_until_rejected};

/// The steps of a sign-in and what follows, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Registered,
    ConsentShown,
    Approved,
    AtProvider,
    ProviderReturned,
    CodeIssued,
    Exchanged,
    SessionOpened,
    Refreshed,
    RefreshRepeated,
    RefreshedAgain,
    Revoked,
}

impl Step {
    pub(super) const ALL: [Self; 12] = [
        Self::Registered,
        Self::ConsentShown,
        Self::Approved,
        Self::AtProvider,
        Self::ProviderReturned,
        Self::CodeIssued,
        Self::Exchanged,
        Self::SessionOpened,
        Self::Refreshed,
        Self::RefreshRepeated,
        Self::RefreshedAgain,
        Self::Revoked,
    ];
}

/// What happens between the steps of a sign-in.
pub(super) trait Disturbance {
    /// Called after the response to a step has arrived.
    async fn after(&mut self, step: Step, server: &mut BrokerServer);
}

/// A client that signed in before, and whose grant goes on.
struct EarlierSignIn {
    client: BrokerClient,
    code: String,
    tokens: TokenPair,
}

/// Signs in, refreshes and signs out. Every step must succeed with what the steps before it
/// returned: everything that was answered is durable, and no user must sign in again. At the end,
/// used codes and used callbacks stay used, and the tokens of the ended grant stay rejected.
pub(super) async fn sign_in_and_out(server: &mut BrokerServer, disturbance: &mut impl Disturbance) {
    let earlier = EarlierSignIn::begin(server).await;
    let client = BrokerClient::register(server).await;
    disturbance.after(Step::Registered, server).await;
    let authorization = client.authorization(server, "/mcp", "");
    let mut browser = Browser::default();
    let page = browser.open(&authorization).await;
    disturbance.after(Step::ConsentShown, server).await;
    let provider = browser.approve(&authorization, &page).await;
    disturbance.after(Step::Approved, server).await;
    browser.open(&provider).await;
    disturbance.after(Step::AtProvider, server).await;
    let callback = browser.sign_in_at_provider(&provider, "alice").await;
    disturbance.after(Step::ProviderReturned, server).await;
    let location = browser.return_from_provider(&callback).await;
    let code = BrokerClient::code(server, &location).await;
    disturbance.after(Step::CodeIssued, server).await;
    let first = TokenPair::parse(&client.exchange(server, &code).await);
    disturbance.after(Step::Exchanged, server).await;
    let session = McpSession::open(server, &first.access).await;
    disturbance.after(Step::SessionOpened, server).await;
    let mut family = Family::default();
    let second = family.refresh(server, &client, &first.refresh).await;
    disturbance.after(Step::Refreshed, server).await;
    session.assert_usable(server, &second.access).await;
    family.refresh(server, &client, &first.refresh).await;
    disturbance.after(Step::RefreshRepeated, server).await;
    let third = family.refresh(server, &client, &second.refresh).await;
    disturbance.after(Step::RefreshedAgain, server).await;
    session.assert_usable(server, &third.access).await;
    client.revoke(server, &third.refresh).await;
    disturbance.after(Step::Revoked, server).await;

    for tokens in [&first, &second, &third] {
        assert_invalid_grant(&client.refresh(server, &tokens.refresh).await);
        wait_until_rejected(server, &tokens.access).await;
    }
    assert_invalid_grant(&client.exchange(server, &code).await);
    assert_eq!(browser.open(&callback).await.status, 400);
    earlier.end(server).await;
}

impl EarlierSignIn {
    async fn begin(server: &BrokerServer) -> Self {
        let client = BrokerClient::register(server).await;
        let authorization = client.authorization(server, "/mcp", "");
        let location = Browser::default().sign_in(&authorization, "bob").await;
        let code = BrokerClient::code(server, &location).await;
        let tokens = TokenPair::parse(&client.exchange(server, &code).await);
        Self {
            client,
            code,
            tokens,
        }
    }

    /// Checks that the grant exists, until the second use of its code ends it.
    async fn end(self, server: &BrokerServer) {
        McpSession::open(server, &self.tokens.access).await;
        let next = self.client.refresh(server, &self.tokens.refresh).await;
        let next = TokenPair::parse(&next);
        assert_invalid_grant(&self.client.exchange(server, &self.code).await);
        assert_invalid_grant(&self.client.refresh(server, &next.refresh).await);
        wait_until_rejected(server, &next.access).await;
    }
}
