//! `cargo xtask e2e --idp oidc-provider`: the real program as a client and as a resource, and npm's `oidc-provider`.

mod deployment;
mod package;
mod tokens;

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use super::{
    authorization::Authorization,
    canary,
    client::Client,
    client_walk::Ground,
    discovery, output,
    person::Person,
    progress::Progress,
    session::Session,
    visitor::{SignIn, Visitor},
    wire::Wire,
};
use anyhow::Context as _;
use deployment::CLIENT_DOCUMENT_URL;
pub(super) use deployment::OidcProviderDeployment;
pub(super) use package::Package;

/// How long one step may take, but for those that say otherwise.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// npm downloads some 40 MB, Node.js among them.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Installs, starts, walks, and ends; the last also when the walk fails.
pub(super) async fn whole(
    program: &Path,
    target: &Path,
    folder: &Path,
    wire: Arc<Wire>,
    person: Person,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let install = Package::install(target);
    let package = progress.step_within(INSTALL_LIMIT, "npm installs oidc-provider and Node.js, once", install).await?;
    let mut deployment = progress
        .step("oidc-provider and two servers start", OidcProviderDeployment::start(&package, program, folder))
        .await?;
    let client = Client::new(program, folder, person)?;

    let library = library_walk(&deployment, Arc::clone(&wire), progress).await;
    let shipped = shipped_walk(program, &deployment, &wire, &client, progress).await;
    let stopped = progress.step("SIGTERM ends all of them in order", deployment.stop()).await;
    let searched = async {
        let mut canaries = canary::canaries(&wire.exchanges());
        client.add_secrets(&mut canaries)?;
        output::search(folder, &canaries)
    };
    let searched = progress.step("no panic and no secret in what the servers wrote", searched).await;
    library.and(shipped).and(stopped).and(searched)
}

/// The library, with each of its requests looked at.
async fn library_walk(
    deployment: &OidcProviderDeployment,
    wire: Arc<Wire>,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let visitor = Visitor::new(&deployment.resource("/mcp")?, &deployment.issuer, wire, SignIn::OidcProvider)?;
    let challenge = progress.step("a POST without a token is challenged", discovery::challenge(&visitor)).await?;
    progress.step("authorization server metadata, both forms", discovery::server_metadata(&visitor)).await?;
    let mut authorization = Authorization::begin(&visitor, challenge, "alice")?;
    let registered = progress.step("dynamic client registration", authorization.registration()).await?;
    let step = authorization.consent(registered);
    progress.step("login and consent pages, with PKCE S256, state, iss, resource", step).await?;
    let token = progress.step("token for this resource", authorization.token()).await?;
    let session = progress.step("initialize opens a session", Session::open(&visitor, token)).await?;
    progress.step("DELETE ends the session", session.end()).await
}

/// The shipped program, as a person uses it.
async fn shipped_walk(
    program: &Path,
    deployment: &OidcProviderDeployment,
    wire: &Wire,
    client: &Client,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let (resource, other) = (deployment.resource("/mcp")?, deployment.resource("/signed-es256")?);
    let brief = deployment.resource("/brief")?;
    let ground = Ground {
        client,
        wire,
        server: &deployment.server,
        issuer: &deployment.issuer,
        resource: &resource,
        other: Some(&other),
        consent_for: &[],
        brief: &brief,
    };
    ground.walk(progress).await?;
    progress.step("tokens signed with ES256", tokens::signed_es256(deployment, client)).await?;
    progress.step("opaque tokens, by introspection", tokens::opaque(deployment, wire, client)).await?;
    progress.step("login with a client ID metadata document", document(program, deployment, client)).await
}

/// The client is known by the address of its document (draft-ietf-oauth-client-id-metadata-document).
async fn document(program: &Path, deployment: &OidcProviderDeployment, client: &Client) -> anyhow::Result<()> {
    let resource = deployment.resource("/mcp")?;
    let document = Command::new(program).args(["client-document", CLIENT_DOCUMENT_URL]).output()?;
    deployment.publish(&document.stdout)?;
    let login = client.run("login", &resource, &["--client-metadata-url", CLIENT_DOCUMENT_URL]).await?;
    let login = login.succeeded().context("oidc-provider takes client ID metadata documents by draft 02")?;
    super::expect::that(
        login.written.contains(CLIENT_DOCUMENT_URL),
        "the client",
        CLIENT_DOCUMENT_URL,
        &login.written,
    )?;
    let call = client.run("call", &resource, &["tools/list", "--client-metadata-url", CLIENT_DOCUMENT_URL]).await?;
    call.succeeded().map(drop)
}
