//! What clients say about themselves.

use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use url::Url;

use super::{
    destination,
    prepared::{self, CLIENT_HOST, Prepared},
    request,
    support::{Client, encode, json_of},
};

/// A redirect URI of a host that the operator has not listed.
const FOREIGN: &str = "https://evil.example/callback";

/// The input is a registration. A client gets its own redirect URIs alone, and none that runs
/// script or that has a host that the operator has not listed.
pub fn broker_registration(data: &[u8]) {
    prepared::with(|prepared| {
        let headers = [("content-type", "application/json")];
        let body = data.to_vec();
        let Some(request) = request(Method::POST, "/oauth/register", &headers, body) else {
            return;
        };
        let response = prepared.send(request);
        if response.status() != StatusCode::CREATED {
            assert!(response.status().is_client_error(), "{response:?}");
            return;
        }
        let information = json_of(&response);
        let id = information["client_id"].as_str().unwrap_or_default();
        let uris = information["redirect_uris"].as_array();
        let uris = uris.into_iter().flatten().filter_map(Value::as_str);
        for uri in uris.take(3) {
            let scheme = uri.split(':').next().unwrap_or_default();
            let scheme = scheme.to_ascii_lowercase();
            assert!(
                !["javascript", "data", "vbscript", "file", "blob", "about"].contains(&&*scheme)
            );
            assert_redirects_to(prepared, id, uri);
        }
        assert_is_refused(prepared, id, FOREIGN);
    });
}

/// The input is the metadata document of a client, in which `DOCUMENT` is its own URL. The client
/// gets the redirect URIs of the document alone, on hosts that the operator has listed.
pub fn broker_client_document(data: &[u8]) {
    prepared::with(|prepared| {
        let id = format!("https://{CLIENT_HOST}/{}/client.json", prepared.inputs);
        let document = String::from_utf8_lossy(data).replace("DOCUMENT", &id);
        prepared.setup.network.serve(&id, 200, document.clone());
        let listed = serde_json::from_str::<Value>(&document).unwrap_or_default();
        let listed = listed["redirect_uris"].as_array();
        let listed = listed.into_iter().flatten().filter_map(Value::as_str);
        for uri in listed.take(3) {
            assert_redirects_to(prepared, &id, uri);
        }
        assert_is_refused(prepared, &id, FOREIGN);
    });
}

/// Asserts that a request is answered by a page, or by a redirect to this redirect URI, whose host
/// may be used.
fn assert_redirects_to(prepared: &Prepared, id: &str, uri: &str) {
    let Some(target) = error_of(prepared, id, uri) else {
        return;
    };
    let Ok(expected) = Url::parse(uri) else {
        panic!("{uri} is not a URL")
    };
    assert_eq!(target.scheme(), expected.scheme());
    assert_eq!(target.host_str(), expected.host_str());
    assert_eq!(target.path(), expected.path());
    // Redirect URIs of known clients have other schemes and hosts, which no input has.
    let hosts = ["127.0.0.1", "[::1]", "localhost", CLIENT_HOST];
    assert!(
        target.host_str().is_none_or(|host| hosts.contains(&host)),
        "{target}"
    );
}

fn assert_is_refused(prepared: &Prepared, id: &str, uri: &str) {
    assert_eq!(error_of(prepared, id, uri), None);
}

/// Sends a request without `response_type`, whose error is sent to the redirect URI if it is
/// usable. Returns where the browser is sent.
fn error_of(prepared: &Prepared, id: &str, uri: &str) -> Option<Url> {
    let client = Client::new(id, uri);
    let params = client.request();
    let params: Vec<_> = params
        .iter()
        .filter(|(name, _)| *name != "response_type")
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let path = format!("/oauth/authorize?{}", encode(&params));
    let request = request(Method::GET, &path, &[], "")?;
    debug_assert_eq!(*request.headers(), HeaderMap::new());
    destination(&prepared.send(request))
}
