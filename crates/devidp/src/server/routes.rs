//! Routes requests to endpoints.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, HOST,
    },
    request::Parts,
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use portcullis_authorization_server::{ErrorCode, ErrorResponse, Params, StoreError};
use portcullis_metadata::syntax::{has_media_type, is_loopback};
use url::Url;

use crate::{
    app::App,
    authorize::{self, consent, page::home_html},
    clients::{management, registration},
    control::{
        admin,
        fault_effect::{self, FaultEffect},
    },
    device::{self, verification},
    github_api::{self, ApiRequest},
    server::{
        endpoint::Endpoint,
        respond::{self, Reply, json_error_with_status, plain},
    },
    token::{self, introspection, revocation, user_info},
};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const MAX_QUERY_SIZE: usize = 8 * 1024;
const MAX_BODY_SIZE: usize = 16 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The connection is closed without a response because of a fault. hyper closes a connection on any
/// error.
#[derive(Debug, thiserror::Error)]
#[error("a scripted fault")]
pub(crate) struct ConnectionClosed;

pub(crate) async fn handle(
    app: &Arc<App>,
    request: Request<Incoming>,
) -> Result<Reply, ConnectionClosed> {
    // Without this check, a site whose name resolves to a loopback address could access this server
    // (DNS rebinding).
    if !is_for_loopback(&request) {
        return Ok(plain(
            StatusCode::FORBIDDEN,
            "This server accepts only loopback host names.\n",
        ));
    }
    let path = request.uri().path();
    let is_metadata = app.metadata.contains_key(path);
    let endpoint = if is_metadata {
        Some(Endpoint::Metadata)
    } else {
        let issuer_path = &app.config.settings.issuer_path;
        let of_github = || github_api::endpoint(path, issuer_path);
        let found = app.config.profile.is_github().then(of_github).flatten();
        found.or_else(|| Endpoint::find(path, issuer_path))
    };
    let Some(endpoint) = endpoint.filter(|endpoint| exists(app, *endpoint)) else {
        let text = "Not found. This is a development authorization server.\n";
        return Ok(plain(StatusCode::NOT_FOUND, text));
    };
    let method = request.method().clone();
    let mut reply = if endpoint.methods().contains(&method) {
        match fault_effect::apply(&app.faults, &app.stop, endpoint).await {
            FaultEffect::None => handle_endpoint(app, endpoint, request).await,
            FaultEffect::WrongIssuer => {
                fault_effect::with_wrong_issuer(
                    &app.config.issuer,
                    handle_endpoint(app, endpoint, request).await,
                )
                .await
            }
            FaultEffect::Respond(reply) => reply,
            FaultEffect::CloseConnection => return Err(ConnectionClosed),
        }
    } else if method == Method::OPTIONS && endpoint.allows_cross_origin() {
        preflight(endpoint)
    } else {
        let mut reply = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "This method is not supported.\n",
        );
        reply.headers_mut().insert(ALLOW, allow_header(endpoint));
        reply
    };
    if endpoint.allows_cross_origin() {
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("www-authenticate, dpop-nonce"),
        );
    }
    tracing::debug!(http.method = %method, ?endpoint, http.status = reply.status().as_u16(), "sent a response");
    Ok(reply)
}

/// Returns whether the server has an endpoint, with its settings and the imitated provider.
fn exists(app: &App, endpoint: Endpoint) -> bool {
    match endpoint {
        Endpoint::UserInfo => app.config.profile.id_token_claims.is_some(),
        _ => app.config.settings.admin || !endpoint.is_admin(),
    }
}

/// Handles a request whose endpoint supports its method.
async fn handle_endpoint(app: &Arc<App>, endpoint: Endpoint, request: Request<Incoming>) -> Reply {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    if query.len() > MAX_QUERY_SIZE {
        return plain(
            StatusCode::URI_TOO_LONG,
            "The query is longer than 8 KiB.\n",
        );
    }
    let page = match endpoint {
        Endpoint::Metadata => {
            return respond::document(
                app.metadata
                    .get(head.uri.path())
                    .cloned()
                    .unwrap_or_default(),
            );
        }
        Endpoint::UserInfo => return user_info::handle(app, &head.headers).await,
        Endpoint::GitHubApi => return handle_github_api(app, &head, body).await,
        Endpoint::Jwks => return respond::document(app.keys.current().jwks.clone()),
        Endpoint::Register | Endpoint::Client => {
            return handle_registration(app, endpoint, &head, body).await;
        }
        Endpoint::Token
        | Endpoint::DeviceAuthorization
        | Endpoint::Introspect
        | Endpoint::Revoke => {
            return handle_form(app, endpoint, &head.headers, body).await;
        }
        Endpoint::RotateKeys
        | Endpoint::Faults
        | Endpoint::ForgetClients
        | Endpoint::AnswerDevice
        | Endpoint::ChangeUser
        | Endpoint::LogOut => {
            return handle_admin(app, endpoint, &head, body).await;
        }
        Endpoint::Consent => match read_body(&head.headers, FORM, body).await {
            Ok(body) => consent::decide(app, &head.headers, &Params::parse(&body)).await,
            Err(error) => {
                respond::error_page(error.status(), error.description()).map_err(StoreError::from)
            }
        },
        Endpoint::Authorize => authorize::authorize(app, query, &head.headers).await,
        Endpoint::Device => verification::show_entry(app).map_err(StoreError::from),
        Endpoint::DeviceConsent => {
            verification::show_consent(app, query, &head.headers).map_err(StoreError::from)
        }
        Endpoint::Home => respond::page(StatusCode::OK, |nonce| home_html(&app.config, nonce))
            .map_err(StoreError::from),
    };
    page.unwrap_or_else(|_| {
        plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The operating system gave no random bytes.\n",
        )
    })
}

