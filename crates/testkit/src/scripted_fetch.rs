//! [`ScriptedFetch`]: a scripted [`Fetch`].

use std::{collections::HashMap, fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use portcullis_discovery::{
    BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure,
};
use url::Url;

use crate::{gate::Gate, test_issuer::TestIssuer};

/// A [`Fetch`] that responds by URL from a script and records the requests. Clones share the
/// script.
///
/// The query is part of the URL. URLs without a script get 404. A request's policy and `max_body`
/// are enforced as by the real fetcher; its timeout is ignored.
#[derive(Clone, Default)]
pub struct ScriptedFetch(Arc<Mutex<Script>>);

/// What each URL responds with, and the requests so far.
#[derive(Default)]
struct Script {
    responses: HashMap<String, Respond>,
    gates: HashMap<String, Gate>,
    requests: Vec<FetchRequest>,
}

/// What a URL responds with.
type Respond = Arc<dyn Fn(&FetchRequest) -> Result<FetchResponse, FetchError> + Send + Sync>;

impl ScriptedFetch {
    /// Creates a network that responds with 404 to all requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves the metadata and current keys of an issuer.
    pub fn publish(&self, test_issuer: &TestIssuer) {
        self.serve(test_issuer.metadata_url(), 200, test_issuer.metadata_json());
        self.serve(test_issuer.endpoint("jwks"), 200, test_issuer.jwks_json());
    }

    /// Responds to requests for this URL with a status and an `application/json` body.
    pub fn serve(&self, url: impl AsRef<str>, status: u16, body: impl Into<Bytes>) {
        let headers = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )]);
        let status = StatusCode::from_u16(status).expect("a status from 100 to 999");
        let response = FetchResponse {
            status,
            headers,
            body: body.into(),
            sent: Default::default(),
        };
        self.respond(url, move |_| Ok(response.clone()));
    }

    /// Fails requests for this URL as if the connection was refused.
    pub fn fail(&self, url: impl AsRef<str>) {
        self.respond(url, |_| Err(FetchError::network(NetworkFailure::Connect)));
    }

    /// Fails requests for this URL with a timeout.
    pub fn time_out(&self, url: impl AsRef<str>) {
        self.respond(url, |_| Err(FetchError::Timeout));
    }

    /// Responds to requests for this URL with the result of a function.
    pub fn respond<F>(&self, url: impl AsRef<str>, respond: F)
    where
        F: Fn(&FetchRequest) -> Result<FetchResponse, FetchError> + Send + Sync + 'static,
    {
        self.0.lock().responses.insert(key(url), Arc::new(respond));
    }

    /// Delays requests for this URL until the gate is released. They then get the response of the
    /// current script.
    pub fn hang(&self, url: impl AsRef<str>) -> Gate {
        let gate = Gate::new();
        self.0.lock().gates.insert(key(url), gate.clone());
        gate
    }

    /// Returns the number of requests for this URL.
    pub fn hits(&self, url: impl AsRef<str>) -> usize {
        self.requests(url).len()
    }

    /// Returns the requests for this URL in order.
    pub fn requests(&self, url: impl AsRef<str>) -> Vec<FetchRequest> {
        let key = key(url);
        self.0
            .lock()
            .requests
            .iter()
            .filter(|request| request.url.as_str() == key)
            .cloned()
            .collect()
    }

    /// Returns the URLs of all requests in order.
    pub fn urls(&self) -> Vec<Url> {
        self.0
            .lock()
            .requests
            .iter()
            .map(|request| request.url.clone())
            .collect()
    }
}

impl Fetch for ScriptedFetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            request
                .policy
                .check(&request.url)
                .map_err(FetchError::UrlPolicy)?;
            let gate = {
                let mut script = self.0.lock();
                script.requests.push(request.clone());
                script.gates.get(request.url.as_str()).cloned()
            };
            if let Some(gate) = gate {
                gate.pass().await;
            }
            let response = self.0.lock().responses.get(request.url.as_str()).cloned();
            let response = match response {
                Some(response) => response(&request)?,
                None => FetchResponse {
                    status: StatusCode::NOT_FOUND,
                    headers: HeaderMap::new(),
                    body: Bytes::new(),
                    sent: Default::default(),
                },
            };
            if response.body.len() > request.max_body {
                return Err(FetchError::TooLarge {
                    limit: request.max_body,
                });
            }
            Ok(response)
        })
    }
}

impl fmt::Debug for ScriptedFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedFetch")
            .field("urls", &self.urls().len())
            .finish_non_exhaustive()
    }
}

/// Returns a URL in the form in which requests have it.
fn key(url: impl AsRef<str>) -> String {
    Url::parse(url.as_ref()).expect("a valid URL").into()
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
    async fn requests_are_answered_by_url_and_counted() {
        let network = ScriptedFetch::new();
        network.serve(URL, 200, "{}");
        let response = network.fetch(get(URL)).await.unwrap();
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(*response.body, b"{}"[..]);
        assert_eq!(
            network
                .fetch(get("https://issuer.example/"))
                .await
                .unwrap()
                .status,
            StatusCode::NOT_FOUND
        );
        network.fail(URL);
        assert!(matches!(
            network.fetch(get(URL)).await,
            Err(FetchError::Network(_))
        ));
        network.time_out(URL);
        assert!(matches!(
            network.fetch(get(URL)).await,
            Err(FetchError::Timeout)
        ));
        assert_eq!(network.hits(URL), 3);
        assert_eq!(network.urls().len(), 4);
    }

    #[tokio::test]
    async fn policy_and_size_are_enforced() {
        let network = ScriptedFetch::new();
        network.serve(URL, 200, "12345");
        let mut request = get(URL);
        request.max_body = 4;
        assert!(matches!(
            network.fetch(request).await,
            Err(FetchError::TooLarge { limit: 4 })
        ));
        assert!(matches!(
            network.fetch(get("http://issuer.example/jwks")).await,
            Err(FetchError::UrlPolicy(_))
        ));
        assert_eq!(network.hits(URL), 1);
    }

    #[tokio::test]
    async fn requests_wait_until_the_gate_is_released() {
        let network = ScriptedFetch::new();
        let gate = network.hang(URL);
        let waiting = tokio::spawn({
            let network = network.clone();
            async move { network.fetch(get(URL)).await }
        });
        gate.reached().await;
        assert!(!waiting.is_finished());
        network.serve(URL, 503, "");
        gate.release();
        assert_eq!(
            waiting.await.unwrap().unwrap().status,
            StatusCode::SERVICE_UNAVAILABLE
        );
        assert!(network.fetch(get(URL)).await.is_ok());
    }

    #[tokio::test]
    async fn a_test_issuer_is_published() {
        let network = ScriptedFetch::new();
        let test_issuer = TestIssuer::new("https://issuer.example");
        network.publish(&test_issuer);
        let metadata = network
            .fetch(get(test_issuer.metadata_url().as_str()))
            .await
            .unwrap();
        assert_eq!(metadata.body, test_issuer.metadata_json());
        assert_eq!(
            network.fetch(get(URL)).await.unwrap().body,
            test_issuer.jwks_json()
        );
    }
}
