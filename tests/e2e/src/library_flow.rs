//! The flow of the client library, with checks of each step.

use std::sync::Arc;

use portcullis_client::ResourceToken;
use portcullis_metadata::BearerChallenge;

use super::{
    authorization::Authorization,
    deployment::USER,
    discovery,
    progress::Progress,
    session::{self, Session},
    test_client::TestClient,
};

/// A user who must not get access to the first user's session.
const OTHER_USER: &str = "bob";

/// Runs all steps, or up to the first one that fails.
pub(crate) async fn run(test_client: &TestClient, progress: &mut Progress) -> anyhow::Result<()> {
    let challenge = progress
        .step(
            "a POST without a token is challenged",
            discovery::challenge(test_client),
        )
        .await?;
    let metadata = discovery::resource_metadata(test_client, &challenge);
    progress
        .step("protected resource metadata, all forms", metadata)
        .await?;
    progress
        .step(
            "authorization server metadata, all forms",
            discovery::server_metadata(test_client),
        )
        .await?;

    let mut authorization = Authorization::begin(test_client, challenge.clone(), USER)?;
    let registered = progress
        .step("client registration", authorization.registration())
        .await?;
    progress
        .step(
            "authorization with PKCE, state, iss, resource",
            authorization.consent(registered),
        )
        .await?;
    let token = progress
        .step("token for this resource", authorization.token())
        .await?;

    let session = progress
        .step(
            "initialize opens a session",
            Session::open(test_client, Arc::clone(&token)),
        )
        .await?;
    progress
        .step("notifications/initialized, tools/list", session.tools())
        .await?;
    progress
        .step("tools/call add and whoami", session.calls())
        .await?;
    progress
        .step("GET opens an event stream", session.stream())
        .await?;
    let foreign = async {
        let other = second_token(test_client, challenge).await?;
        session.foreign(&other).await
    };
    progress
        .step("another user's token on the session: 400", foreign)
        .await?;
    progress
        .step("unknown and missing sessions: 400", session.unknown())
        .await?;
    progress
        .step(
            "revision 2026-07-28 without a session",
            session::modern(test_client, &token),
        )
        .await?;
    progress
        .step("DELETE ends the session", session.end())
        .await?;
    progress
        .step(
            "a tampered token is invalid",
            session::tampered(test_client, &token),
        )
        .await
}

async fn second_token(
    test_client: &TestClient,
    challenge: BearerChallenge,
) -> anyhow::Result<Arc<ResourceToken>> {
    let mut authorization = Authorization::begin(test_client, challenge, OTHER_USER)?;
    let registered = authorization.registration().await?;
    authorization.consent(registered).await?;
    authorization.token().await
}
