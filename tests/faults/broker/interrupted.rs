//! A server that is killed while it processes a request.

use std::time::Duration;

use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, Connection, HttpResponse, McpSession, Request, Signal,
    TokenPair, is_full_run,
};
use tokio::time::sleep;

use super::{DELAYS, Family, Storage, assert_invalid_grant, wait_until_rejected};

/// What is interrupted.
#[derive(Clone, Copy)]
enum Interrupted {
    Callback,
    Exchange,
    Refresh,
    Revocation,
}

/// Kills a server while it processes requests, once for each delay.
async fn interrupt(what: Interrupted, storage: Storage, delays: &[Duration]) {
    let Some(mut stored) = storage.start().await else {
        return;
    };
    let server = &mut stored.server;
    let client = BrokerClient::register(server).await;
    for &delay in delays {
        match what {
            Interrupted::Callback => interrupt_callback(server, &client, delay).await,
            Interrupted::Exchange => interrupt_exchange(server, &client, delay).await,
            Interrupted::Refresh => interrupt_refresh(server, &client, delay).await,
            Interrupted::Revocation => interrupt_revocation(server, &client, delay).await,
        }
    }
}

/// Interrupts requests to a server with a file and, in a full run, to servers with Redis. Otherwise
/// only the requests with codes and refresh tokens are interrupted there, once, because a killed
/// replica returns after seconds.
async fn interrupt_everywhere(what: Interrupted) {
    interrupt(what, Storage::File, &DELAYS).await;
    if is_full_run() {
        interrupt(what, Storage::Redis, &DELAYS).await;
        interrupt(what, Storage::TwoReplicas, &DELAYS).await;
    } else if matches!(what, Interrupted::Exchange | Interrupted::Refresh) {
        interrupt(what, Storage::TwoReplicas, &DELAYS[3..4]).await;
    }
}

/// CO2, ST3: a server that is killed while the browser returns from the provider issues one code at
/// most. If the code is lost, the browser gets a page, and the user begins again.
#[tokio::test]
async fn a_kill_during_the_callback_issues_one_code() {
    interrupt_everywhere(Interrupted::Callback).await;
}

/// TK2, ST3: a server that is killed while it exchanges a code gives one pair of tokens at most. A
/// pair that arrived works; otherwise the code works, or fails cleanly.
#[tokio::test]
async fn a_kill_during_the_exchange_uses_the_code_once() {
    interrupt_everywhere(Interrupted::Exchange).await;
}

/// RF3: a server that is killed while it refreshes loses no grant: the same token works again, and
/// gives the token that the first response had.
#[tokio::test]
async fn a_kill_during_a_refresh_loses_no_grant() {
    interrupt_everywhere(Interrupted::Refresh).await;
}

/// TK5, ST3: a revocation that a kill interrupted can be repeated. Afterwards, no process accepts
/// the tokens.
#[tokio::test]
async fn a_kill_during_a_revocation_keeps_no_token() {
    interrupt_everywhere(Interrupted::Revocation).await;
}

async fn interrupt_callback(server: &mut BrokerServer, client: &BrokerClient, delay: Duration) {
    let authorization = client.authorization(server, "/mcp", "");
    let mut browser = Browser::default();
    let page = browser.open(&authorization).await;
    let provider = browser.approve(&authorization, &page).await;
    let callback = browser.sign_in_at_provider(&provider, "alice").await;
    let answered = kill_during(server, &browser.request_to_open(&callback), delay).await;
    let response = match &answered {
        Some(response) => response.clone(),
        None => browser.open(&callback).await,
    };
    if let Some(location) = response.header("location") {
        let code = BrokerClient::code(server, &location.parse().unwrap()).await;
        assert_works(server, client, &client.exchange(server, &code).await).await;
    } else {
        assert!(answered.is_none(), "{response:?}");
        assert_eq!(response.status, 400, "{response:?}");
        client.sign_in(server, "alice").await;
    }
    server.recover().await;
    assert_eq!(browser.open(&callback).await.status, 400);
}

async fn interrupt_exchange(server: &mut BrokerServer, client: &BrokerClient, delay: Duration) {
    let authorization = client.authorization(server, "/mcp", "");
    let location = Browser::default().sign_in(&authorization, "alice").await;
    let code = BrokerClient::code(server, &location).await;
    match kill_during(server, &client.exchange_request(&code), delay).await {
        Some(response) => assert_works(server, client, &response).await,
        None => match client.exchange(server, &code).await {
            response if response.status == 200 => assert_works(server, client, &response).await,
            response => assert_invalid_grant(&response),
        },
    }
    server.recover().await;
    assert_invalid_grant(&client.exchange(server, &code).await);
}

async fn interrupt_refresh(server: &mut BrokerServer, client: &BrokerClient, delay: Duration) {
    let mut tokens = client.sign_in(server, "alice").await;
    let mut family = Family::default();
    for _ in 0..2 {
        let request = client.refresh_request(&tokens.refresh);
        if let Some(response) = kill_during(server, &request, delay).await {
            family.add(&tokens.refresh, &TokenPair::parse(&response));
        }
        let again = family.refresh(server, client, &tokens.refresh).await;
        McpSession::open(server, &again.access).await;
        server.recover().await;
        family.refresh(server, client, &tokens.refresh).await;
        tokens = again;
    }
    assert_eq!(family.rotations(), 2);
}

async fn interrupt_revocation(server: &mut BrokerServer, client: &BrokerClient, delay: Duration) {
    let tokens = client.sign_in(server, "alice").await;
    let request = client.revocation_request(&tokens.refresh);
    match kill_during(server, &request, delay).await {
        Some(response) => assert_eq!(response.status, 200, "{response:?}"),
        None => client.revoke(server, &tokens.refresh).await,
    }
    for is_recovered in [false, true] {
        if is_recovered {
            server.recover().await;
        }
        assert_invalid_grant(&client.refresh(server, &tokens.refresh).await);
        wait_until_rejected(server, &tokens.access).await;
    }
}

/// Asserts that a response has tokens that work.
async fn assert_works(server: &BrokerServer, client: &BrokerClient, response: &HttpResponse) {
    let tokens = TokenPair::parse(response);
    McpSession::open(server, &tokens.access).await;
    TokenPair::parse(&client.refresh(server, &tokens.refresh).await);
}

/// Sends a request, kills the server after this time, and lets another process get the next
/// requests. Returns the response, if it was complete.
async fn kill_during(
    server: &mut BrokerServer,
    request: &Request,
    delay: Duration,
) -> Option<HttpResponse> {
    let mut connection = Connection::open(server.address()).await;
    connection.write(&request.to_bytes()).await;
    sleep(delay).await;
    server.program().signal(Signal::KILL);
    let response = connection.complete_response().await;
    server.fail_over().await;
    response
}
