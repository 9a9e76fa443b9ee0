use std::{net::SocketAddr, rc::Rc, time::Duration};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use portcullis_scenarios::{INITIALIZE, call_message};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    ENDPOINT,
    http::{Http, Response},
    tally::{Tally, count},
};

/// The header in which nginx names the replicas to which it has sent the request.
const REPLICA: &str = "x-replica";
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);

/// A client with its own token that sends requests through nginx and directly to each replica.
pub(super) struct Client {
    token: String,
    nginx: Http,
    replicas: Vec<Http>,
    pub(super) tally: Rc<Tally>,
    next_id: u64,
}

impl Client {
    /// Creates a client with connections to nginx and to each replica.
    pub(super) fn new(
        token: String,
        nginx: SocketAddr,
        replicas: &[SocketAddr],
        tally: &Rc<Tally>,
    ) -> Self {
        let replicas = replicas.iter().copied().map(Http::new).collect();
        Self {
            token,
            nginx: Http::new(nginx),
            replicas,
            tally: Rc::clone(tally),
            next_id: 1,
        }
    }

    /// Opens a session and returns its identifier. Repeats interrupted requests.
    pub(super) async fn open(&mut self) -> anyhow::Result<String> {
        let response = self
            .complete(Method::POST, None, INITIALIZE.to_owned(), &[StatusCode::OK])
            .await?;
        let identifier = response
            .headers
            .get("mcp-session-id")
            .context("no session identifier")?
            .to_str()?
            .to_owned();
        let initialized =
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        self.complete(
            Method::POST,
            Some(&identifier),
            initialized,
            &[StatusCode::ACCEPTED],
        )
        .await?;
        count(&self.tally.opened);
        Ok(identifier)
    }

    /// Calls a tool, and checks that the response belongs to this call.
    pub(super) async fn call(&mut self, session: &str) -> anyhow::Result<()> {
        let (body, id) = self.greet_call();
        let started = Instant::now();
        let response = self
            .complete(Method::POST, Some(session), body, &[StatusCode::OK])
            .await?;
        let text = String::from_utf8_lossy(&response.body);
        let mut message = text
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
        let message: Option<Value> = message
            .next_back()
            .or_else(|| serde_json::from_str(&text).ok());
        let is_expected = |message: &Value| {
            message["id"] == id && message["result"].to_string().contains(&format!("n{id}"))
        };
        if !message.as_ref().is_some_and(is_expected) {
            self.tally
                .fault(format!("the call {id} has another response: {text}"));
        }
        self.tally.called(started.elapsed());
        Ok(())
    }

    /// Ends a session. Returns whether the end was confirmed.
    pub(super) async fn end(&mut self, session: &str) -> anyhow::Result<bool> {
        let mut is_first = true;
        loop {
            let started = Instant::now();
            let request = self.request(Method::DELETE, Some(session), String::new())?;
            match self.nginx.send(request).await {
                Ok(response) if response.status.is_success() => {
                    self.tally.confirmed(started.elapsed());
                    return Ok(true);
                }
                // An earlier attempt has ended the session, without a confirmation.
                Ok(response)
                    if response.status == StatusCode::NOT_FOUND
                        && (!is_first || is_repeated(&response)) =>
                {
                    return Ok(false);
                }
                Ok(response)
                    if response.status == StatusCode::SERVICE_UNAVAILABLE
                        && self.tally.is_redis_unavailable(started) =>
                {
                    count(&self.tally.unconfirmed);
                }
                result => self.check_interrupted(started, "DELETE", result)?,
            }
            is_first = false;
            sleep(PAUSE).await;
        }
    }

    /// Sends a call in an ended session to every replica. A replica may be down, but none may
    /// accept it.
    pub(super) async fn check_ended(&mut self, session: &str) -> anyhow::Result<()> {
        let (body, _) = self.greet_call();
        let request = self.request(Method::POST, Some(session), body)?;
        for replica in &mut self.replicas {
            let Ok(response) = replica.send(request.clone()).await else {
                continue;
            };
            count(&self.tally.checks);
            match response.status {
                StatusCode::NOT_FOUND => {}
                StatusCode::SERVICE_UNAVAILABLE => count(&self.tally.not_ready),
                status => self.tally.fault(format!("an ended session got {status}")),
            }
        }
        Ok(())
    }

    /// Sends a request until the response has an expected status.
    async fn complete(
        &mut self,
        method: Method,
        session: Option<&str>,
        body: String,
        expected: &[StatusCode],
    ) -> anyhow::Result<Response> {
        loop {
            let started = Instant::now();
            let request = self.request(method.clone(), session, body.clone())?;
            match self.nginx.send(request).await {
                Ok(response) if expected.contains(&response.status) => return Ok(response),
                result => self.check_interrupted(started, method.as_str(), result)?,
            }
            sleep(PAUSE).await;
        }
    }

    /// Counts a request that failed because its replica was killed. Any other failure is a fault.
    fn check_interrupted(
        &self,
        started: Instant,
        method: &str,
        result: anyhow::Result<Response>,
    ) -> anyhow::Result<()> {
        let described = match &result {
            Ok(response) => format!(
                "{} {}",
                response.status,
                String::from_utf8_lossy(&response.body)
            ),
            Err(error) => format!("{error:#}"),
        };
        let replicas = result
            .as_ref()
            .ok()
            .and_then(|response| response.headers.get(REPLICA)?.to_str().ok());
        let is_cut_off = result
            .as_ref()
            .map_or(true, |response| response.status == StatusCode::BAD_GATEWAY);
        if is_cut_off && self.tally.is_interrupted(started, replicas) {
            count(&self.tally.interrupted);
            return Ok(());
        }
        let fault = format!(
            "{method} at {} after {:?}: {described}",
            replicas.unwrap_or("nginx"),
            started.elapsed()
        );
        self.tally.fault(fault.clone());
        // A lost session does not recover.
        if result.is_ok_and(|response| response.status.is_client_error()) {
            bail!(fault);
        }
        Ok(())
    }

    /// Returns a call of the tool `greet`, and its number, which the result must name.
    fn greet_call(&mut self) -> (String, u64) {
        self.next_id += 1;
        let id = self.next_id;
        (
            call_message(
                id,
                "tools/call",
                &json!({ "name": "greet", "arguments": { "name": format!("n{id}") } }),
            ),
            id,
        )
    }

    /// Returns a request with the token, in a session if one is given.
    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        body: String,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(method)
            .uri(ENDPOINT)
            .header(header::HOST, "127.0.0.1");
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        if let Some(session) = session {
            request = request
                .header("Mcp-Session-Id", session)
                .header("MCP-Protocol-Version", "2025-11-25");
        }
        request = request.header(header::ACCEPT, "application/json, text/event-stream");
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        Ok(request.body(Full::new(Bytes::from(body)))?)
    }
}

/// Returns whether nginx has sent the request to several replicas.
fn is_repeated(response: &Response) -> bool {
    response
        .headers
        .get(REPLICA)
        .is_some_and(|replicas| replicas.as_bytes().contains(&b','))
}
