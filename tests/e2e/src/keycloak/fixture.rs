//! [`Fixture`]: Keycloak, the servers, and requests to them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse};
use portcullis_metadata::Issuer;
use url::Url;

use super::{
    Options,
    addresses::Addresses,
    admin::Admin,
    distribution,
    instance::Instance,
    load::is_unavailable,
    servers::{Servers, Setup},
    standard_members::StandardMembers,
    tokens::{Client, Tokens},
    upstream::Upstream,
};
use crate::{
    client, discovery::bearer_challenge, expect, recorder::Recorder, request, server::Server,
    test_user::TestUser,
};

/// The default client of scenarios.
const CLIENT: &str = "mcp-cli";

/// All running programs, which end when this is dropped.
pub(super) struct Fixture {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    /// The folder of this run's copy of Keycloak.
    pub(super) home: PathBuf,
    pub(super) ready_within: Duration,
    pub(super) addresses: Addresses,
    pub(super) recorder: Arc<Recorder>,
    pub(super) admin: Admin,
    pub(super) keycloak: Instance,
    /// The shipped program and its user.
    pub(super) shipped_client: client::Client,
    pub(super) servers: Servers,
    pub(super) upstream: Upstream,
    _introspection: StandardMembers,
}

/// A Keycloak that is ready.
pub(super) struct RunningKeycloak {
    home: PathBuf,
    addresses: Addresses,
    keycloak: Instance,
    admin: Admin,
}

impl RunningKeycloak {
    /// Starts a copy of Keycloak with an empty database.
    pub(super) async fn start(built: &Path, folder: &Path) -> anyhow::Result<Self> {
        let home = folder.join("keycloak");
        distribution::copy(built, &home)?;
        let addresses = Addresses::choose()?;
        let mut keycloak = Instance::start(&home, &addresses, "keycloak", folder)?;
        keycloak.ready().await?;
        let admin = Admin::new(Url::parse(&format!("http://{}/", addresses.keycloak))?)?;
        Ok(Self {
            home,
            addresses,
            keycloak,
            admin,
        })
    }

    /// Returns the addresses of the run.
    pub(super) fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns its administrator.
    pub(super) fn admin(&self) -> &Admin {
        &self.admin
    }

    /// Creates the realms of the flow with Keycloak.
    pub(super) async fn create_realms(&self) -> anyhow::Result<()> {
        for realm in ["realm.json", "other-realm.json"] {
            self.create_realm(realm).await?;
        }
        Ok(())
    }

    /// Creates the realm of a file in `tests/idp/keycloak`.
    pub(super) async fn create_realm(&self, file: &str) -> anyhow::Result<()> {
        let created = self.admin.create_realm(&self.addresses.file(file)?).await;
        created.with_context(|| format!("tests/idp/keycloak/{file}"))
    }

    /// Starts the servers in front of it.
    pub(super) async fn with_servers(
        self,
        options: &Options<'_>,
        recorder: Arc<Recorder>,
        user: TestUser,
    ) -> anyhow::Result<Fixture> {
        let Options {
            program,
            folder,
            ready_within,
            ..
        } = *options;
        let Self {
            home,
            addresses,
            keycloak,
            admin,
        } = self;
        let introspection =
            StandardMembers::listen(addresses.introspection, addresses.keycloak).await?;
        Ok(Fixture {
            program: program.to_owned(),
            folder: folder.to_owned(),
            home,
            ready_within,
            addresses,
            recorder,
            admin,
            keycloak,
            shipped_client: client::Client::new(program, folder, user)?,
            servers: Servers::start(program, addresses, folder).await?,
            upstream: Upstream::listen(addresses.upstream).await?,
            _introspection: introspection,
        })
    }
}

impl Fixture {
    pub(super) fn issuer(&self) -> anyhow::Result<Issuer> {
        Ok(Issuer::parse(&format!(
            "http://{}/realms/mcp",
            self.addresses.keycloak
        ))?)
    }

    /// Returns the URL of the resource as clients know it.
    pub(super) fn endpoint(&self) -> anyhow::Result<Url> {
        Ok(format!("http://{}/mcp", self.addresses.portcullis).parse()?)
    }

    /// Returns a client of the realm `mcp`.
    pub(super) fn client<'a>(&'a self, id: &'a str) -> anyhow::Result<Client<'a>> {
        self.client_of("mcp", id)
    }

    pub(super) fn client_of<'a>(&'a self, realm: &str, id: &'a str) -> anyhow::Result<Client<'a>> {
        let realm = Url::parse(&format!(
            "http://{}/realms/{realm}/",
            self.addresses.keycloak
        ))?;
        Ok(Client {
            recorder: &self.recorder,
            realm,
            id,
        })
    }

    /// Obtains tokens for alice with the default client.
    pub(super) async fn tokens(&self, scope: &str) -> anyhow::Result<Tokens> {
        self.client(CLIENT)?.tokens(scope, "alice").await
    }

    /// Obtains an access token for alice with the default client.
    pub(super) async fn access(&self, scope: &str) -> anyhow::Result<String> {
        Ok(self.tokens(scope).await?.access)
    }

    pub(super) async fn send(&self, request: FetchRequest) -> anyhow::Result<FetchResponse> {
        Ok(self.recorder.fetch(request).await?)
    }

    /// Expects that a request with the token succeeds.
    pub(super) async fn admitted(&self, setup: Setup, token: &str) -> anyhow::Result<()> {
        self.admitted_by(setup.name(), self.servers.of(setup)?, token)
            .await
    }

    /// Expects that a server accepts this token.
    pub(super) async fn admitted_by(
        &self,
        name: &str,
        server: &Server,
        token: &str,
    ) -> anyhow::Result<()> {
        let response = self
            .send(request::tool_list(server.address, token)?)
            .await?;
        if response.status != StatusCode::OK && response.headers.contains_key("x-request-id") {
            let code = server.deny_code_of(&response.headers).await?;
            anyhow::bail!("{name}: expected 200, got {} for {code}", response.status);
        }
        expect::equal(&format!("{name}: status"), StatusCode::OK, response.status)?;
        request::result(&response)
            .context(name.to_owned())
            .map(drop)
    }

    /// Expects that the token is rejected as invalid with this reason code.
    pub(super) async fn rejected(
        &self,
        setup: Setup,
        token: &str,
        code: &str,
    ) -> anyhow::Result<()> {
        let name = setup.name();
        let server = self.servers.of(setup)?;
        let response = self
            .send(request::tool_list(server.address, token)?)
            .await?;
        expect::equal(
            &format!("{name}: status"),
            StatusCode::UNAUTHORIZED,
            response.status,
        )?;
        expect::equal(
            &format!("{name}: reason"),
            code,
            server.deny_code_of(&response.headers).await?.as_str(),
        )?;
        let challenge = bearer_challenge(&response.headers)?;
        expect::equal(
            &format!("{name}: error of the challenge"),
            Some("invalid_token"),
            challenge.error.as_deref(),
        )
    }

    /// Expects a 401 that does not reject the token: without `error` and with `Retry-After`.
    pub(super) async fn unavailable(
        &self,
        name: &str,
        server: &Server,
        token: &str,
    ) -> anyhow::Result<()> {
        let response = self
            .send(request::tool_list(server.address, token)?)
            .await?;
        let got = (response.status, &response.headers);
        expect::that(
            is_unavailable(&response),
            name,
            "401 with Retry-After and without an error",
            got,
        )
    }
}
