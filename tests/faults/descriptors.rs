//! Shortage of file descriptors: idle connections and hanging requests must not block other
//! clients.

use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, ReloadableServer, Request, Upstream,
};

/// More connections than a limit of 256 files permits.
const FLOOD: usize = 270;

async fn flood(deployment: &Deployment) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..FLOOD {
        connections.push(Connection::open(deployment.portcullis.address()).await);
    }
    connections
}

async fn assert_serves(deployment: &Deployment) {
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );
    deployment
        .assert_accepted("during the flood", &deployment.good_token())
        .await;
}

/// L9: the soft limit is raised as far as the configuration needs.
#[tokio::test]
async fn idle_connections_under_a_soft_limit() {
    let deployment = Deployment::builder()
        .file_limit("-Sn 256")
        .tables("[limits]\nmax_connections = 1000")
        .start()
        .await;
    let connections = flood(&deployment).await;
    assert_serves(&deployment).await;
    assert!(
        !deployment.portcullis.log().contains("is lowered"),
        "{}",
        deployment.portcullis.log()
    );
    drop(connections);
}

/// L9: with a hard limit that is too low, the connection limits are lowered, with a warning that
/// names the numbers and the fix. Idle connections are then closed for new ones, and streams are
/// not.
#[tokio::test]
async fn idle_connections_under_a_hard_limit() {
    let (events, body) = ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let script = move |request: &portcullis_scenarios::RecordedRequest| {
        let body = (request.method == http::Method::GET).then(|| body.lock().take())??;
        Some(Upstream::streaming(
            200,
            &[("content-type", "text/event-stream")],
            body,
        ))
    };
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .file_limit("-n 256")
        .start()
        .await;
    for part in [
        "max_connections is lowered from 10000 to 86",
        "from [10000] to [86]",
        "LimitNOFILE=20084",
        "ulimit -Hn 20084",
    ] {
        deployment
            .portcullis
            .logged_line(&["the limit of open files is 256, and 20084 are needed", part])
            .await;
    }
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut stream = Connection::open(deployment.portcullis.address()).await;
    stream
        .write(
            &Request::new("GET", Deployment::ENDPOINT)
                .bearer(&token)
                .session(&session)
                .to_bytes(),
        )
        .await;
    assert_eq!(stream.head().await.unwrap().status, 200);

    let mut connections = flood(&deployment).await;
    assert_serves(&deployment).await;
    events.send(": still open\n\n".into()).unwrap();
    assert_eq!(
        stream.chunk().await.as_deref(),
        Some(b": still open\n\n".as_slice()),
        "a stream is not closed for others"
    );

    connections[0].assert_closed().await;
    assert!(
        !deployment
            .portcullis
            .log()
            .contains("a connection was not accepted"),
        "it never ran out of files"
    );
}

/// L9: a reload divides the files that the clients' connections leave among the upstreams, old and
/// new. The limit of clients' connections stays.
#[tokio::test]
async fn a_reload_under_a_hard_limit() {
    let server = ReloadableServer::start_limited(Upstream::start().await, "", Some("-n 256")).await;
    let at_start = "max_connections is lowered from 10000 to 57, and the connections of upstreams from [10000, 10000] to [57, 57]";
    server.portcullis.logged_line(&[at_start]).await;
    let other = server.other_resource();
    let third = other.replace("/other", "/third");
    server.reload(&[(other, &format!("{other}{third}"))]).await;
    let reloaded = "40084 are needed: the connections of upstreams are lowered from [10000, 10000, 10000] to [38, 38, 38]";
    server.portcullis.logged_line(&[reloaded]).await;
    assert_eq!(
        server
            .portcullis
            .log()
            .matches("max_connections is lowered")
            .count(),
        1
    );
}
