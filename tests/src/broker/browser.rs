//! [`Browser`]: a browser with cookies that a test drives page by page.

use std::{collections::BTreeMap, net::SocketAddr};

use url::{Url, form_urlencoded};

use crate::{HttpResponse, Request};

/// A browser with cookies. As in a real one, cookies do not depend on the port. It follows no
/// redirect by itself, so that a test can stop at each step of a sign-in.
#[derive(Default)]
pub struct Browser {
    cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Opens a client's authorization URL, approves the client, signs in as this user, and returns
    /// the URL of the client to which the browser is sent.
    ///
    /// # Panics
    /// Panics if a step has another answer.
    pub async fn sign_in(&mut self, authorization: &Url, user: &str) -> Url {
        let page = self.open(authorization).await;
        let provider = self.approve(authorization, &page).await;
        let callback = self.sign_in_at_provider(&provider, user).await;
        self.return_from_provider(&callback).await
    }

    /// Opens a URL.
    pub async fn open(&mut self, url: &Url) -> HttpResponse {
        let request = self.request_to_open(url);
        self.send(url, &request).await
    }

    /// Returns the request that opens a URL.
    pub fn request_to_open(&self, url: &Url) -> Request {
        self.request("GET", url)
    }

    /// Approves the client of a consent page of the broker, and returns the URL at the provider.
    ///
    /// # Panics
    /// Panics if it is not a consent page, or the answer does not continue at the provider.
    pub async fn approve(&mut self, shown_at: &Url, page: &HttpResponse) -> Url {
        let response = self.decide(shown_at, page, "allow:").await;
        continued(&response)
    }

    /// Answers a consent page of the broker with the first decision that starts so.
    ///
    /// # Panics
    /// Panics if it is not a consent page.
    pub async fn decide(
        &mut self,
        shown_at: &Url,
        page: &HttpResponse,
        decision: &str,
    ) -> HttpResponse {
        assert_eq!(page.status, 200, "{page:?}");
        let decision = attribute(page, "name=\"decision\" value=\"", decision);
        let request = attribute(page, "name=\"request\" value=\"", "");
        let fields = [("request", request), ("decision", decision)];
        self.submit(&shown_at.join("/oauth/consent").unwrap(), &fields)
            .await
    }

    /// Signs in at the development server, and returns the URL of the broker to which the browser
    /// is sent.
    ///
    /// # Panics
    /// Panics if the provider shows no page, or does not send the browser back.
    pub async fn sign_in_at_provider(&mut self, url: &Url, user: &str) -> Url {
        location(&self.answer_provider(url, user, "allow").await)
    }

    /// Answers the page of the development server.
    ///
    /// # Panics
    /// Panics if the provider shows no page.
    pub async fn answer_provider(&mut self, url: &Url, user: &str, decision: &str) -> HttpResponse {
        let page = self.open(url).await;
        assert_eq!(page.status, 200, "{page:?}");
        let action = url
            .join(&attribute(&page, "<form method=\"post\" action=\"", ""))
            .unwrap();
        let fields = [
            ("ticket", attribute(&page, "name=\"ticket\" value=\"", "")),
            ("user", user.to_owned()),
            ("decision", decision.to_owned()),
        ];
        self.submit(&action, &fields).await
    }

    /// Opens the broker's redirect URI, and returns the URL of the client to which the browser is
    /// sent.
    ///
    /// # Panics
    /// Panics if it is not sent to the client.
    pub async fn return_from_provider(&mut self, callback: &Url) -> Url {
        location(&self.open(callback).await)
    }

    /// Sends a form as a page of the same origin does.
    async fn submit(&mut self, action: &Url, fields: &[(&str, String)]) -> HttpResponse {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let request = self
            .request("POST", action)
            .header("Origin", action.origin().ascii_serialization())
            .header("Sec-Fetch-Site", "same-origin")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body);
        self.send(action, &request).await
    }

    fn request(&self, method: &str, url: &Url) -> Request {
        let request = Request::without_host(method, &url[url::Position::BeforePath..])
            .header("Host", url.authority())
            .header("Sec-Fetch-Mode", "navigate");
        if self.cookies.is_empty() {
            return request;
        }
        let pairs = self.cookies.iter();
        let pairs: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        request.header("Cookie", pairs.join("; "))
    }

    async fn send(&mut self, url: &Url, request: &Request) -> HttpResponse {
        let response = request.send(address(url)).await;
        let cookies = response.headers.iter();
        for (_, cookie) in cookies.filter(|(name, _)| name == "set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie");
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }
}

/// Returns the address of a URL whose host is a loopback address.
pub(crate) fn address(url: &Url) -> SocketAddr {
    let addresses = url.socket_addrs(|| None).expect("an address");
    *addresses.first().expect("an address")
}

/// Returns the target of a redirect.
fn location(response: &HttpResponse) -> Url {
    assert!((302..=303).contains(&response.status), "{response:?}");
    let location = response.header("location").expect("a location");
    Url::parse(location).unwrap_or_else(|error| panic!("{error}: {response:?}"))
}

/// Returns the target of a page that continues elsewhere.
fn continued(page: &HttpResponse) -> Url {
    assert_eq!(page.status, 200, "{page:?}");
    let target = attribute(page, "http-equiv=\"refresh\" content=\"0;url=", "");
    Url::parse(&target).unwrap_or_else(|error| panic!("{error}: {page:?}"))
}

/// Returns the first value of an attribute that starts so: the text after `before`, up to a quote.
fn attribute(page: &HttpResponse, before: &str, start: &str) -> String {
    let text = page.text();
    let mut values = text
        .split(before)
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let value = values.find(|value| value.starts_with(start));
    let value = value.unwrap_or_else(|| panic!("no {before}{start} in {text}"));
    unescape(value)
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