/// Handles the endpoints whose requests and responses are JSON.
async fn handle_registration(app: &App, endpoint: Endpoint, head: &Parts, body: Incoming) -> Reply {
    let body = match head.method {
        Method::POST | Method::PUT => read_body(&head.headers, JSON, body).await,
        _ => Ok(Bytes::new()),
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return error.as_json(ErrorCode::InvalidClientMetadata),
    };
    if endpoint == Endpoint::Register {
        return registration::register(app, &head.headers, &body).await;
    }
    let id =
        Endpoint::client_id(head.uri.path(), &app.config.settings.issuer_path).unwrap_or_default();
    management::manage(app, id, &head.method, &head.headers, &body)
}

/// Handles the endpoints whose requests are forms and whose responses are JSON.
async fn handle_form(app: &App, endpoint: Endpoint, headers: &HeaderMap, body: Incoming) -> Reply {
    let form = match read_body(headers, FORM, body).await {
        Ok(body) => Params::parse(&body),
        Err(error) => return error.as_json(ErrorCode::InvalidRequest),
    };
    match endpoint {
        Endpoint::Token => token::handle(app, headers, &form).await,
        Endpoint::DeviceAuthorization => device::authorize_device(app, headers, &form).await,
        Endpoint::Introspect => introspection::handle(app, headers, &form).await,
        _ => revocation::handle(app, headers, &form).await,
    }
}

async fn handle_github_api(app: &App, head: &Parts, body: Incoming) -> Reply {
    let body = match head.method {
        Method::DELETE => read_body(&head.headers, JSON, body).await,
        _ => Ok(Bytes::new()),
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return plain(error.status(), error.description()),
    };
    let request = ApiRequest {
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
        body: &body,
    };
    github_api::handle(app, &request).await
}

async fn handle_admin(app: &Arc<App>, endpoint: Endpoint, head: &Parts, body: Incoming) -> Reply {
    if !admin::is_not_from_browser(&head.headers) {
        return plain(
            StatusCode::FORBIDDEN,
            "Requests from browsers are not allowed.\n",
        );
    }
    let body = match head.method {
        Method::DELETE => Ok(Bytes::new()),
        _ => read_body(&head.headers, JSON, body).await,
    };
    match body {
        Ok(body) => admin::handle(app, endpoint, &head.method, &body).await,
        Err(error) => plain(error.status(), error.description()),
    }
}

/// Returns whether `Host` and the authority of the request line, if any, are loopback names. The
/// port is not checked, because port forwarding may change it.
fn is_for_loopback(request: &Request<Incoming>) -> bool {
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let is_loopback_name =
        |name: &str| Url::parse(&format!("http://{name}/")).is_ok_and(|url| is_loopback(&url));
    host.is_some_and(is_loopback_name)
        && authority.is_none_or(is_loopback_name)
        && request.headers().get_all(HOST).iter().count() == 1
}

fn preflight(endpoint: Endpoint) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::new()));
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow_header(endpoint));
    // The wildcard does not include `Authorization`.
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("*, authorization"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    reply
}

fn allow_header(endpoint: Endpoint) -> HeaderValue {
    HeaderValue::from_static(match endpoint.methods() {
        [Method::GET, Method::HEAD] => "GET, HEAD",
        [Method::GET] => "GET",
        [Method::GET, Method::PUT, Method::DELETE] => "GET, PUT, DELETE",
        [Method::GET, Method::POST] => "GET, POST",
        [Method::GET, Method::DELETE] => "GET, DELETE",
        [Method::POST, Method::DELETE] => "POST, DELETE",
        _ => "POST",
    })
}

/// Why a body cannot be read.
enum BodyError {
    WrongType(&'static str),
    TooLarge,
    TooSlow,
    Broken,
}

/// Reads a body of this content type. Its size and the time for it are bounded.
async fn read_body(
    headers: &HeaderMap,
    content_type: &'static str,
    body: Incoming,
) -> Result<Bytes, BodyError> {
    if !has_media_type(headers, content_type) {
        return Err(BodyError::WrongType(content_type));
    }
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_SIZE).collect());
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
            Self::WrongType(JSON) => "the content type must be application/json",
            Self::WrongType(_) => "the content type must be application/x-www-form-urlencoded",
            Self::TooLarge => "the body is larger than 16 KiB",
            Self::TooSlow => "the body took longer than 10 seconds",
            Self::Broken => "the body could not be read",
        }
    }

    fn as_json(&self, error: ErrorCode) -> Reply {
        json_error_with_status(self.status(), ErrorResponse::new(error, self.description()))
    }
}
