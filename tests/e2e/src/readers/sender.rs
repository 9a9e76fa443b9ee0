//! Sends the corpus through the gateway, to all readers concurrently and to each in order.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use portcullis_mcp::header::{PROTOCOL_VERSION, SESSION};
use tokio::{task::JoinSet, time::timeout};

use super::{
    corpus::{Case, Era},
    gateway::Gateway,
    reader::Reader,
};

/// The timeout of a response. Later reports of the reader are also compared.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The timeout of the response to `initialize`, without which nothing can be sent.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// The maximum time for an event stream, because the stream of a subscription does not end.
const STREAM_LIMIT: Duration = Duration::from_millis(100);
const LEGACY: &str = "2025-11-25";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"readers","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The requests to one reader.
pub(super) struct Sent {
    cases: Arc<[Case]>,
    /// The case of each request with a response.
    with_response: HashMap<String, usize>,
}

impl Sent {
    /// Returns the number of sent messages.
    pub(super) fn len(&self) -> usize {
        self.cases.len()
    }

    /// Returns the requests with a response, by identifier.
    pub(super) fn requests(&self) -> impl Iterator<Item = (&str, &Case)> {
        let mut with_response: Vec<_> = self.with_response.iter().collect();
        with_response.sort_by_key(|(_, index)| **index);
        with_response
            .into_iter()
            .map(|(request, index)| (request.as_str(), &self.cases[*index]))
    }

    /// Returns whether a request got a response.
    pub(super) fn has_response(&self, request: &str) -> bool {
        self.with_response.contains_key(request)
    }
}

/// Sends all cases to all readers with the tokens that lack the scope.
pub(super) async fn send_all(
    gateway: &Gateway,
    readers: &[Reader],
    cases: Vec<Case>,
) -> anyhow::Result<Vec<Sent>> {
    send(gateway, readers, cases, false).await
}

/// Sends all cases to all readers with the tokens that have all scopes.
pub(super) async fn send_privileged(
    gateway: &Gateway,
    readers: &[Reader],
    cases: Vec<Case>,
) -> anyhow::Result<Vec<Sent>> {
    send(gateway, readers, cases, true).await
}

/// Sends all cases to all readers, each in its own task.
async fn send(
    gateway: &Gateway,
    readers: &[Reader],
    cases: Vec<Case>,
    is_privileged: bool,
) -> anyhow::Result<Vec<Sent>> {
    let cases: Arc<[Case]> = cases.into();
    let mut tasks = JoinSet::new();
    for (position, reader) in readers.iter().enumerate() {
        let sender = Sender {
            client: Client::builder(TokioExecutor::new()).build_http(),
            uri: format!("http://{}/{}", gateway.address(), reader.name),
            bearer: HeaderValue::try_from(format!(
                "Bearer {}",
                gateway.token(reader, is_privileged)
            ))?,
            session: None,
        };
        let name = reader.name;
        let cases = Arc::clone(&cases);
        tasks.spawn(async move { (position, sender.send_cases(cases).await.context(name)) });
    }
    let mut sent = tasks.join_all().await;
    sent.sort_by_key(|(position, _)| *position);
    sent.into_iter().map(|(_, sent)| sent).collect()
}

/// A client of one reader.
struct Sender {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: String,
    bearer: HeaderValue,
    session: Option<HeaderValue>,
}

/// The used parts of a response.
struct ReaderResponse {
    status: StatusCode,
    request: Option<String>,
    session: Option<HeaderValue>,
    is_stream: bool,
    body: Bytes,
}

