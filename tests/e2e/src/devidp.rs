//! The flows with the development authorization server.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    canary,
    client::Client,
    client_flow::ClientFlow,
    deployment::{DevDeployment, OTHER},
    library_flow, output,
    progress::Progress,
    recorder::Recorder,
    test_client::{SignIn, TestClient},
    test_user::TestUser,
};

/// The time limit of a step.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The time limit of a shutdown. It is shorter than the 10 s after which a shutdown cancels
/// requests, because no request may be cancelled here.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(8);

/// Starts the programs, runs the flows, stops the programs and searches their output, even if a
/// flow fails.
pub(crate) async fn run(
    program: &Path,
    folder: &Path,
    recorder: Arc<Recorder>,
    user: TestUser,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut deployment = progress
        .step("both programs start", DevDeployment::start(program, folder))
        .await?;
    let test_client = TestClient::new(
        &deployment.endpoint,
        &deployment.issuer,
        Arc::clone(&recorder),
        SignIn::Hint,
    )?;
    let library = library_flow::run(&test_client, progress).await;
    let stopped = progress
        .step_within(
            SHUTDOWN_LIMIT,
            "SIGTERM ends both with exit code 0",
            deployment.stop(),
        )
        .await;

    let start = DevDeployment::start_with_consent_page(program, folder);
    let mut deployment = progress
        .step(
            "both start again, with a consent page and short-lived tokens",
            start,
        )
        .await?;
    let client = Client::new(program, folder, user)?;
    let shipped = shipped_client(&deployment, &recorder, &client, progress).await;
    let stopped_again = progress
        .step_within(
            SHUTDOWN_LIMIT,
            "SIGTERM ends both again with exit code 0",
            deployment.stop(),
        )
        .await;

    let searched = async {
        let mut canaries = canary::canaries(&recorder.exchanges());
        client.add_secrets(&mut canaries)?;
        output::search(folder, &canaries)
    };
    let searched = progress
        .step("no panic and no secret in their output", searched)
        .await;
    library
        .and(stopped)
        .and(shipped)
        .and(stopped_again)
        .and(searched)
}

/// Runs the flow of the shipped client.
async fn shipped_client(
    deployment: &DevDeployment,
    recorder: &Recorder,
    client: &Client,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let other = deployment.endpoint.join(OTHER)?;
    let flow = ClientFlow {
        client,
        recorder,
        server: deployment.server(),
        issuer: &deployment.issuer,
        resource: &deployment.endpoint,
        other: Some(&other),
        consent_arguments: &[],
        brief: &other,
    };
    flow.run(progress).await
}
