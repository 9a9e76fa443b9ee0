//! The responses of the API.

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, LINK},
};
use portcullis_authorization_server::Params;
use portcullis_metadata::Scopes;
use serde_json::{Value, json};

use crate::{
    github_api::ApiRequest,
    server::respond::{Reply, json_reply},
};

const DEFAULT_PER_PAGE: usize = 30;
const MAX_PER_PAGE: usize = 100;

/// Why a request to the API fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum ApiError {
    NoUserAgent,
    NotAcceptable,
    NoToken,
    BadCredentials,
    /// The token has none of these scopes.
    NeedsScope(&'static [&'static str]),
    NotFound,
    /// The body of the request is not valid.
    Unprocessable,
    /// The server failed.
    Failed,
}

impl ApiError {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NoUserAgent | Self::NeedsScope(_) => StatusCode::FORBIDDEN,
            Self::NotAcceptable => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoToken | Self::BadCredentials => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Failed => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn message(self) -> String {
        match self {
            Self::NoUserAgent => "The request has no User-Agent header.".to_owned(),
            Self::NotAcceptable => "The Accept header must allow application/json.".to_owned(),
            Self::NoToken => "Requires authentication".to_owned(),
            Self::BadCredentials => "Bad credentials".to_owned(),
            Self::NeedsScope(scopes) => {
                format!("You need at least one of the scopes {}.", scopes.join(", "))
            }
            Self::NotFound => "Not Found".to_owned(),
            Self::Unprocessable => "Validation Failed".to_owned(),
            Self::Failed => "The server cannot answer now.".to_owned(),
        }
    }

    pub(super) fn reply(self) -> Reply {
        let status = self.status();
        let body = json!({
            "message": self.message(),
            "documentation_url": "https://docs.github.com/rest",
            "status": status.as_str(),
        });
        object(status, &body)
    }
}

/// Returns a response with a JSON object.
pub(super) fn object(status: StatusCode, body: &Value) -> Reply {
    let mut reply = json_reply(status, body.to_string().into_bytes());
    let headers = reply.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(
        "x-github-media-type",
        HeaderValue::from_static("github.v3; format=json"),
    );
    reply
}

/// Returns a response with the requested page of a list. `Link` names the next page, if there is
/// one.
pub(super) fn list(items: &[Value], request: &ApiRequest<'_>) -> Reply {
    let query = Params::parse(request.query.as_bytes());
    let number = |name| query.get(name).ok().flatten()?.parse::<usize>().ok();
    let per_page = number("per_page").unwrap_or(DEFAULT_PER_PAGE);
    let per_page = per_page.clamp(1, MAX_PER_PAGE);
    let page = number("page").unwrap_or(1).max(1);
    let start = (page - 1).saturating_mul(per_page);
    let shown: Vec<_> = items.iter().skip(start).take(per_page).collect();
    let mut reply = object(StatusCode::OK, &json!(shown));
    if start.saturating_add(per_page) < items.len() {
        let host = request.headers.get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let next = format!(
            "<http://{host}{}?per_page={per_page}&page={}>; rel=\"next\"",
            request.path,
            page.saturating_add(1)
        );
        let link = HeaderValue::try_from(next).ok();
        reply.headers_mut().extend(link.map(|link| (LINK, link)));
    }
    reply
}

/// Adds the scopes that the token has, and those of which the resource needs one.
pub(super) fn add_scopes(reply: &mut Reply, scopes: &Scopes, needed: &[&str]) {
    let granted = scopes.iter().collect::<Vec<_>>().join(", ");
    for (name, value) in [
        ("x-oauth-scopes", granted),
        ("x-accepted-oauth-scopes", needed.join(", ")),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            reply.headers_mut().insert(name, value);
        }
    }
}

/// Returns whether `Accept` is absent, or allows JSON or a media type of GitHub.
pub(super) fn accepts_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    let mut ranges = ranges.map(str::to_ascii_lowercase);
    ranges.any(|range| {
        matches!(&*range, "*/*" | "application/*" | "application/json")
            || range.starts_with("application/vnd.github")
    })
}
