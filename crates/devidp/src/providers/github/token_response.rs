use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::server::respond::Reply;

/// The grant of the request and the application, on which a response depends.
#[derive(Clone, Copy)]
pub(crate) struct TokenRequestKind {
    /// Whether a refresh token is exchanged.
    pub(crate) is_refresh: bool,
    /// The lifetime of refresh tokens in seconds. `None` for an OAuth app, which has none.
    pub(crate) refresh_lifetime: Option<u64>,
}

/// Converts a response of the token endpoint to GitHub's format. `headers` are those of the
/// request.
///
/// Errors have the status 200. The body is form-encoded, unless `Accept` names JSON.
pub(crate) async fn convert(headers: &HeaderMap, kind: TokenRequestKind, reply: Reply) -> Reply {
    let (mut head, body) = reply.into_parts();
    let Ok(body) = body.collect().await;
    let mut members: Map<String, Value> =
        serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    if members.contains_key("error") {
        convert_error(&mut members, kind);
        head.status = StatusCode::OK;
        head.headers.remove(WWW_AUTHENTICATE);
    } else {
        convert_success(&mut members, kind);
    }
    let (body, content_type) = if accepts_json(headers) {
        (
            Value::Object(members).to_string(),
            "application/json; charset=utf-8",
        )
    } else {
        (
            form_encoded(&members),
            "application/x-www-form-urlencoded; charset=utf-8",
        )
    };
    head.headers.remove(CONTENT_LENGTH);
    head.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Reply::from_parts(head, Full::new(Bytes::from(body)))
}

fn convert_error(members: &mut Map<String, Value>, kind: TokenRequestKind) {
    let renamed = match members.get("error").and_then(Value::as_str) {
        Some("invalid_grant") if kind.is_refresh => "bad_refresh_token",
        Some("invalid_grant") => "bad_verification_code",
        Some("invalid_client") => "incorrect_client_credentials",
        _ => return,
    };
    members.insert("error".to_owned(), Value::from(renamed));
}

fn convert_success(members: &mut Map<String, Value>, kind: TokenRequestKind) {
    members.insert("token_type".to_owned(), Value::from("bearer"));
    let scope = members
        .get("scope")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .replace(' ', ",");
    members.insert("scope".to_owned(), Value::from(scope));
    match kind.refresh_lifetime {
        None => {
            members.remove("expires_in");
        }
        Some(seconds) => {
            members.insert("scope".to_owned(), Value::from(""));
            members.insert("refresh_token_expires_in".to_owned(), Value::from(seconds));
        }
    }
}

fn form_encoded(members: &Map<String, Value>) -> String {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let pairs = members.iter().map(|(name, value)| (name, text(value)));
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// Returns whether `Accept` names JSON.
fn accepts_json(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut types = values
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default());
    types.any(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    const OAUTH_CODE: TokenRequestKind = TokenRequestKind {
        is_refresh: false,
        refresh_lifetime: None,
    };

    async fn converted(
        status: u16,
        body: &'static str,
        accept: Option<&'static str>,
    ) -> (u16, String) {
        let mut headers = HeaderMap::new();
        headers.extend(accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))));
        let reply = Response::builder()
            .status(status)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let (head, body) = convert(&headers, OAUTH_CODE, reply).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (
            head.status.as_u16(),
            String::from_utf8(body.to_vec()).unwrap(),
        )
    }

    /// K1: tokens and errors have GitHub's members, in the format that the client accepts.
    #[tokio::test]
    async fn responses_have_the_format_of_github() {
        let token =
            r#"{"access_token":"gho_a","scope":"a b","token_type":"Bearer","expires_in":300}"#;
        let json = Some("text/html, application/json;q=0.9");
        for (name, status, body, accept, expected) in [
            (
                "a token, form-encoded",
                200,
                token,
                None,
                "access_token=gho_a&scope=a%2Cb&token_type=bearer",
            ),
            (
                "a token in JSON",
                200,
                token,
                json,
                r#"{"access_token":"gho_a","scope":"a,b","token_type":"bearer"}"#,
            ),
            (
                "a renamed error",
                400,
                r#"{"error":"invalid_grant"}"#,
                None,
                "error=bad_verification_code",
            ),
            (
                "an error of the client",
                401,
                r#"{"error":"invalid_client"}"#,
                None,
                "error=incorrect_client_credentials",
            ),
            (
                "another error",
                400,
                r#"{"error":"slow_down","interval":5}"#,
                None,
                "error=slow_down&interval=5",
            ),
        ] {
            assert_eq!(
                converted(status, body, accept).await,
                (200, expected.to_owned()),
                "{name}"
            );
        }
    }
}
