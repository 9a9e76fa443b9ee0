//! From the first 401 to a session, through Keycloak's pages, with dynamic registration.

use std::sync::Arc;

use http::StatusCode;
use portcullis_client::ResourceToken;
use portcullis_metadata::{
    BearerChallenge, authorization::PkceVerifier, authorization_server_urls,
};

use crate::{
    authorization::Authorization,
    discovery, expect,
    keycloak::fixture::Fixture,
    pages::Page,
    progress::Progress,
    session::Session,
    test_client::{SignIn, TestClient},
};

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let test_client = TestClient::new(
        &fixture.endpoint()?,
        &fixture.issuer()?,
        Arc::clone(&fixture.recorder),
        SignIn::Keycloak,
    )?;
    let challenge = progress
        .step(
            "a POST without a token is challenged",
            discovery::challenge(&test_client),
        )
        .await?;
    let metadata = discovery::resource_metadata(&test_client, &challenge);
    progress
        .step("protected resource metadata, all forms", metadata)
        .await?;
    progress
        .step(
            "Keycloak's metadata, by the client's order",
            server_metadata(&test_client),
        )
        .await?;

    let mut authorization = Authorization::begin(&test_client, challenge.clone(), "alice")?;
    let registered = progress
        .step("dynamic client registration", authorization.registration())
        .await?;
    progress
        .step(
            "login page, with PKCE, state, iss, resource",
            authorization.consent(registered),
        )
        .await?;
    let token = progress
        .step("token for this resource", authorization.token())
        .await?;
    progress
        .step("consent page after the login page", consent(fixture))
        .await?;

    let session = progress
        .step(
            "initialize opens a session",
            Session::open(&test_client, token),
        )
        .await?;
    progress
        .step("notifications/initialized, tools/list", session.tools())
        .await?;
    let foreign = async {
        let other = second_token(&test_client, challenge).await?;
        session.foreign(&other).await
    };
    progress
        .step("another user's token on the session: 400", foreign)
        .await?;
    progress
        .step("DELETE ends the session", session.end())
        .await
}

/// Checks the metadata: of the three URLs for an issuer with a path, Keycloak serves the first and
/// the last.
async fn server_metadata(test_client: &TestClient) -> anyhow::Result<()> {
    let mut served = Vec::new();
    for url in authorization_server_urls(&test_client.issuer) {
        let response = test_client.get(url.clone()).await?;
        served.push(response.status);
        if response.status == StatusCode::OK {
            discovery::check_server_metadata(test_client, url.path(), &response)?;
        }
    }
    expect::equal(
        "the three forms",
        vec![StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::OK],
        served,
    )
}

/// The consent page follows the login page.
async fn consent(fixture: &Fixture) -> anyhow::Result<()> {
    let client = fixture.client("mcp-cli-consent")?;
    let arrival = client
        .sign_in("mcp:tools", "alice", &PkceVerifier::generate()?)
        .await?;
    expect::equal("pages", vec![Page::Login, Page::Consent], arrival.pages)?;
    let arrival = client
        .sign_in("mcp:tools", "alice", &PkceVerifier::generate()?)
        .await?;
    expect::equal("pages of the second time", vec![Page::Login], arrival.pages)
}

async fn second_token(
    test_client: &TestClient,
    challenge: BearerChallenge,
) -> anyhow::Result<Arc<ResourceToken>> {
    let mut authorization = Authorization::begin(test_client, challenge, "bob")?;
    let registered = authorization.registration().await?;
    authorization.consent(registered).await?;
    authorization.token().await
}
