//! Several processes of one user, and a server that is killed, during sign-ins at the broker.

use std::time::Duration;

use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, HttpResponse, McpSession, ProviderKind, Request, Signal,
    TokenPair,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep},
};

/// How long processes refresh at the same time.
const REFRESHING: Duration = Duration::from_secs(5);
/// The maximum number of rounds in this time. The limits of the server for each address allow more.
const MAX_ROUNDS: usize = 40;

/// When a server is killed after it got a request. A response takes a few milliseconds.
const DELAYS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(100),
];

/// RF2: three processes share one credential store. All of them refresh with the same token at the
/// same time, and each gets a token that works. None has to sign in again.
#[tokio::test]
async fn concurrent_refreshes_sign_no_process_out() {
    let server = BrokerServer::start(ProviderKind::Google).await;
    let client = BrokerClient::register(&server).await;
    let mut shared = client.sign_in(&server, "alice").await;
    let session = McpSession::open(&server, &shared.access).await;
    let end = Instant::now() + REFRESHING;
    let mut rounds = 0;
    while Instant::now() < end && rounds < MAX_ROUNDS {
        let refresh = || client.refresh(&server, &shared.refresh);
        let (first, second, third) = tokio::join!(refresh(), refresh(), refresh());
        let tokens = [first, second, third].map(|response| TokenPair::parse(&response));
        assert!(tokens.iter().all(|pair| pair.refresh == tokens[0].refresh));
        for pair in &tokens {
            session.assert_usable(&server, &pair.access).await;
        }
        // The process that writes last decides what the others read.
        let [_, _, last] = tokens;
        shared = last;
        rounds += 1;
    }
    assert!(rounds > 3, "only {rounds} rounds");
}

/// The steps of a sign-in after which the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Registered,
    Shown,
    Approved,
    Returned,
    Issued,
    Exchanged,
    Refreshed,
}

const STEPS: [Step; 7] = [
    Step::Registered,
    Step::Shown,
    Step::Approved,
    Step::Returned,
    Step::Issued,
    Step::Exchanged,
    Step::Refreshed,
];

/// A sign-in during which the server is killed after one step.
struct KilledSignIn {
    server: BrokerServer,
    killed_after: Step,
}

impl KilledSignIn {
    async fn done(&mut self, step: Step) {
        if step == self.killed_after {
            self.server.crash().await;
        }
    }

    /// Signs in and refreshes. The response to a step arrives before the server is killed, so that
    /// everything must be durable.
    async fn run(mut self) {
        let client = BrokerClient::register(&self.server).await;
        self.done(Step::Registered).await;
        let authorization = client.authorization(&self.server, "/mcp", "");
        let mut browser = Browser::default();
        let page = browser.open(&authorization).await;
        self.done(Step::Shown).await;
        let provider = browser.approve(&authorization, &page).await;
        self.done(Step::Approved).await;
        let callback = browser.sign_in_at_provider(&provider, "alice").await;
        self.done(Step::Returned).await;
        let location = browser.return_from_provider(&callback).await;
        let code = BrokerClient::code(&self.server, &location).await;
        self.done(Step::Issued).await;
        let first = TokenPair::parse(&client.exchange(&self.server, &code).await);
        self.done(Step::Exchanged).await;
        let session = McpSession::open(&self.server, &first.access).await;
        let second = TokenPair::parse(&client.refresh(&self.server, &first.refresh).await);
        self.done(Step::Refreshed).await;
        session.assert_usable(&self.server, &second.access).await;
        let again = TokenPair::parse(&client.refresh(&self.server, &first.refresh).await);
        assert_eq!(again.refresh, second.refresh, "{:?}", self.killed_after);
        TokenPair::parse(&client.refresh(&self.server, &second.refresh).await);

        let replayed = client.exchange(&self.server, &code).await;
        assert_invalid_grant(&replayed);
        assert_eq!(browser.open(&callback).await.status, 400);
    }
}

/// ST3: every answer is durable. A sign-in continues after a kill at any step, and a used
/// code and a used callback stay used.
#[tokio::test]
async fn a_sign_in_survives_a_kill_after_every_step() {
    for killed_after in STEPS {
        let server = BrokerServer::start(ProviderKind::Oidc).await;
        let sign_in = KilledSignIn {
            server,
            killed_after,
        };
        sign_in.run().await;
    }
}

/// TK2, ST3: a server that is killed while it exchanges a code gives one pair of tokens at most. A
/// pair that arrived works; otherwise the code works, or fails cleanly.
#[tokio::test]
async fn a_kill_during_the_exchange_uses_the_code_once() {
    let mut server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    for delay in DELAYS {
        let authorization = client.authorization(&server, "/mcp", "");
        let location = Browser::default().sign_in(&authorization, "alice").await;
        let code = BrokerClient::code(&server, &location).await;
        let answered = kill_during(&mut server, &client.exchange_request(&code), delay).await;
        let tokens = match answered {
            Some(tokens) => Some(tokens),
            None => {
                let response = client.exchange(&server, &code).await;
                if response.status != 200 {
                    assert_invalid_grant(&response);
                }
                (response.status == 200).then(|| TokenPair::parse(&response))
            }
        };
        if let Some(tokens) = tokens {
            McpSession::open(&server, &tokens.access).await;
            TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
        }
        assert_invalid_grant(&client.exchange(&server, &code).await);
    }
}

/// RF3: a server that is killed while it refreshes loses no grant: the same token works again, and
/// gives the token that the first response had.
#[tokio::test]
async fn a_kill_during_a_refresh_loses_no_grant() {
    let mut server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let mut tokens = client.sign_in(&server, "alice").await;
    for delay in DELAYS {
        let request = client.refresh_request(&tokens.refresh);
        let answered = kill_during(&mut server, &request, delay).await;
        let again = TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
        if let Some(answered) = answered {
            assert_eq!(answered.refresh, again.refresh);
        }
        McpSession::open(&server, &again.access).await;
        tokens = again;
    }
}

/// Sends a request, kills the server after this time, and starts it again. Returns the tokens of the
/// response, if it was complete.
async fn kill_during(
    server: &mut BrokerServer,
    request: &Request,
    delay: Duration,
) -> Option<TokenPair> {
    let mut stream = TcpStream::connect(server.program().address())
        .await
        .unwrap();
    stream.write_all(&request.to_bytes()).await.unwrap();
    sleep(delay).await;
    server.program().signal(Signal::KILL);
    let mut received = Vec::new();
    // A killed server resets the connection if it has not read everything.
    let _ = stream.read_to_end(&mut received).await;
    server.crash().await;
    let text = String::from_utf8(received).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200"), "{text}");
    let body: Value = serde_json::from_str(body).ok()?;
    let token = |name: &str| body[name].as_str().unwrap().to_owned();
    Some(TokenPair {
        access: token("access_token"),
        refresh: token("refresh_token"),
    })
}

fn assert_invalid_grant(response: &HttpResponse) {
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(response.json()["error"], "invalid_grant", "{response:?}");
}
