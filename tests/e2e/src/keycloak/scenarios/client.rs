//! The shipped program as a client, through Keycloak's pages.

use http::StatusCode;
use portcullis_discovery::FetchRequest;
use portcullis_metadata::authorization_server_urls;

use crate::{
    client_flow::ClientFlow,
    expect,
    keycloak::{fixture::Fixture, servers::Setup},
    progress::Progress,
};

/// Long enough for a browser to sign in, and short enough to wait for a refresh.
const TOKEN_LIFETIME: u32 = 20;
/// The lifetime in the realm's file.
const CONFIGURED_TOKEN_LIFETIME: u32 = 300;

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    fixture.admin.set_token_lifetime(TOKEN_LIFETIME).await?;
    let result = run_flow(fixture, progress).await;
    let restored = fixture
        .admin
        .set_token_lifetime(CONFIGURED_TOKEN_LIFETIME)
        .await;
    result.and(restored)
}

/// Runs the flow of the shipped client with Keycloak.
async fn run_flow(fixture: &Fixture, progress: &mut Progress) -> anyhow::Result<()> {
    let resource = fixture.endpoint()?;
    let issuer = fixture.issuer()?;
    let flow = ClientFlow {
        client: &fixture.shipped_client,
        recorder: &fixture.recorder,
        server: fixture.servers.of(Setup::Jwt)?,
        issuer: &issuer,
        resource: &resource,
        // Keycloak issues tokens for no other resource of this server. Another scenario tests other
        // audiences.
        other: None,
        consent_arguments: &["--client-id", "mcp-cli-consent"],
        brief: &resource,
    };
    flow.run(progress).await?;
    progress
        .step(
            "no client ID metadata documents: registration instead",
            falls_back(fixture, &flow),
        )
        .await
}

/// In Keycloak 26.7.3, client ID metadata documents are an experimental feature that is disabled
/// here. Its metadata does not list them, so the client registers although it has a document.
async fn falls_back(fixture: &Fixture, flow: &ClientFlow<'_>) -> anyhow::Result<()> {
    const DOCUMENT: &str = "https://client.example/portcullis.json";
    let metadata = authorization_server_urls(flow.issuer).remove(0);
    let response = fixture
        .send(FetchRequest::get(
            metadata,
            portcullis_discovery::UrlPolicy::Operator,
        ))
        .await?;
    let document = expect::json("Keycloak's metadata", StatusCode::OK, &response)?;
    expect::that(
        document["client_id_metadata_document_supported"] != true,
        "documents",
        "not offered",
        &document,
    )?;
    let run = fixture
        .shipped_client
        .run("login", flow.resource, &["--client-metadata-url", DOCUMENT])
        .await?;
    let run = run.succeeded()?;
    expect::that(
        !run.output.contains(DOCUMENT),
        "the client",
        "one that was registered",
        &run.output,
    )
}