impl Sender {
    /// Sends all cases to one reader.
    async fn send_cases(mut self, cases: Arc<[Case]>) -> anyhow::Result<Sent> {
        let mut with_response = HashMap::new();
        for (index, case) in cases.iter().enumerate() {
            let mut response = self.send_case(case).await?;
            if case.era == Era::Legacy && response.as_ref().is_none_or(ReaderResponse::lost_session)
            {
                self.session = None;
                response = self.send_case(case).await?;
            }
            with_response.extend(
                response
                    .and_then(|response| response.request)
                    .map(|request| (request, index)),
            );
        }
        ensure!(
            with_response.len() * 10 > cases.len() * 9,
            "{} of {} messages got a response",
            with_response.len(),
            cases.len()
        );
        Ok(Sent {
            cases,
            with_response,
        })
    }

    /// Sends a case, in a session if it needs one. Returns `None` without a response in time.
    async fn send_case(&mut self, case: &Case) -> anyhow::Result<Option<ReaderResponse>> {
        let session = match case.era {
            Era::Legacy => Some(self.session().await?),
            Era::Modern => None,
        };
        let mut request = self.request(&case.body)?;
        if let Some(session) = session {
            let headers = request.headers_mut();
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(LEGACY));
            headers.insert(SESSION, session);
        }
        case.headers
            .iter()
            .for_each(|(name, _)| drop(request.headers_mut().remove(name)));
        for (name, value) in &case.headers {
            request
                .headers_mut()
                .append(HeaderName::try_from(name)?, HeaderValue::from_bytes(value)?);
        }
        self.exchange(request, ANSWER_LIMIT).await
    }

    /// Returns the session, and opens one if there is none.
    async fn session(&mut self) -> anyhow::Result<HeaderValue> {
        if let Some(session) = &self.session {
            return Ok(session.clone());
        }
        let opened = self
            .exchange(self.request(INITIALIZE.as_bytes())?, OPEN_LIMIT)
            .await?
            .context("initialize got no response")?;
        ensure!(
            opened.status == StatusCode::OK,
            "initialize got {}: {:?}",
            opened.status,
            opened.body
        );
        // For readers without sessions, the gateway issues the identifier.
        let session = opened.session.context("no session was opened")?;
        let mut request = self.request(INITIALIZED.as_bytes())?;
        request
            .headers_mut()
            .insert(PROTOCOL_VERSION, HeaderValue::from_static(LEGACY));
        request.headers_mut().insert(SESSION, session.clone());
        self.exchange(request, ANSWER_LIMIT).await?;
        self.session = Some(session.clone());
        Ok(session)
    }

    fn request(&self, body: &[u8]) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::post(self.uri.as_str()).body(Full::from(body.to_vec()))?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, self.bearer.clone());
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        Ok(request)
    }

    /// Sends a request. Returns `None` without a response in time.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> anyhow::Result<Option<ReaderResponse>> {
        match timeout(limit, self.client.request(request)).await {
            // After a closed connection, there is no identifier.
            Err(_) | Ok(Err(_)) => Ok(None),
            Ok(Ok(response)) => Ok(Some(ReaderResponse::read(response).await)),
        }
    }
}

impl ReaderResponse {
    /// Reads a response. The body is empty if it does not end in time.
    async fn read(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let content_type = head
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let is_stream = content_type.is_some_and(|value| value.starts_with("text/event-stream"));
        let limit = if is_stream {
            STREAM_LIMIT
        } else {
            ANSWER_LIMIT
        };
        let body = timeout(limit, body.collect())
            .await
            .ok()
            .and_then(Result::ok);
        Self {
            status: head.status,
            request: head
                .headers
                .get("x-request-id")
                .and_then(|id| id.to_str().ok())
                .map(str::to_owned),
            session: head.headers.get(SESSION).cloned(),
            is_stream,
            body: body.map(|body| body.to_bytes()).unwrap_or_default(),
        }
    }

    /// Returns whether the gateway or the reader has ended the session. The Go SDK responds with
    /// 200 without a body then.
    fn lost_session(&self) -> bool {
        let text = String::from_utf8_lossy(&self.body).to_lowercase();
        let is_empty = self.status == StatusCode::OK && !self.is_stream && self.body.is_empty();
        is_empty
            || matches!(self.status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
                && text.contains("session")
    }
}
