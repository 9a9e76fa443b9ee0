use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONTENT_TYPE, HOST,
    },
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use portcullis_metadata::is_loopback;
use url::Url;

use crate::{
    admin,
    app::App,
    authorize, consent,
    endpoint::Endpoint,
    faults::{self, Struck},
    form::Params,
    introspection,
    oauth_error::{ErrorName, OAuthRefusal},
    page::front_page,
    registration,
    respond::{self, Reply, json_refusal_with, plain},
    revocation, token,
};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const MAX_QUERY: usize = 8 * 1024;
const MAX_BODY: usize = 16 * 1024;
const BODY_TIME: Duration = Duration::from_secs(10);

/// A connection that ends without an answer, on purpose. hyper closes it for any error.
#[derive(Debug, thiserror::Error)]
#[error("a scripted fault")]
pub(crate) struct Cut;

/// Answers a request.
pub(crate) async fn answer(app: &Arc<App>, request: Request<Incoming>) -> Result<Reply, Cut> {
    // A page of another site that has its name point to loopback would otherwise count as ours (DNS rebinding).
    if !is_for_loopback(&request) {
        return Ok(plain(StatusCode::FORBIDDEN, "This server answers to loopback host names only.\n"));
    }
    let endpoint = Endpoint::find(request.uri().path(), &app.issuer, &app.settings.issuer_path);
    let Some(endpoint) = endpoint.filter(|endpoint| app.settings.admin || !endpoint.is_admin()) else {
        let text = "There is nothing here. This is a development authorization server.\n";
        return Ok(plain(StatusCode::NOT_FOUND, text));
    };
    let method = request.method().clone();
    let mut reply = if endpoint.methods().contains(&method) {
        match faults::strike(app, endpoint).await {
            Struck::Not => handle(app, endpoint, request).await,
            Struck::Issuer => respond::with_wrong_issuer(&app.issuer, handle(app, endpoint, request).await).await,
            Struck::Answered(reply) => reply,
            Struck::Cut => return Err(Cut),
        }
    } else if method == Method::OPTIONS && endpoint.is_for_scripts() {
        preflight(endpoint)
    } else {
        let mut reply = plain(StatusCode::METHOD_NOT_ALLOWED, "This method is not served here.\n");
        reply.headers_mut().insert(ALLOW, methods_of(endpoint));
        reply
    };
    if endpoint.is_for_scripts() {
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("www-authenticate, dpop-nonce"));
    }
    tracing::debug!(http.method = %method, ?endpoint, http.status = reply.status().as_u16(), "answered");
    Ok(reply)
}

async fn handle(app: &Arc<App>, endpoint: Endpoint, request: Request<Incoming>) -> Reply {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    if query.len() > MAX_QUERY {
        return plain(StatusCode::URI_TOO_LONG, "The query is longer than 8 KiB.\n");
    }
    let page = match endpoint {
        Endpoint::Metadata => return respond::document(app.metadata.clone()),
        Endpoint::Jwks => return respond::document(app.keys.current().jwks.clone()),
        Endpoint::Register => {
            return match read(&head.headers, JSON, body).await {
                Ok(body) => registration::register(app, &head.headers, &body),
                Err(error) => error.as_json(ErrorName::InvalidClientMetadata),
            };
        }
        Endpoint::Token | Endpoint::Introspect | Endpoint::Revoke => {
            let form = match read(&head.headers, FORM, body).await {
                Ok(body) => Params::parse(&body),
                Err(error) => return error.as_json(ErrorName::InvalidRequest),
            };
            return match endpoint {
                Endpoint::Token => token::exchange(app, &head.headers, &form).await,
                Endpoint::Introspect => introspection::introspect(app, &head.headers, &form),
                _ => revocation::revoke(app, &head.headers, &form).await,
            };
        }
        Endpoint::RotateKeys | Endpoint::Faults => {
            if !admin::is_from_a_program(&head.headers) {
                return plain(StatusCode::FORBIDDEN, "Pages in a browser may not do this.\n");
            }
            let body = match head.method {
                Method::DELETE => Ok(Bytes::new()),
                _ => read(&head.headers, JSON, body).await,
            };
            return match body {
                Ok(body) => admin::answer(app, endpoint, &head.method, &body).await,
                Err(error) => plain(error.status(), error.description()),
            };
        }
        Endpoint::Consent => match read(&head.headers, FORM, body).await {
            Ok(body) => consent::decide(app, &head.headers, &Params::parse(&body)),
            Err(error) => respond::page_refusal(error.status(), error.description()),
        },
        Endpoint::Authorize => authorize::authorize(app, query, &head.headers).await,
        Endpoint::Front => respond::page(StatusCode::OK, |nonce| front_page(&app.issuer, nonce)),
    };
    page.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "The operating system gave no random bytes.\n"))
}

/// Whether `Host` (and the authority of the request line, where there is one) is a loopback name. A port forward may
/// change the port.
fn is_for_loopback(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let named = |name: &str| Url::parse(&format!("http://{name}/")).is_ok_and(|url| is_loopback(&url));
    host.is_some_and(named) && authority.is_none_or(named) && request.headers().get_all(HOST).iter().count() == 1
}

fn preflight(endpoint: Endpoint) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::new()));
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods_of(endpoint));
    // The star does not cover `Authorization`.
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, authorization"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    reply
}

fn methods_of(endpoint: Endpoint) -> HeaderValue {
    HeaderValue::from_static(match endpoint.methods() {
        [Method::GET, Method::HEAD] => "GET, HEAD",
        [Method::GET] => "GET",
        [Method::POST, Method::DELETE] => "POST, DELETE",
        _ => "POST",
    })
}

/// Why a body is not read.
enum BodyError {
    WrongType(&'static str),
    TooLarge,
    TooSlow,
    Broken,
}

async fn read(headers: &HeaderMap, content_type: &'static str, body: Incoming) -> Result<Bytes, BodyError> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(content_type) {
        return Err(BodyError::WrongType(content_type));
    }
    let collected = tokio::time::timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect());
    match collected.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::TooSlow),
    }
}

impl BodyError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::WrongType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    fn description(&self) -> &'static str {
        match self {
            Self::WrongType(JSON) => "the content type is application/json",
            Self::WrongType(_) => "the content type is application/x-www-form-urlencoded",
            Self::TooLarge => "the body is larger than 16 KiB",
            Self::TooSlow => "the body took longer than 10 seconds",
            Self::Broken => "the body could not be read",
        }
    }

    fn as_json(&self, error: ErrorName) -> Reply {
        json_refusal_with(self.status(), OAuthRefusal::new(error, self.description()))
    }
}
