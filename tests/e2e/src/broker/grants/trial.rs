//! [`Trial`]: users at one real provider, from the sign-in to each end of a grant.

use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use portcullis_scenarios::{
    BrokerClient, BrokerServer, EventStream, EventStreams, HttpResponse, McpSession, TIMEOUT,
    TokenPair,
};
use tokio::time::{Instant, sleep_until, timeout};
use url::Url;

use crate::{
    cell::{Cell, catching_panics},
    expect,
    keycloak::KeycloakForBroker,
    oidc_provider::OidcProviderForBroker,
    pages::{self, Cookies, UserInput},
    progress::Progress,
    recorder::Recorder,
};

/// Longer than `recheck`, which is a minute.
const RECHECK: Duration = Duration::from_secs(62);
/// The time limit of the wait for the next check.
const RECHECK_LIMIT: Duration = Duration::from_secs(90);
const PAGE_LIMIT: Duration = Duration::from_secs(60);

const ADMIN_TOOL: &str = "admin_reset";
const BOTH_SCOPES: &str = "mcp:admin mcp:tools";

/// A real provider.
#[derive(Clone, Copy)]
pub(super) enum Real<'a> {
    Keycloak(&'a KeycloakForBroker),
    OidcProvider(&'a OidcProviderForBroker),
}

/// What makes a provider send a logout token.
enum Logout<'a> {
    /// The user confirms the provider's page at this URL.
    ByUser(Url),
    /// An administrator signs the user out.
    ByAdministrator(&'a KeycloakForBroker),
    /// An administrator ends the session of the offline token.
    OfflineSession(&'a KeycloakForBroker),
}

/// A server with a broker, and a client of it.
pub(super) struct Trial<'a, P> {
    server: &'a BrokerServer<P>,
    client: BrokerClient,
    recorder: Recorder,
}

/// A signed-in user with a session and an open event stream.
struct User {
    name: &'static str,
    cookies: Cookies,
    tokens: TokenPair,
    session: McpSession,
    stream: EventStream,
}

impl<'a, P> Trial<'a, P> {
    /// Registers a client.
    pub(super) async fn new(server: &'a BrokerServer<P>) -> Result<Self, Cell> {
        let recorder = Recorder::new(PAGE_LIMIT);
        Ok(Self {
            server,
            client: Cell::started(BrokerClient::register(server)).await?,
            recorder: recorder.map_err(|error| Cell::failed(&error.into()))?,
        })
    }

    /// Signs users in, and ends their grants in each way. Fails when a step fails; the others run
    /// nevertheless.
    pub(super) async fn all(
        &self,
        provider: Real<'_>,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let users = ["alice", "bob", "carol", "dave", "erin"];
        let step = catching_panics(self.sign_in_each(users));
        let [mut alice, bob, carol, dave, erin] = progress
            .step("users sign in, open a session and call a tool", step)
            .await?;
        let next_check = Instant::now() + RECHECK;

        let mut results = Vec::new();
        let step = catching_panics(self.step_up(&mut alice));
        let name = "step-up: 403, then both scopes in the same session";
        results.push(progress.step(name, step).await);

        let step = catching_panics(self.sign_out(bob, &mut alice));
        let name = "sign-out by the client: all ends at once";
        results.push(progress.step(name, step).await);

        let (logout, name) = match provider {
            Real::Keycloak(keycloak) => (
                Logout::OfflineSession(keycloak),
                "an administrator ends the offline session: all ends at once",
            ),
            Real::OidcProvider(provider) => (
                Logout::ByUser(provider.logout_page()?),
                "the user signs out of the provider: all ends at once",
            ),
        };
        let step = catching_panics(self.log_out(dave, logout, &mut alice));
        results.push(progress.step(name, step).await);

        let step = catching_panics(self.recheck(&mut alice, next_check));
        let name = "a refresh after `recheck`: the user is checked, and keeps all";
        results.push(progress.step_within(RECHECK_LIMIT, name, step).await);

        let step = catching_panics(self.remove(carol, provider, &mut alice));
        let name = "a disabled or removed user: all ends at the next refresh";
        results.push(progress.step(name, step).await);

        if let Real::Keycloak(keycloak) = provider {
            let step = catching_panics(self.log_out_offline(erin, keycloak, &mut alice));
            let name = "an administrator signs a user out: all ends at the next refresh";
            results.push(progress.step(name, step).await);
        }
        results.into_iter().collect()
    }

    /// Signs users out of a Keycloak that has given no offline tokens.
    pub(super) async fn logouts(
        &self,
        keycloak: &KeycloakForBroker,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let step = catching_panics(self.sign_in_each(["alice", "bob", "dave"]));
        let [mut alice, bob, dave] = progress
            .step("users sign in, open a session and call a tool", step)
            .await?;
        let logout = Logout::ByUser(keycloak.logout_page()?);
        let step = catching_panics(self.log_out(dave, logout, &mut alice));
        let name = "the user signs out of the provider: all ends at once";
        let by_user = progress.step(name, step).await;
        let logout = Logout::ByAdministrator(keycloak);
        let step = catching_panics(self.log_out(bob, logout, &mut alice));
        let name = "an administrator signs a user out: all ends at once";
        by_user.and(progress.step(name, step).await)
    }

    async fn sign_in_each<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> anyhow::Result<[User; N]> {
        let mut users = Vec::new();
        for name in names {
            users.push(self.sign_in(name).await?);
        }
        let users = users.try_into();
        users.map_err(|_| anyhow!("as many users as names"))
    }

    /// Signs a user in with a new browser.
    async fn sign_in(&self, name: &'static str) -> anyhow::Result<User> {
        let mut cookies = Cookies::new();
        let tokens = self.authorize(name, &mut cookies, "").await?;
        let session = McpSession::open(self.server, &tokens.access).await;
        session.assert_usable(self.server, &tokens.access).await;
        let stream = session.listen(self.server, &tokens.access).await;
        Ok(User {
            name,
            cookies,
            tokens,
            session,
            stream,
        })
    }

    /// Requests scopes in a user's browser.
    async fn authorize(
        &self,
        name: &str,
        cookies: &mut Cookies,
        scope: &str,
    ) -> anyhow::Result<TokenPair> {
        let authorization = self.client.authorization(self.server, "/mcp", scope);
        let password = pages::password(name);
        let arrival = pages::visit_in_session(
            &self.recorder,
            cookies,
            &authorization,
            BrokerClient::REDIRECT_URI,
            &UserInput::consents(name, &password),
        )
        .await
        .with_context(|| format!("the sign-in of {name}"))?;
        let code = BrokerClient::code(self.server, &arrival.location).await;
        let response = self.client.exchange(self.server, &code).await;
        Ok(TokenPair::parse(&response))
    }

    /// A tool that needs another scope is refused with the scopes to request. With them, the same
    /// session may call it.
    async fn step_up(&self, user: &mut User) -> anyhow::Result<()> {
        let refused = user
            .session
            .call(self.server, &user.tokens.access, ADMIN_TOOL)
            .await;
        expect::equal("status without the scope", 403, refused.status)?;
        let error = refused.challenge("error");
        expect::equal("error", Some("insufficient_scope"), error)?;
        let scope = refused.challenge("scope").context("no scope")?;
        expect::equal("requested scopes", BOTH_SCOPES, scope)?;
        let tokens = self.authorize(user.name, &mut user.cookies, scope).await?;
        let claims = tokens.claims();
        expect::equal("granted scopes", BOTH_SCOPES, &claims["scope"])?;
        expect::equal(
            "user",
            user.tokens.claims()["sub"].clone(),
            claims["sub"].clone(),
        )?;
        let called = user
            .session
            .call(self.server, &tokens.access, ADMIN_TOOL)
            .await;
        expect::equal("status with the scope", 200, called.status)
    }

    /// The client revokes the refresh token of a user.
    async fn sign_out(&self, mut user: User, other: &mut User) -> anyhow::Result<()> {
        self.client.revoke(self.server, &user.tokens.refresh).await;
        self.expect_access_ended(&mut user).await?;
        self.expect_refused(&user).await?;
        self.expect_active(other).await
    }

    /// The provider sends a logout token (OpenID Connect Back-Channel Logout 1.0).
    async fn log_out(
        &self,
        mut user: User,
        logout: Logout<'_>,
        other: &mut User,
    ) -> anyhow::Result<()> {
        self.expect_active(&mut user).await?;
        match logout {
            Logout::ByUser(page) => {
                pages::confirm(&self.recorder, &mut user.cookies, &page).await?;
            }
            Logout::ByAdministrator(keycloak) => keycloak.log_out(user.name).await?,
            Logout::OfflineSession(keycloak) => keycloak.end_offline_sessions(user.name).await?,
        }
        self.expect_access_ended(&mut user).await?;
        self.expect_refused(&user).await?;
        self.expect_active(other).await
    }

    /// Keycloak sends no logout token for an offline token, and rejects it.
    async fn log_out_offline(
        &self,
        user: User,
        keycloak: &KeycloakForBroker,
        other: &mut User,
    ) -> anyhow::Result<()> {
        keycloak.log_out(user.name).await?;
        self.expect_end_at_refresh(user, other).await
    }

    /// The provider confirms the user, whose session and stream go on with the new token.
    async fn recheck(&self, user: &mut User, at: Instant) -> anyhow::Result<()> {
        sleep_until(at).await;
        let old = user.tokens.clone();
        user.tokens = TokenPair::parse(&self.refresh(user).await);
        ensure!(
            user.tokens.refresh != old.refresh,
            "expected another refresh token"
        );
        self.expect_active(user).await
    }

    /// The provider does not know a user any more, or refuses the user.
    async fn remove(&self, user: User, provider: Real<'_>, other: &mut User) -> anyhow::Result<()> {
        match provider {
            Real::Keycloak(keycloak) => keycloak.disable_user(user.name).await?,
            Real::OidcProvider(provider) => provider.remove_user(user.name)?,
        }
        self.expect_end_at_refresh(user, other).await
    }

    /// Expects that nothing ends before the next refresh, which ends everything of this user alone.
    async fn expect_end_at_refresh(&self, mut user: User, other: &mut User) -> anyhow::Result<()> {
        self.expect_active(&mut user).await?;
        self.expect_refused(&user).await?;
        self.expect_access_ended(&mut user).await?;
        self.expect_active(other).await
    }

    /// Expects that the refresh token is rejected.
    async fn expect_refused(&self, user: &User) -> anyhow::Result<()> {
        let refused = self.refresh(user).await;
        expect::equal("status of the refresh", 400, refused.status)?;
        expect::equal("error", "invalid_grant", &refused.json()["error"])
    }

    /// Expects that the stream ends, and that the access token is rejected.
    async fn expect_access_ended(&self, user: &mut User) -> anyhow::Result<()> {
        let rest = next_event(&mut user.stream).await?;
        expect::equal("the end of the stream", None, rest)?;
        let rejected = user
            .session
            .call(self.server, &user.tokens.access, "add")
            .await;
        expect::equal("status with the access token", 401, rejected.status)
    }

    /// Expects that the stream is open and the access token is accepted.
    async fn expect_active(&self, user: &mut User) -> anyhow::Result<()> {
        user.stream.send(EventStreams::EVENT);
        let event = next_event(&mut user.stream).await?;
        let expected = EventStreams::EVENT.as_bytes().to_vec();
        expect::equal("the event on the stream", Some(expected), event)?;
        let access = &user.tokens.access;
        user.session.assert_usable(self.server, access).await;
        Ok(())
    }

    async fn refresh(&self, user: &User) -> HttpResponse {
        self.client.refresh(self.server, &user.tokens.refresh).await
    }
}

/// Returns the next event, or `None` at the end of the stream. The server adds comments to a stream
/// without events.
async fn next_event(stream: &mut EventStream) -> anyhow::Result<Option<Vec<u8>>> {
    let event = async {
        loop {
            let chunk = stream.connection.chunk().await;
            if chunk.as_deref() != Some(b":\n\n") {
                return chunk;
            }
        }
    };
    timeout(TIMEOUT, event)
        .await
        .context("the stream neither continues nor ends")
}
