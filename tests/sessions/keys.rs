//! Configured session keys, and the response to the owner of an ended session.

use portcullis_scenarios::{Deployment, HttpResponse, Portcullis, Request, Scratch, Signal};

const OLD: &str = "the-old-key-0123456789abcdef0123456789";
const NEW: &str = "the-new-key-0123456789abcdef0123456789";

async fn echo(deployment: &Deployment, session: &str) -> HttpResponse {
    deployment.echo(&deployment.good_token(), session).await
}

async fn with_keys(file: &Scratch) -> Deployment {
    let tables = format!(
        "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]",
        file.as_str()
    );
    Deployment::builder().tables(tables).start().await
}

/// E10: with configured keys, the owner gets 404 for a session that a restart ended, in the format
/// of each method. Other owners and requests with forged identifiers get 400.
#[tokio::test]
async fn a_restart_with_the_same_keys() {
    let keys = Scratch::file("session-keys", OLD);
    let session = {
        let deployment = with_keys(&keys).await;
        let session = deployment.open_session(&deployment.good_token()).await;
        assert_eq!(echo(&deployment, &session).await.status, 200);
        session
    };
    let deployment = with_keys(&keys).await;
    let response = echo(&deployment, &session).await;
    response.assert_rpc_error(404, -32000);
    assert!(response.json()["id"].is_null(), "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "session.ended")
        .await;

    for method in ["GET", "DELETE"] {
        let request = Request::new(method, Deployment::ENDPOINT)
            .bearer(&deployment.good_token())
            .session(&session);
        let response = deployment.send(request).await;
        assert_eq!(response.status, 404, "{response:?}");
        assert_eq!(
            response.text().as_str(),
            "Session not found",
            "{response:?}"
        );
    }
    let mallory = deployment.token().subject("mallory").sign();
    deployment
        .echo(&mallory, &session)
        .await
        .assert_no_session();
    // All bits of a character in the middle count; those of the last one may not.
    let (head, tail) = session.split_at(session.len() / 2);
    let other = if tail.starts_with('A') { "B" } else { "A" };
    let changed = format!("{head}{other}{}", &tail[1..]);
    echo(&deployment, &changed).await.assert_no_session();
    let other = Deployment::builder()
        .tables("[session]\nended_status = 404")
        .start()
        .await;
    echo(&other, &session).await.assert_no_session();
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// E10: keys are reloaded from their file without a restart, and no session is lost. An invalid
/// file is ignored.
#[tokio::test]
async fn a_rotation() {
    let keys = Scratch::file("session-keys", &format!("{OLD}\n"));
    let deployment = with_keys(&keys).await;
    let session = deployment.open_session(&deployment.good_token()).await;
    let ended = deployment.open_session(&deployment.good_token()).await;
    let delete = Request::delete(Deployment::ENDPOINT, &deployment.good_token(), &ended);
    assert_eq!(deployment.send(delete).await.status, 200);

    let rewrite = async |text: &str, message: &str| {
        std::fs::write(keys.path(), text).unwrap();
        deployment.portcullis.signal(Signal::HUP);
        deployment.portcullis.logged(message, |_| true).await;
    };

    rewrite(&format!("{NEW}\n{OLD}\n"), "the session keys were replaced").await;
    assert_eq!(echo(&deployment, &session).await.status, 200);
    echo(&deployment, &ended)
        .await
        .assert_rpc_error(404, -32000);
    let newer = deployment.open_session(&deployment.good_token()).await;

    rewrite("too short\n", "the session keys are unchanged").await;
    assert!(
        !deployment.portcullis.log().contains("too short"),
        "a secret is in the log"
    );
    for session in [&session, &newer] {
        assert_eq!(echo(&deployment, session).await.status, 200);
    }
    drop(deployment);

    std::fs::write(keys.path(), NEW).unwrap();
    let deployment = with_keys(&keys).await;
    echo(&deployment, &newer)
        .await
        .assert_rpc_error(404, -32000);
    echo(&deployment, &session).await.assert_no_session();
}

/// E10, J6: keys come from the environment or a file. Literal, short, repeated and missing keys are
/// rejected at startup.
#[tokio::test]
async fn unusable_keys() {
    for (setting, named) in [
        (
            format!("keys = [\"{OLD}\"]"),
            "a secret is not written into the configuration",
        ),
        ("keys = []".to_owned(), "the list of session keys is empty"),
        (
            "keys = [{ env = \"A_SHORT_KEY\" }]".to_owned(),
            "session.keys: the environment variable A_SHORT_KEY, line 1",
        ),
        (
            "keys = [{ env = \"A_KEY\" }, { env = \"A_KEY\" }]".to_owned(),
            "a session key is listed twice",
        ),
        (
            "keys = [{ file = \"/nowhere/keys\" }]".to_owned(),
            "session.keys: the file /nowhere/keys cannot be read",
        ),
        (
            "ended_status = 410".to_owned(),
            "session.ended_status = 410 is neither 400 nor 404",
        ),
    ] {
        let configuration = format!(
            "base_url = \"http://127.0.0.1:3000\"\n[[resource]]\nendpoint = \"/mcp\"\nauth = \"none\"\nupstream = \"demo\"\n\
             [session]\n{setting}"
        );
        let file = Scratch::file("portcullis.toml", &configuration);
        let environment = [("A_SHORT_KEY", "hunter2"), ("A_KEY", OLD)];
        let ended = Portcullis::run_with(&["check", "--config", file.as_str()], &environment).await;
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(1), "{setting}: {output}");
        assert!(output.contains(named), "{setting}: {output}");
        assert!(!output.contains("hunter2"), "{setting}: {output}");
        assert!(!output.contains(OLD), "{setting}: {output}");
    }
}
