//! From the first 401 to a session, by Keycloak's own pages, with a client that registers itself.

use std::sync::Arc;

use http::StatusCode;
use portcullis_client::ResourceToken;
use portcullis_metadata::{BearerChallenge, PkceVerifier, authorization_server_urls};

use crate::walks::{
    authorization::Authorization,
    discovery, expect,
    keycloak::stage::Stage,
    pages::Page,
    progress::Progress,
    session::Session,
    visitor::{SignIn, Visitor},
};

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    let visitor = Visitor::new(&stage.endpoint()?, &stage.issuer()?, Arc::clone(&stage.wire), SignIn::Keycloak)?;
    let challenge = progress.step("a POST without a token is challenged", discovery::challenge(&visitor)).await?;
    let metadata = discovery::resource_metadata(&visitor, &challenge);
    progress.step("protected resource metadata, all forms", metadata).await?;
    progress.step("Keycloak's metadata, by the client's order", server_metadata(&visitor)).await?;

    let mut authorization = Authorization::begin(&visitor, challenge.clone(), "alice")?;
    let registered = progress.step("dynamic client registration", authorization.registration()).await?;
    progress.step("login page, with PKCE, state, iss, resource", authorization.consent(registered)).await?;
    let token = progress.step("token for this resource", authorization.token()).await?;
    progress.step("consent page after the login page", consent(stage)).await?;

    let session = progress.step("initialize opens a session", Session::open(&visitor, token)).await?;
    progress.step("notifications/initialized, tools/list", session.tools()).await?;
    let foreign = async {
        let other = second_token(&visitor, challenge).await?;
        session.foreign(&other).await
    };
    progress.step("another user's token on the session: 400", foreign).await?;
    progress.step("DELETE ends the session", session.end()).await
}

/// Of the three forms for an issuer with a path, Keycloak serves the first and the last.
async fn server_metadata(visitor: &Visitor) -> anyhow::Result<()> {
    let mut served = Vec::new();
    for url in authorization_server_urls(&visitor.issuer) {
        let answer = visitor.get(url.clone()).await?;
        served.push(answer.status);
        if answer.status == StatusCode::OK {
            discovery::is_server_metadata(visitor, url.path(), &answer)?;
        }
    }
    expect::equal("the three forms", vec![StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::OK], served)
}

async fn consent(stage: &Stage) -> anyhow::Result<()> {
    let client = stage.client("mcp-cli-consent")?;
    let arrival = client.sign_in("mcp:tools", "alice", &PkceVerifier::generate()?).await?;
    expect::equal("pages", vec![Page::Login, Page::Consent], arrival.pages)?;
    let arrival = client.sign_in("mcp:tools", "alice", &PkceVerifier::generate()?).await?;
    expect::equal("pages of the second time", vec![Page::Login], arrival.pages)
}

async fn second_token(visitor: &Visitor, challenge: BearerChallenge) -> anyhow::Result<Arc<ResourceToken>> {
    let mut authorization = Authorization::begin(visitor, challenge, "bob")?;
    let registered = authorization.registration().await?;
    authorization.consent(registered).await?;
    authorization.token().await
}
