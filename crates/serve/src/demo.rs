//! The MCP server of `portcullis demo` and of `upstream = "demo"`.

mod method_error;
mod methods;
mod silent_body;
mod tools;

use std::convert::Infallible;

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty, Full, combinators::BoxBody};
use portcullis_endpoint::Admitted;
use portcullis_mcp::{Era, ErrorCode, Revisions, error_body};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use self::{method_error::MethodError, silent_body::SilentBody};

/// An MCP server with three tools. It keeps no sessions, because those of the endpoint suffice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DemoServer {
    /// The revisions that the resource serves.
    served: Revisions,
}

type DemoBody = BoxBody<Bytes, Infallible>;

/// A JSON-RPC message. A response of the client has no method, and a notification has no id.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

impl DemoServer {
    /// Returns the demo server of a resource that serves these revisions. Never fails here. A
    /// package without the feature `dev` has no demo server.
    pub(crate) fn new(served: Revisions) -> anyhow::Result<Self> {
        Ok(Self { served })
    }

    /// Responds to a request. GET opens an event stream without events, which the endpoint keeps
    /// alive and ends.
    pub(crate) fn respond(self, request: &Admitted) -> Response<DemoBody> {
        match *request.method() {
            Method::POST => respond_to_message(request, self.served),
            Method::GET => with_type("text/event-stream", SilentBody),
            _ => {
                let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
                response
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static("GET, POST"));
                response
            }
        }
    }
}

fn respond_to_message(request: &Admitted, served: Revisions) -> Response<DemoBody> {
    let (id, method, params) = match serde_json::from_slice(request.body()) {
        Ok(Message {
            id: Some(id),
            method: Some(method),
            params,
        }) => (id, method, params),
        Ok(_) => return empty(StatusCode::ACCEPTED),
        Err(error) => {
            let body = error_body(ErrorCode::ParseError, &error.to_string(), None, None);
            return json_response(StatusCode::BAD_REQUEST, body);
        }
    };
    let is_modern = matches!(request.era(), Era::Modern(_));
    match methods::call(
        &method,
        &params,
        request.caller().principal(),
        is_modern,
        served,
    ) {
        Ok(result) => {
            // The id is copied as text: a number that is parsed can lose precision.
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            json_response(StatusCode::OK, body)
        }
        Err(MethodError { code, message }) => {
            let is_unknown_method = code == ErrorCode::MethodNotFound;
            let status = if is_modern && is_unknown_method {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::OK
            };
            json_response(status, error_body(code, &message, Some(id), None))
        }
    }
}

fn json_response(status: StatusCode, body: impl Into<Bytes>) -> Response<DemoBody> {
    let mut response = with_type("application/json", Full::new(body.into()));
    *response.status_mut() = status;
    response
}

fn with_type(
    media_type: &'static str,
    body: impl Body<Data = Bytes, Error = Infallible> + Send + Sync + 'static,
) -> Response<DemoBody> {
    let mut response = Response::new(body.boxed());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn empty(status: StatusCode) -> Response<DemoBody> {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = status;
    response
}
