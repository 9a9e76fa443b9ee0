//! What browsers send.

use http::{Method, StatusCode};
use portcullis_broker::is_broker_cookie;
use url::form_urlencoded;

use super::{assert_stays, changed, destination, prepared, request, support::encode};

/// The input is the query of an authorization request. The browser is not sent to a redirect URI
/// that the client has not registered.
pub fn broker_authorization(data: &[u8]) {
    prepared::with(|prepared| {
        let path = format!("/oauth/authorize?{}", prepared.text(data));
        let headers = [("cookie", &*prepared.cookies), ("sec-fetch-site", "none")];
        if let Some(request) = request(Method::GET, &path, &headers, "") {
            assert_stays(&prepared.send(request));
        }
    });
}

/// The input is the query of the way back from the provider. Without the cookie of its transaction,
/// the browser is sent nowhere.
pub fn broker_callback(data: &[u8]) {
    prepared::with(|prepared| {
        let query = prepared.text(data);
        let path = format!("/oauth/callback/idp?{query}");
        if let Some(request) = request(Method::GET, &path, &[], "") {
            let response = prepared.send(request);
            assert_eq!(destination(&response), None);
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        }
        let headers = [("cookie", &*prepared.cookies)];
        if let Some(request) = request(Method::GET, &path, &headers, "") {
            let response = prepared.send(request);
            assert_stays(&response);
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let has_state =
                pairs.any(|(name, value)| name == "state" && value == prepared.state.as_str());
            assert!(has_state || destination(&response).is_none());
        }
    });
}

/// The input is the form that answers a consent page. Only the sealed request of the page itself
/// begins a transaction.
pub fn broker_consent(data: &[u8]) {
    prepared::with(|prepared| {
        let form = prepared.text(data);
        let Some(response) = prepared.answer(&form, &prepared.cookies) else {
            return;
        };
        assert_stays(&response);
        let mut pairs = form_urlencoded::parse(form.as_bytes());
        let has_request =
            pairs.any(|(name, value)| name == "request" && value == prepared.sealed.as_str());
        assert!(has_request || destination(&response).is_none());
    });
}

/// The input changes the sealed request of a consent page. It does not open then.
pub fn broker_sealed_form(data: &[u8]) {
    prepared::with(|prepared| {
        let sealed = changed(&prepared.sealed, data);
        let form = encode(&[("request", &*sealed), ("decision", "deny")]);
        let response = prepared.answer(&form, &prepared.cookies);
        let is_open = response.is_some_and(|response| destination(&response).is_some());
        assert_eq!(is_open, sealed == prepared.sealed, "{sealed}");
    });
}

/// The input is the header with the cookies. A consent page is answered only with the cookie of its
/// browser.
pub fn broker_cookies(data: &[u8]) {
    prepared::with(|prepared| {
        let cookies = prepared.text(data);
        let form = encode(&[("request", &*prepared.sealed), ("decision", "deny")]);
        let Some(response) = prepared.answer(&form, &cookies) else {
            return;
        };
        assert_stays(&response);
        let browser = prepared.cookies.split("; ");
        let mut browser = browser.filter(|pair| pair.contains("-browser="));
        let has_cookie = browser.any(|pair| cookies.contains(pair));
        assert!(has_cookie || destination(&response).is_none(), "{cookies}");
        for pair in cookies.split(';') {
            let name = pair.split('=').next().unwrap_or_default();
            let prefixed = format!("__Host-{name}");
            // A browser sends the prefix as it was set.
            assert!(
                !is_broker_cookie(name) || name.starts_with("__") || is_broker_cookie(&prefixed)
            );
        }
    });
}
