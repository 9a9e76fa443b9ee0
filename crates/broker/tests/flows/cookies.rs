//! Attacks on the cookies of the consent (CO), and the cookies of a browser in which many sign-ins
//! begin.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};

use crate::{
    consent::{approve, assert_refused},
    support::{Browser, Setup, continued, location, param, text_of},
};

/// OR3: a browser keeps the cookies of eight transactions. The last one works.
#[tokio::test]
async fn a_browser_that_begins_many_sign_ins() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for number in 1..20 {
        let page = browser.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK);
        let url = browser.approve(&page).await;
        let names = browser.cookies.keys();
        let transactions = names.filter(|name| name.contains("transaction-"));
        assert_eq!(transactions.count(), number.min(8));
        if number == 19 {
            let target = location(&browser.return_from(&url).await);
            assert!(param(&target, "code").is_some(), "{target}");
        }
    }
}

/// CO2: the attacker approves, and the victim's browser completes the sign-in.
#[tokio::test]
async fn the_browser_of_the_victim_completes_the_sign_in() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut attacker = Browser::new(&setup);
    let page = attacker.authorize(&client.request()).await;
    let url = attacker.approve(&page).await;
    let mut victim = Browser::new(&setup);
    let own = victim.authorize(&client.request()).await;
    let own = victim.approve(&own).await;
    let response = victim.return_from(&url).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "no cookie");
    // The cookie of another transaction does not help, under the name of this one either.
    let names: Vec<_> = victim.cookies.keys().cloned().collect();
    let own_cookie = names
        .iter()
        .find(|name| name.contains("transaction"))
        .unwrap();
    let foreign = attacker
        .cookies
        .keys()
        .find(|name| name.contains("transaction"));
    let value = victim.cookies[own_cookie].clone();
    victim.cookies.insert(foreign.unwrap().clone(), value);
    let response = victim.return_from(&url).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "another cookie");
    assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 0);
    // Both transactions are still unused.
    *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
    assert!(param(&location(&attacker.return_from(&url).await), "code").is_some());
    *setup.provider.nonce.lock() = param(&own, "nonce").unwrap();
    assert!(param(&location(&victim.return_from(&own).await), "code").is_some());
}

/// CO2: the cookie of a transaction cannot be read, set or sent by another site.
#[tokio::test]
async fn the_cookies_have_every_protection() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let continuing = browser.decide(&page, "allow:idp").await;
    let state = param(&continued(&continuing), "state").unwrap();
    assert_eq!(state.len(), 43);
    for response in [&page, &continuing] {
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.starts_with("__Host-portcullis-broker-"), "{cookie}");
        for attribute in [
            "; Path=/",
            "; HttpOnly",
            "; SameSite=Lax",
            "; Secure",
            "; Max-Age=",
        ] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        assert!(!cookie.contains("Domain"));
        assert!(!cookie.contains(&state));
    }
    let cookie = continuing.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("; Max-Age=600;"), "{cookie}");
}

/// CO2: two cookies with the name of the transaction's are none.
#[tokio::test]
async fn a_second_cookie_with_the_same_name() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    let mut headers = HeaderMap::new();
    for (name, value) in &browser.cookies {
        headers.append(header::COOKIE, format!("{name}={value}").parse().unwrap());
        headers.append(header::COOKIE, format!("{name}=planted").parse().unwrap());
    }
    let path = format!(
        "/oauth/callback/idp?code=a&state={}",
        param(&url, "state").unwrap()
    );
    let request = crate::support::request(http::Method::GET, &path, headers, Bytes::new());
    let response = setup.send(request).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "planted");
}

/// CO3: a form belongs to one browser.
#[tokio::test]
async fn an_approval_in_another_browser() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut attacker = Browser::new(&setup);
    let sealed = attacker.consent_page(&client).await;
    let mut victim = Browser::new(&setup);
    let response = approve(&mut victim, &sealed).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "without a cookie");
    victim.consent_page(&client).await;
    let response = approve(&mut victim, &sealed).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "with another cookie");
    for value in ["", "short", "!!!!!!!!!!!!!!!!!!!!!!", "a;b=c"] {
        for cookie in victim.cookies.values_mut() {
            *cookie = value.to_owned();
        }
        let response = approve(&mut victim, &sealed).await;
        assert_refused(&response, StatusCode::BAD_REQUEST, value);
    }
    assert_eq!(
        approve(&mut attacker, &sealed).await.status(),
        StatusCode::OK
    );
}

/// CO7: a page that was loaded twice can be answered in both copies.
#[tokio::test]
async fn a_page_that_is_loaded_twice() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let first = browser.consent_page(&client).await;
    let second = browser.consent_page(&client).await;
    let state = |response: &Response<Bytes>| param(&continued(response), "state").unwrap();
    let approved = approve(&mut browser, &first).await;
    let again = approve(&mut browser, &first).await;
    let other = approve(&mut browser, &second).await;
    assert_eq!(continued(&approved), continued(&again));
    assert_ne!(state(&approved), state(&other));
    for page in [&approved, &other] {
        let url = continued(page);
        *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
        let target = location(&browser.return_from(&url).await);
        assert!(param(&target, "code").is_some());
    }
}

/// CO8: a browser that keeps no cookie gets an explanation, and no access.
#[tokio::test]
async fn a_browser_without_cookies() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let sealed = browser.consent_page(&client).await;
    browser.cookies.clear();
    let response = approve(&mut browser, &sealed).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "approval");
    assert!(text_of(&response).contains("cookie"));
    assert!(setup.network.urls().is_empty());
}
