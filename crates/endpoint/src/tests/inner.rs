use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::Full;
use parking_lot::Mutex;
use portcullis_mcp::Era;
use tower_service::Service;

use crate::Admitted;

/// An inner service that answers from a script, or with 200 `{}`, and records the requests.
#[derive(Clone, Default)]
pub(super) struct Inner(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    responses: VecDeque<Response<Full<Bytes>>>,
    seen: Vec<Seen>,
    silent: bool,
}

/// A request as the inner service received it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) era: Era,
    pub(super) subject: Option<String>,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Inner {
    /// Adds a response to the script.
    pub(super) fn add_response(&self, status: u16, headers: &[(&str, &str)], body: &'static str) {
        let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        self.0
            .lock()
            .responses
            .push_back(response.body(Full::new(body.into())).unwrap());
    }

    /// Adds an extension to the last response in the script.
    pub(super) fn with_extension<T: Clone + Send + Sync + 'static>(&self, extension: T) {
        self.0
            .lock()
            .responses
            .back_mut()
            .unwrap()
            .extensions_mut()
            .insert(extension);
    }

    /// Delays all responses while `silent` is true.
    pub(super) fn set_silent(&self, silent: bool) {
        self.0.lock().silent = silent;
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.0.lock().seen.clone()
    }

    pub(super) fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }
}

impl Service<Admitted> for Inner {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: Admitted) -> Self::Future {
        let mut script = self.0.lock();
        script.seen.push(Seen {
            method: admitted.method().clone(),
            headers: admitted.headers().clone(),
            body: admitted.body().clone(),
            era: admitted.era(),
            subject: admitted
                .caller()
                .principal()
                .and_then(|who| who.subject())
                .map(str::to_owned),
        });
        drop(script);
        let script = Arc::clone(&self.0);
        Box::pin(poll_fn(move |_| {
            let mut script = script.lock();
            if script.silent {
                return Poll::Pending;
            }
            Poll::Ready(Ok(script
                .responses
                .pop_front()
                .unwrap_or_else(|| Response::new(Full::new("{}".into())))))
        }))
    }
}
