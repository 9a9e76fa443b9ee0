//! Requests whose clients disconnect. Where they continue at the upstream, they still count for the
//! limits of their principal.

use std::sync::Arc;

use parking_lot::Mutex;
use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, INITIALIZE, RecordedRequest, Request, TIMEOUT, Upstream,
    call_message,
};
use serde_json::json;
use tokio::{
    io::AsyncReadExt as _,
    net::TcpListener,
    sync::watch,
    time::{Duration, sleep, timeout},
};

/// An upstream that accepts connections, reads, and never responds to what the test sends while it
/// is silent.
struct SilentUpstream {
    setting: String,
    open: watch::Receiver<usize>,
}

impl SilentUpstream {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let setting = format!(
            "{{ http = \"http://{}/\" }}",
            listener.local_addr().unwrap()
        );
        let (opened, open) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                opened.send_modify(|open| *open += 1);
                let opened = opened.clone();
                tokio::spawn(async move {
                    let mut received = [0; 1024];
                    while stream
                        .read(&mut received)
                        .await
                        .is_ok_and(|length| length > 0)
                    {}
                    opened.send_modify(|open| *open -= 1);
                });
            }
        });
        Self { setting, open }
    }

    async fn has_open(&mut self, count: usize) {
        timeout(TIMEOUT, self.open.wait_for(|open| *open == count))
            .await
            .unwrap()
            .unwrap();
    }
}

/// L4, L9: requests that continue without their clients count as requests in progress, with and
/// without sessions, and also those that open a session.
#[tokio::test]
async fn continued_requests_count() {
    let call = call_message(1, "tools/call", &json!({ "name": "slow" }));
    for (mode, message) in [("off", &*call), ("off", INITIALIZE), ("on", INITIALIZE)] {
        let mut upstream = SilentUpstream::start().await;
        let deployment = Deployment::builder()
            .upstream_setting(&upstream.setting)
            .resource(format!("sessions = \"{mode}\""))
            .tables("[limits]\nin_flight_per_principal = 3")
            .start()
            .await;
        let request = |subject: &str| {
            let token = deployment.token().subject(subject).sign();
            Request::post(Deployment::ENDPOINT, message).bearer(&token)
        };
        for number in 1..=3 {
            let mut client = Connection::open(deployment.portcullis.address()).await;
            client.write(&request("mallory").to_bytes()).await;
            upstream.has_open(number).await;
            drop(client);
            let gone = async {
                while deployment.portcullis.log().matches("client.gone").count() < number {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            timeout(TIMEOUT, gone).await.unwrap();
        }
        let rejected = deployment.send(request("mallory")).await;
        assert_eq!(rejected.status, 429, "{mode} {message}: {rejected:?}");
        deployment
            .portcullis
            .assert_denied(&rejected, "limit.in_flight")
            .await;
        assert_eq!(*upstream.open.borrow(), 3);

        let mut other = Connection::open(deployment.portcullis.address()).await;
        other.write(&request("alice").to_bytes()).await;
        upstream.has_open(4).await;
    }
}

/// L4, L9: a request whose client disconnects within the response counts as one in progress, too,
/// until the upstream has completed it, also if the response is an event stream, which counted as a
/// stream before.
#[tokio::test]
async fn abandoned_responses_count() {
    const MAX: usize = 3;
    for (mode, content_type) in [
        ("off", "application/json"),
        ("off", "text/event-stream"),
        ("on", "text/event-stream"),
    ] {
        let senders = Arc::new(Mutex::new(Vec::new()));
        let open = Arc::clone(&senders);
        let script = move |request: &RecordedRequest| {
            String::from_utf8_lossy(&request.body)
                .contains("tools/call")
                .then(|| {
                    let (sender, body) = ChannelBody::new();
                    sender.send(": \n\n".into()).unwrap();
                    open.lock().push(sender);
                    Upstream::streaming(200, &[("content-type", content_type)], body)
                })
        };
        let deployment = Deployment::builder()
            .upstream(Upstream::scripted(script).await)
            .resource(format!("sessions = \"{mode}\""))
            .tables(format!("[limits]\nin_flight_per_principal = {MAX}"))
            .start()
            .await;
        let token = deployment.token().subject("mallory").sign();
        let call = call_message(1, "tools/call", &json!({ "name": "slow" }));
        let mut request = Request::post(Deployment::ENDPOINT, call).bearer(&token);
        if mode == "on" {
            request = request.session(&deployment.open_session(&token).await);
        }
        let abandon = async || {
            let mut client = Connection::open(deployment.portcullis.address()).await;
            client.write(&request.to_bytes()).await;
            client.head().await.expect("a head").status
        };
        // Each client leaves after the head. When that is noticed, nothing reports.
        let rejected = async {
            while abandon().await == 200 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(TIMEOUT, rejected)
            .await
            .unwrap_or_else(|_| panic!("{mode} {content_type}: nothing is counted"));
        sleep(Duration::from_millis(500)).await;
        assert_eq!(abandon().await, 429, "{mode} {content_type}");
        assert!(senders.lock().len() <= 2 * MAX, "{mode} {content_type}");

        senders.lock().clear();
        let accepted = async {
            while abandon().await != 200 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(TIMEOUT, accepted)
            .await
            .unwrap_or_else(|_| panic!("{mode} {content_type}: nothing has ended"));
    }
}
