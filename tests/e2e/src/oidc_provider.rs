//! `cargo xtask e2e --idp oidc-provider`: the real program as client and resource server, with
//! npm's `oidc-provider`.

mod deployment;
mod for_broker;
mod package;
mod tokens;

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use super::{
    authorization::Authorization,
    canary,
    client::Client,
    client_flow::ClientFlow,
    discovery, output,
    progress::Progress,
    recorder::Recorder,
    session::Session,
    test_client::{SignIn, TestClient},
    test_user::TestUser,
};
use anyhow::{Context as _, ensure};
use deployment::CLIENT_DOCUMENT_URL;
pub(crate) use deployment::OidcProviderDeployment;
pub(crate) use for_broker::OidcProviderForBroker;
pub(crate) use package::Package;

/// What the script prints before the issuer, once it listens.
const ANNOUNCEMENT: &str = "oidc-provider listens: ";
/// The default time limit of a step.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// The time limit of the installation: about 40 MB, including Node.js.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Installs and starts the programs, runs the flows, and stops the programs even if a flow fails.
pub(crate) async fn run(
    program: &Path,
    target: &Path,
    folder: &Path,
    recorder: Arc<Recorder>,
    user: TestUser,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let install = Package::install(target);
    let package = progress
        .step_within(
            INSTALL_LIMIT,
            "npm installs oidc-provider and Node.js, once",
            install,
        )
        .await?;
    let mut deployment = progress
        .step(
            "oidc-provider and two servers start",
            OidcProviderDeployment::start(&package, program, folder),
        )
        .await?;
    let client = Client::new(program, folder, user)?;

    let library = library_flow(&deployment, Arc::clone(&recorder), progress).await;
    let shipped = shipped_client(program, &deployment, &recorder, &client, progress).await;
    let stopped = progress
        .step("SIGTERM ends all of them", deployment.stop())
        .await;
    let searched = async {
        let mut canaries = canary::canaries(&recorder.exchanges());
        client.add_secrets(&mut canaries)?;
        output::search(folder, &canaries)
    };
    let searched = progress
        .step(
            "no panic and no secret in the output of the servers",
            searched,
        )
        .await;
    library.and(shipped).and(stopped).and(searched)
}

/// The flow of the client library, with checks of each request.
async fn library_flow(
    deployment: &OidcProviderDeployment,
    recorder: Arc<Recorder>,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let test_client = TestClient::new(
        &deployment.resource("/mcp")?,
        &deployment.issuer,
        recorder,
        SignIn::OidcProvider,
    )?;
    let challenge = progress
        .step(
            "a POST without a token is challenged",
            discovery::challenge(&test_client),
        )
        .await?;
    progress
        .step(
            "authorization server metadata, both forms",
            discovery::server_metadata(&test_client),
        )
        .await?;
    let mut authorization = Authorization::begin(&test_client, challenge, "alice")?;
    let registered = progress
        .step("dynamic client registration", authorization.registration())
        .await?;
    let step = authorization.consent(registered);
    progress
        .step(
            "login and consent pages, with PKCE S256, state, iss, resource",
            step,
        )
        .await?;
    let token = progress
        .step("token for this resource", authorization.token())
        .await?;
    let session = progress
        .step(
            "initialize opens a session",
            Session::open(&test_client, token),
        )
        .await?;
    progress
        .step("DELETE ends the session", session.end())
        .await
}

/// The flow of the shipped client.
async fn shipped_client(
    program: &Path,
    deployment: &OidcProviderDeployment,
    recorder: &Recorder,
    client: &Client,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let resource = deployment.resource("/mcp")?;
    let other = deployment.resource("/signed-es256")?;
    let brief = deployment.resource("/brief")?;
    let flow = ClientFlow {
        client,
        recorder,
        server: &deployment.server,
        issuer: &deployment.issuer,
        resource: &resource,
        other: Some(&other),
        consent_arguments: &[],
        brief: &brief,
    };
    flow.run(progress).await?;
    progress
        .step(
            "tokens signed with ES256",
            tokens::signed_es256(deployment, client),
        )
        .await?;
    progress
        .step(
            "opaque tokens, by introspection",
            tokens::opaque(deployment, recorder, client),
        )
        .await?;
    progress
        .step(
            "login with a client ID metadata document",
            metadata_document(program, deployment, client),
        )
        .await
}

/// Signs in with a client ID metadata document (draft-ietf-oauth-client-id-metadata-document).
async fn metadata_document(
    program: &Path,
    deployment: &OidcProviderDeployment,
    client: &Client,
) -> anyhow::Result<()> {
    let resource = deployment.resource("/mcp")?;
    let document = Command::new(program)
        .args(["client-document", CLIENT_DOCUMENT_URL])
        .output()?;
    ensure!(
        document.status.success(),
        "client-document ended with {}",
        document.status
    );
    deployment.publish(&document.stdout)?;
    let login = client
        .run(
            "login",
            &resource,
            &["--client-metadata-url", CLIENT_DOCUMENT_URL],
        )
        .await?;
    let login = login
        .succeeded()
        .context("oidc-provider supports draft 02 of client ID metadata documents")?;
    super::expect::that(
        login.output.contains(CLIENT_DOCUMENT_URL),
        "the client",
        CLIENT_DOCUMENT_URL,
        &login.output,
    )?;
    let call = client
        .run(
            "call",
            &resource,
            &["tools/list", "--client-metadata-url", CLIENT_DOCUMENT_URL],
        )
        .await?;
    call.succeeded().map(drop)
}
