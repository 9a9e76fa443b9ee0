//! [`BoundedFetch`]: the limits of all requests to one provider.

use std::{sync::Arc, time::Duration};

use portcullis_discovery::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

/// The maximum duration of a request, including the wait for other requests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a response in bytes.
const MAX_BODY: usize = 64 * 1024;
/// The maximum number of requests at once.
const MAX_CALLS: usize = 64;
/// The maximum number of requests that wait for others. Further ones fail at once.
const MAX_WAITING: usize = 1024;

/// Sends requests with the limits of a provider.
pub(crate) struct BoundedFetch {
    fetch: Arc<dyn Fetch>,
    calls: Semaphore,
    places: Semaphore,
}

impl BoundedFetch {
    pub(crate) fn new(fetch: Arc<dyn Fetch>) -> Arc<Self> {
        Arc::new(Self {
            fetch,
            calls: Semaphore::new(MAX_CALLS),
            places: Semaphore::new(MAX_CALLS + MAX_WAITING),
        })
    }
}

impl Fetch for BoundedFetch {
    fn fetch(&self, mut request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        request.max_body = request.max_body.min(MAX_BODY);
        Box::pin(async move {
            let deadline = Instant::now() + request.timeout.min(TIMEOUT);
            let _place = self.places.try_acquire().map_err(|_| FetchError::Timeout)?;
            timeout_at(deadline, async {
                let _call = self
                    .calls
                    .acquire()
                    .await
                    .map_err(|_| FetchError::Timeout)?;
                request.timeout = deadline.saturating_duration_since(Instant::now());
                if request.timeout.is_zero() {
                    return Err(FetchError::Timeout);
                }
                self.fetch.fetch(request).await
            })
            .await
            .unwrap_or(Err(FetchError::Timeout))
        })
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::UrlPolicy;
    use portcullis_testkit::ScriptedFetch;
    use url::Url;

    use super::*;

    const URL: &str = "https://idp.example/token";

    fn request() -> FetchRequest {
        FetchRequest::get(Url::parse(URL).unwrap(), UrlPolicy::Operator)
    }

    /// PR9: at most 64 requests run at once; the others wait for at most 10 s.
    #[tokio::test(start_paused = true)]
    async fn calls_are_limited() {
        let network = ScriptedFetch::new();
        let gate = network.hang(URL);
        let bounded = BoundedFetch::new(Arc::new(network.clone()));
        let tasks: Vec<_> = (0..MAX_CALLS + MAX_WAITING + 1)
            .map(|_| {
                let bounded = Arc::clone(&bounded);
                tokio::spawn(async move { bounded.fetch(request()).await })
            })
            .collect();
        gate.reached().await;
        let mut timed_out = 0;
        for task in tasks {
            timed_out += usize::from(matches!(task.await.unwrap(), Err(FetchError::Timeout)));
        }
        assert_eq!(timed_out, MAX_CALLS + MAX_WAITING + 1);
        assert_eq!(network.hits(URL), MAX_CALLS);
        gate.release();
        assert!(bounded.fetch(request()).await.is_ok());
    }

    /// PR9: a response of more than 64 KB is an error, even if the request allows more.
    #[tokio::test]
    async fn large_responses_are_rejected() {
        let network = ScriptedFetch::new();
        let bounded = BoundedFetch::new(Arc::new(network.clone()));
        network.serve(URL, 200, vec![b' '; MAX_BODY]);
        assert!(bounded.fetch(request()).await.is_ok());
        network.serve(URL, 200, vec![b' '; MAX_BODY + 1]);
        assert!(matches!(
            bounded.fetch(request()).await,
            Err(FetchError::TooLarge { limit: MAX_BODY })
        ));
    }
}
