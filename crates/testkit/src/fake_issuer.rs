use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portcullis_discovery::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure};
use tokio::sync::Semaphore;
use url::Url;

use crate::Forge;

/// A [`Fetch`] that answers from a script, by URL, and remembers what it was asked. Clones share the script.
///
/// The query is part of the URL. A URL that nobody scripted answers 404. A request's policy and its `max_body`
/// are judged as the real fetcher judges them; its time-out is not.
#[derive(Clone, Default)]
pub struct FakeIssuer(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: HashMap<String, Answer>,
    gates: HashMap<String, Gate>,
    requests: Vec<FetchRequest>,
}

type Answer = Arc<dyn Fn(&FetchRequest) -> Result<FetchResponse, FetchError> + Send + Sync>;

impl FakeIssuer {
    /// One that answers 404 to everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves a forge's metadata and its present keys.
    pub fn publish(&self, forge: &Forge) {
        self.serve(forge.metadata_url(), 200, forge.metadata_json());
        self.serve(forge.endpoint("jwks"), 200, forge.jwks_json());
    }

    /// From now on this URL answers so, as `application/json`.
    pub fn serve(&self, url: impl AsRef<str>, status: u16, body: impl Into<Bytes>) {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let status = StatusCode::from_u16(status).expect("a status is a number from 100 to 999");
        let response = FetchResponse { status, headers, body: body.into() };
        self.answer(url, move |_| Ok(response.clone()));
    }

    /// From now on fetches of this URL fail as if nothing listened there.
    pub fn fail(&self, url: impl AsRef<str>) {
        self.answer(url, |_| Err(FetchError::network(NetworkFailure::Connect)));
    }

    /// From now on fetches of this URL run out of time.
    pub fn time_out(&self, url: impl AsRef<str>) {
        self.answer(url, |_| Err(FetchError::Timeout));
    }

    /// From now on this URL answers what the function makes of the request.
    pub fn answer<F>(&self, url: impl AsRef<str>, answer: F)
    where
        F: Fn(&FetchRequest) -> Result<FetchResponse, FetchError> + Send + Sync + 'static,
    {
        self.script().answers.insert(key(url), Arc::new(answer));
    }

    /// From now on fetches of this URL wait until the gate is released, and then answer what the script says by then.
    pub fn hang(&self, url: impl AsRef<str>) -> Gate {
        let gate = Gate::new();
        self.script().gates.insert(key(url), gate.clone());
        gate
    }

    /// How often this URL was asked for.
    pub fn hits(&self, url: impl AsRef<str>) -> usize {
        self.requests(url).len()
    }

    /// The requests for this URL, in order.
    pub fn requests(&self, url: impl AsRef<str>) -> Vec<FetchRequest> {
        let key = key(url);
        self.script().requests.iter().filter(|request| request.url.as_str() == key).cloned().collect()
    }

    /// Every URL that was asked for, in order.
    pub fn urls(&self) -> Vec<Url> {
        self.script().requests.iter().map(|request| request.url.clone()).collect()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch for FakeIssuer {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            request.policy.check(&request.url).map_err(FetchError::Refused)?;
            let gate = {
                let mut script = self.script();
                script.requests.push(request.clone());
                script.gates.get(request.url.as_str()).cloned()
            };
            if let Some(gate) = gate {
                gate.pass().await;
            }
            let answer = self.script().answers.get(request.url.as_str()).cloned();
            let response = match answer {
                Some(answer) => answer(&request)?,
                None => FetchResponse { status: StatusCode::NOT_FOUND, headers: HeaderMap::new(), body: Bytes::new() },
            };
            if response.body.len() > request.max_body {
                return Err(FetchError::TooLarge { limit: request.max_body });
            }
            Ok(response)
        })
    }
}

impl fmt::Debug for FakeIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeIssuer").field("urls", &self.urls().len()).finish_non_exhaustive()
    }
}

fn key(url: impl AsRef<str>) -> String {
    Url::parse(url.as_ref()).expect("a scripted URL is a URL").into()
}

/// Holds fetches back until it is released. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    open: Semaphore,
    arrived: Semaphore,
}

impl Gate {
    fn new() -> Self {
        Self(Arc::new(GateState { open: Semaphore::new(0), arrived: Semaphore::new(0) }))
    }

    /// Lets all fetches through, those that wait and those to come.
    pub fn release(&self) {
        self.0.open.close();
    }

    /// Waits until a fetch has reached the gate: once for each fetch.
    pub async fn reached(&self) {
        self.0.arrived.acquire().await.expect("the gate counts as long as it stands").forget();
    }

    async fn pass(&self) {
        self.0.arrived.add_permits(1);
        // Nobody adds permits: only closing ends the wait.
        let _ = self.0.open.acquire().await;
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::UrlPolicy;

    use super::*;

    const URL: &str = "https://issuer.example/jwks";

    fn get(url: &str) -> FetchRequest {
        FetchRequest::get(Url::parse(url).unwrap(), UrlPolicy::Operator)
    }

    #[tokio::test]
    async fn answers_by_url_and_counts() {
        let issuer = FakeIssuer::new();
        issuer.serve(URL, 200, "{}");
        let response = issuer.fetch(get(URL)).await.unwrap();
        assert_eq!((response.status, &*response.body), (StatusCode::OK, &b"{}"[..]));
        assert_eq!(issuer.fetch(get("https://issuer.example/")).await.unwrap().status, StatusCode::NOT_FOUND);
        issuer.fail(URL);
        assert!(matches!(issuer.fetch(get(URL)).await, Err(FetchError::Network(_))));
        issuer.time_out(URL);
        assert!(matches!(issuer.fetch(get(URL)).await, Err(FetchError::Timeout)));
        assert_eq!((issuer.hits(URL), issuer.urls().len()), (3, 4));
    }

    #[tokio::test]
    async fn judges_policy_and_size_as_the_real_one() {
        let issuer = FakeIssuer::new();
        issuer.serve(URL, 200, "12345");
        let mut request = get(URL);
        request.max_body = 4;
        assert!(matches!(issuer.fetch(request).await, Err(FetchError::TooLarge { limit: 4 })));
        assert!(matches!(issuer.fetch(get("http://issuer.example/jwks")).await, Err(FetchError::Refused(_))));
        assert_eq!(issuer.hits(URL), 1);
    }

    #[tokio::test]
    async fn hangs_until_released() {
        let issuer = FakeIssuer::new();
        let gate = issuer.hang(URL);
        let waiting = tokio::spawn({
            let issuer = issuer.clone();
            async move { issuer.fetch(get(URL)).await }
        });
        gate.reached().await;
        assert!(!waiting.is_finished());
        issuer.serve(URL, 503, "");
        gate.release();
        assert_eq!(waiting.await.unwrap().unwrap().status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(issuer.fetch(get(URL)).await.is_ok());
    }

    #[tokio::test]
    async fn publishes_a_forge() {
        let (issuer, forge) = (FakeIssuer::new(), Forge::new("https://issuer.example"));
        issuer.publish(&forge);
        let metadata = issuer.fetch(get(forge.metadata_url().as_str())).await.unwrap();
        assert_eq!(metadata.body, forge.metadata_json());
        assert_eq!(issuer.fetch(get(URL)).await.unwrap().body, forge.jwks_json());
    }
}
