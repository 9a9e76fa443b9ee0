//! All that a scenario needs: Keycloak, the servers, and how to ask them.

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
    Wanted,
    admin::Admin,
    distribution,
    instance::Instance,
    load::is_later,
    places::Places,
    servers::{Servers, Setup},
    standard_members::StandardMembers,
    tokens::{Client, Tokens},
    upstream::Upstream,
};
use crate::walks::{client, discovery::bearer_challenge, expect, person::Person, request, server::Server, wire::Wire};

/// The client that a scenario uses unless it needs another.
const CLIENT: &str = "mcp-cli";

/// Everything that runs. It is taken down when dropped.
pub(super) struct Stage {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    /// The copy of Keycloak that is this run's own.
    pub(super) home: PathBuf,
    pub(super) ready_within: Duration,
    pub(super) places: Places,
    pub(super) wire: Arc<Wire>,
    pub(super) admin: Admin,
    pub(super) keycloak: Instance,
    /// The shipped program, with a person beside it.
    pub(super) person_client: client::Client,
    pub(super) servers: Servers,
    pub(super) upstream: Upstream,
    _introspection: StandardMembers,
}

/// A Keycloak that is ready.
pub(super) struct Ready {
    home: PathBuf,
    places: Places,
    keycloak: Instance,
    admin: Admin,
}

impl Ready {
    /// Starts a copy of Keycloak with an empty database.
    pub(super) async fn start(built: &Path, folder: &Path) -> anyhow::Result<Self> {
        let home = folder.join("keycloak");
        distribution::copy(built, &home)?;
        let places = Places::choose()?;
        let mut keycloak = Instance::start(&home, &places, "keycloak", folder)?;
        keycloak.ready().await?;
        let admin = Admin::new(Url::parse(&format!("http://{}/", places.keycloak))?)?;
        Ok(Self { home, places, keycloak, admin })
    }

    /// Returns where everything listens.
    pub(super) fn places(&self) -> Places {
        self.places
    }

    /// Makes the realms of `tests/idp/keycloak`.
    pub(super) async fn make_realms(&self) -> anyhow::Result<()> {
        for realm in ["realm.json", "other-realm.json"] {
            let made = self.admin.create_realm(&self.places.file(realm)?).await;
            made.with_context(|| format!("tests/idp/keycloak/{realm}"))?;
        }
        Ok(())
    }

    /// Starts the servers in front of it.
    pub(super) async fn with_servers(
        self,
        wanted: &Wanted<'_>,
        wire: Arc<Wire>,
        person: Person,
    ) -> anyhow::Result<Stage> {
        let Wanted { program, folder, ready_within, .. } = *wanted;
        let Self { home, places, keycloak, admin } = self;
        let introspection = StandardMembers::listen(places.introspection, places.keycloak).await?;
        Ok(Stage {
            program: program.to_owned(),
            folder: folder.to_owned(),
            home,
            ready_within,
            places,
            wire,
            admin,
            keycloak,
            person_client: client::Client::new(program, folder, person)?,
            servers: Servers::start(program, places, folder).await?,
            upstream: Upstream::listen(places.upstream).await?,
            _introspection: introspection,
        })
    }
}

impl Stage {
    pub(super) fn issuer(&self) -> anyhow::Result<Issuer> {
        Ok(Issuer::parse(&format!("http://{}/realms/mcp", self.places.keycloak))?)
    }

    /// What clients see of the resource.
    pub(super) fn endpoint(&self) -> anyhow::Result<Url> {
        Ok(format!("http://{}/mcp", self.places.portcullis).parse()?)
    }

    /// A client of the realm `mcp`.
    pub(super) fn client<'a>(&'a self, id: &'a str) -> anyhow::Result<Client<'a>> {
        self.client_of("mcp", id)
    }

    pub(super) fn client_of<'a>(&'a self, realm: &str, id: &'a str) -> anyhow::Result<Client<'a>> {
        let realm = Url::parse(&format!("http://{}/realms/{realm}/", self.places.keycloak))?;
        Ok(Client { wire: &self.wire, realm, id })
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
        Ok(self.wire.fetch(request).await?)
    }

    /// Expects that a request with the token is answered.
    pub(super) async fn admitted(&self, setup: Setup, token: &str) -> anyhow::Result<()> {
        self.admitted_by(setup.name(), self.servers.of(setup)?, token).await
    }

    pub(super) async fn admitted_by(&self, name: &str, server: &Server, token: &str) -> anyhow::Result<()> {
        let answer = self.send(request::tool_list(server.address, token)?).await?;
        if answer.status != StatusCode::OK && answer.headers.contains_key("x-request-id") {
            let code = server.refusal(&answer.headers).await?;
            anyhow::bail!("{name}: expected 200, got {} for {code}", answer.status);
        }
        expect::equal(&format!("{name}: status"), StatusCode::OK, answer.status)?;
        request::result(&answer).context(name.to_owned()).map(drop)
    }

    /// Expects that the token is called invalid, for the reason with this code.
    pub(super) async fn refused(&self, setup: Setup, token: &str, code: &str) -> anyhow::Result<()> {
        let (name, server) = (setup.name(), self.servers.of(setup)?);
        let answer = self.send(request::tool_list(server.address, token)?).await?;
        expect::equal(&format!("{name}: status"), StatusCode::UNAUTHORIZED, answer.status)?;
        expect::equal(&format!("{name}: reason"), code, server.refusal(&answer.headers).await?.as_str())?;
        let challenge = bearer_challenge(&answer.headers)?;
        expect::equal(&format!("{name}: error of the challenge"), Some("invalid_token"), challenge.error.as_deref())
    }

    /// Expects a refusal that leaves the token's worth open.
    pub(super) async fn put_off(&self, name: &str, server: &Server, token: &str) -> anyhow::Result<()> {
        let answer = self.send(request::tool_list(server.address, token)?).await?;
        let got = (answer.status, &answer.headers);
        expect::that(is_later(&answer), name, "401 with Retry-After and without an error", got)
    }
}
