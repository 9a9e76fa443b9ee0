//! Requests, and what a test reads from responses.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use portcullis_discovery::FetchResponse;
use serde_json::Value;
use url::Url;

pub(crate) fn request(
    method: Method,
    path: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    *request.headers_mut() = headers;
    request
}

pub(crate) fn form_request(
    path: &str,
    mut headers: HeaderMap,
    fields: &[(&str, &str)],
) -> Request<Bytes> {
    let form = "application/x-www-form-urlencoded".parse().unwrap();
    headers.insert(header::CONTENT_TYPE, form);
    request(Method::POST, path, headers, Bytes::from(encode(fields)))
}

pub(crate) fn json_response(status: StatusCode, body: &Value) -> FetchResponse {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    FetchResponse {
        status,
        headers,
        body: body.to_string().into(),
        sent: Default::default(),
    }
}

pub(crate) fn encode<V: AsRef<str>>(params: &[(&str, V)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(params.iter().map(|(name, value)| (name, value.as_ref())))
        .finish()
}

pub(crate) fn json_of(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).expect("a JSON body")
}

pub(crate) fn text_of(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

/// Returns the reference in the description of an error.
pub(crate) fn reference_of(description: &str) -> &str {
    let (_, reference) = description.split_once(" (reference ").unwrap();
    let reference = reference.strip_suffix(')').unwrap();
    assert_eq!(reference.len(), 12, "{description}");
    reference
}

/// Returns the target of a redirect.
pub(crate) fn location(response: &Response<Bytes>) -> Url {
    assert_eq!(response.status(), StatusCode::SEE_OTHER, "{response:?}");
    Url::parse(response.headers()[header::LOCATION].to_str().unwrap()).unwrap()
}

/// Returns the target of a page that continues elsewhere.
pub(crate) fn continued(page: &Response<Bytes>) -> Url {
    let text = text_of(page);
    let (_, rest) = text
        .split_once(r#"content="0;url="#)
        .expect("a page that continues");
    Url::parse(&unescape(rest.split_once('"').unwrap().0)).unwrap()
}

/// Returns the value of a hidden field.
pub(crate) fn hidden(page: &Response<Bytes>, name: &str) -> String {
    let text = text_of(page);
    let start = format!(r#"name="{name}" value=""#);
    let (_, rest) = text.split_once(&start).expect("a hidden field");
    unescape(rest.split_once('"').unwrap().0)
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// Returns a parameter of a URL's query.
pub(crate) fn param(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    pairs
        .find(|(found, _)| found == name)
        .map(|(_, value)| value.into_owned())
}

/// Returns the claims of an access token, without verifying it.
pub(crate) fn claims(tokens: &Value) -> Value {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let token = tokens["access_token"].as_str().unwrap();
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

/// Returns the error code of a JSON body.
pub(crate) fn error_of(response: &Response<Bytes>) -> Value {
    json_of(response)["error"].clone()
}

/// Returns the refresh token of a token response.
pub(crate) fn token_of(tokens: &Value) -> String {
    tokens["refresh_token"].as_str().unwrap().to_owned()
}
