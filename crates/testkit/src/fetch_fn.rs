//! [`FetchFn`]: a [`Fetch`] that responds with a function.

use std::{collections::HashMap, fmt, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use portcullis_discovery::{
    BodyStream, BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure,
    OpenResponse,
};

use crate::reply::Reply;

/// Returns the reply to a request, or `None` if the connection is refused.
type Respond = dyn Fn(&FetchRequest) -> Option<Reply> + Send + Sync;

/// A [`Fetch`] that responds with a function and records the requests. When the function returns
/// `None`, the connection is refused.
///
/// Policies, limits and timeouts of requests are ignored.
///
/// ```
/// use portcullis_testkit::{FetchFn, Reply};
///
/// let network = FetchFn::new(|request| match request.url.path() {
///     "/health" => Some(Reply::json(200, r#"{"ok":true}"#)),
///     _ => None,
/// });
/// assert!(network.requests().is_empty());
/// ```
pub struct FetchFn {
    respond: Box<Respond>,
    requests: Mutex<Vec<FetchRequest>>,
}

impl FetchFn {
    /// Creates a network that responds with `respond`.
    pub fn new(
        respond: impl Fn(&FetchRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            respond: Box::new(respond),
            requests: Mutex::default(),
        })
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<FetchRequest> {
        self.requests.lock().clone()
    }

    /// Returns the requests to this URL.
    pub fn to(&self, url: &str) -> Vec<FetchRequest> {
        self.requests()
            .into_iter()
            .filter(|request| request.url.as_str() == url)
            .collect()
    }

    /// Records a request and returns the reply, or an error as if the connection was refused.
    fn reply(&self, request: FetchRequest) -> Result<Reply, FetchError> {
        let reply = (self.respond)(&request);
        self.requests.lock().push(request);
        reply.ok_or_else(|| FetchError::network(NetworkFailure::Connect))
    }
}

/// Returns the fields of the form that a request sends.
pub fn form(request: &FetchRequest) -> HashMap<String, String> {
    url::form_urlencoded::parse(&request.body)
        .into_owned()
        .collect()
}

impl Fetch for FetchFn {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let reply = self.reply(request)?;
            if reply.is_interrupted {
                return Err(FetchError::network(NetworkFailure::Interrupted));
            }
            Ok(FetchResponse {
                status: reply.status,
                headers: reply.headers,
                body: reply.pieces.concat().into(),
                sent: Default::default(),
            })
        })
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        Box::pin(async move {
            let reply = self.reply(request)?;
            let end = reply
                .is_interrupted
                .then(|| FetchError::network(NetworkFailure::Interrupted));
            let body = Box::new(Pieces {
                pieces: reply.pieces.into_iter(),
                end,
            });
            Ok(OpenResponse {
                status: reply.status,
                headers: reply.headers,
                body,
                sent: Default::default(),
            })
        })
    }
}

impl fmt::Debug for FetchFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchFn")
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}

/// A body that arrives in pieces.
struct Pieces {
    pieces: std::vec::IntoIter<Bytes>,
    /// The error after the pieces.
    end: Option<FetchError>,
}

impl BodyStream for Pieces {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async {
            self.pieces
                .next()
                .map(Ok)
                .or_else(|| self.end.take().map(Err))
        })
    }
}
