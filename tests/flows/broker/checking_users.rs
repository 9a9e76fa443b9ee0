//! Users who are checked at the provider when a client refreshes. The shortest interval of these
//! checks is a minute, so that the long scenarios are left out of runs that are not full.

use std::time::Duration;

use portcullis_devidp::{Fault, FaultKind, FaultPoint};
use portcullis_scenarios::{
    BrokerClient, BrokerServer, BrokerSettings, EventStream, McpSession, ProviderKind, TokenPair,
    is_full_run,
};
use tokio::time::{Instant, sleep};

use super::assert_token_error;

/// Longer than `recheck`, which is a minute.
const RECHECK: Duration = Duration::from_secs(62);

/// A server that checks users after a minute, and its client.
struct Checked {
    server: BrokerServer,
    client: BrokerClient,
}

impl Checked {
    async fn start(kind: ProviderKind, broker: &'static str) -> Self {
        let settings = BrokerSettings {
            broker,
            ..BrokerSettings::of(kind)
        };
        let server = BrokerServer::with(settings).await;
        let client = BrokerClient::register(&server).await;
        Self { server, client }
    }

    async fn sign_in(&self, user: &str) -> TokenPair {
        self.client.sign_in(&self.server, user).await
    }

    async fn listen(&self, tokens: &TokenPair) -> (McpSession, EventStream) {
        let session = McpSession::open(&self.server, &tokens.access).await;
        let stream = session.listen(&self.server, &tokens.access).await;
        (session, stream)
    }

    async fn refresh(&self, tokens: &TokenPair) -> portcullis_scenarios::HttpResponse {
        self.client.refresh(&self.server, &tokens.refresh).await
    }

    fn fail_at(&self, at: FaultPoint, kind: FaultKind) {
        let fault = Fault {
            at,
            kind,
            times: None,
        };
        self.server.idp.control.inject(fault).unwrap();
    }
}

/// M4, US1: a user who was removed at the provider loses the tokens, sessions and streams at the
/// next refresh. Another user keeps them.
#[tokio::test]
async fn removed_users_lose_access_at_every_provider() {
    if !is_full_run() {
        return;
    }
    let mut started = Vec::new();
    for kind in ProviderKind::ALL {
        let checked = Checked::start(kind, "recheck = \"1m\"").await;
        let (alice, bob) = (checked.sign_in("alice").await, checked.sign_in("bob").await);
        let (alices, bobs) = (checked.listen(&alice).await, checked.listen(&bob).await);
        started.push((checked, alice, bob, alices, bobs));
    }
    sleep(RECHECK).await;
    for (checked, alice, bob, (session, mut stream), (others, mut open)) in started {
        let kind = checked.server.idp.kind;
        assert!(checked.server.idp.control.remove_user("alice"), "{kind:?}");
        session.assert_usable(&checked.server, &alice.access).await;
        stream.assert_open().await;
        let refused = checked.refresh(&alice).await;
        assert_token_error(&refused, 400, "invalid_grant");
        stream.assert_ended().await;
        let rejected = session.call(&checked.server, &alice.access, "add").await;
        assert_eq!(rejected.status, 401, "{kind:?}: {rejected:?}");
        assert!(checked.server.idp.control.restore_user("alice"));
        let again = checked.sign_in("alice").await;
        let ended = session.call(&checked.server, &again.access, "add").await;
        ended.assert_ended_session();

        let refreshed = TokenPair::parse(&checked.refresh(&bob).await);
        open.assert_open().await;
        others
            .assert_usable(&checked.server, &refreshed.access)
            .await;
    }
}

/// A client whose access token has expired refreshes, and continues in its session. The stream of
/// the expired token has ended.
#[tokio::test]
async fn expired_access_tokens_are_replaced() {
    if !is_full_run() {
        return;
    }
    let broker = "access_token_lifetime = \"1m\"\nrecheck = \"1m\"";
    let checked = Checked::start(ProviderKind::Keycloak, broker).await;
    let tokens = checked.sign_in("alice").await;
    let (session, mut stream) = checked.listen(&tokens).await;
    let deadline = Instant::now() + Duration::from_secs(150);
    while session
        .call(&checked.server, &tokens.access, "add")
        .await
        .status
        != 401
    {
        assert!(Instant::now() < deadline, "the token does not expire");
        sleep(Duration::from_secs(1)).await;
    }
    stream.assert_ended().await;
    let refreshed = TokenPair::parse(&checked.refresh(&tokens).await);
    session
        .assert_usable(&checked.server, &refreshed.access)
        .await;
}

/// M10, US2: while the provider is away, grants are kept up to `max_unchecked`. Then the refresh is
/// `temporarily_unavailable`, and the same token works when the provider is back.
#[tokio::test]
async fn an_outage_of_the_provider_signs_no_user_out() {
    if !is_full_run() {
        return;
    }
    let broker = "recheck = \"1m\"\nmax_unchecked = \"1m\"";
    let impatient = Checked::start(ProviderKind::Okta, broker).await;
    let patient = Checked::start(ProviderKind::GitHub, "recheck = \"1m\"").await;
    let strict = impatient.sign_in("alice").await;
    let kept = patient.sign_in("alice").await;
    sleep(RECHECK).await;

    patient.fail_at(FaultPoint::UserInfo, FaultKind::Drop);
    let kept = TokenPair::parse(&patient.refresh(&kept).await);
    McpSession::open(&patient.server, &kept.access).await;

    let unavailable = FaultKind::Status(http::StatusCode::SERVICE_UNAVAILABLE);
    impatient.fail_at(FaultPoint::Token, unavailable);
    let refused = impatient.refresh(&strict).await;
    assert_token_error(&refused, 503, "temporarily_unavailable");
    let session = McpSession::open(&impatient.server, &strict.access).await;
    session
        .assert_usable(&impatient.server, &strict.access)
        .await;
    impatient.server.idp.control.clear_faults();
    TokenPair::parse(&impatient.refresh(&strict).await);
}
