//! The shipped program as a client, by Keycloak's pages.

use http::StatusCode;
use portcullis_discovery::FetchRequest;
use portcullis_metadata::authorization_server_urls;

use crate::walks::{
    client_walk::Ground,
    expect,
    keycloak::{servers::Setup, stage::Stage},
    progress::Progress,
};

/// Long enough for a browser to sign in, and short enough to wait for a refresh.
const TOKEN_LIFE: u32 = 20;
/// What the realm's file says.
const USUAL_TOKEN_LIFE: u32 = 300;

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    stage.admin.set_token_life(TOKEN_LIFE).await?;
    let walked = walk(stage, progress).await;
    stage.admin.set_token_life(USUAL_TOKEN_LIFE).await?;
    walked
}

async fn walk(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    let (resource, issuer) = (stage.endpoint()?, stage.issuer()?);
    let ground = Ground {
        client: &stage.person_client,
        wire: &stage.wire,
        server: stage.servers.of(Setup::Jwt)?,
        issuer: &issuer,
        resource: &resource,
        // Keycloak gives tokens for no other resource of this server; the tokens of other audiences are another scenario's.
        other: None,
        consent_for: &["--client-id", "mcp-cli-consent"],
        brief: &resource,
    };
    ground.walk(progress).await?;
    progress.step("no client ID metadata documents: registration instead", falls_back(stage, &ground)).await
}

/// Keycloak 26.7.3 takes client ID metadata documents as an experiment alone, and is not told to: its metadata does not
/// offer them, so that the client registers itself although it has a document.
async fn falls_back(stage: &Stage, ground: &Ground<'_>) -> anyhow::Result<()> {
    const DOCUMENT: &str = "https://client.example/portcullis.json";
    let metadata = authorization_server_urls(ground.issuer).remove(0);
    let answer = stage.send(FetchRequest::get(metadata, portcullis_discovery::UrlPolicy::Operator)).await?;
    let document = expect::json("Keycloak's metadata", StatusCode::OK, &answer)?;
    expect::that(document["client_id_metadata_document_supported"] != true, "documents", "not offered", &document)?;
    let run = stage.person_client.run("login", ground.resource, &["--client-metadata-url", DOCUMENT]).await?;
    let run = run.succeeded()?;
    expect::that(!run.written.contains(DOCUMENT), "the client", "one that was registered", &run.written)
}
