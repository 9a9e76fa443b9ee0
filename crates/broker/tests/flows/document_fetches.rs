//! How metadata documents of clients are fetched and kept (DO).

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_broker::BrokerKeys;
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_state_store::records::{MemoryRecords, Table};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use serde_json::json;

use crate::{
    client_assertions::authenticated,
    documents::{DOCUMENT, HOUR, KEYS, ask, assert_refused, document, document_client, serve},
    support::{Browser, ISSUER, Setup, json_of, json_response, param, settings},
};

/// Breaks the network.
type Outage = Box<dyn Fn(&ScriptedFetch)>;

/// DO3: documents that are large, deep, ambiguous or of another type are refused.
#[tokio::test]
async fn documents_that_exhaust_or_confuse() {
    let long = |length: usize| {
        let mut found = document();
        found["software_id"] = json!("");
        let missing = length - found.to_string().len();
        found["software_id"] = json!("a".repeat(missing));
        found.to_string()
    };
    let with = |member: &str| {
        document()
            .to_string()
            .replacen('{', &format!("{{{member},"), 1)
    };
    let deep = format!("\"a\":{}{}", "[".repeat(32), "]".repeat(32));
    for (body, is_valid) in [
        (long(5 * 1024), true),
        (long(5 * 1024 + 1), false),
        (with(&deep), false),
        (with("\"client_name\":\"Claude\""), false),
        (
            with("\"client_id\":\"https://client.example/client.json\""),
            false,
        ),
        (String::new(), false),
        ("[]".to_owned(), false),
    ] {
        let setup = Setup::new();
        setup.network.serve(DOCUMENT, 200, body.clone());
        let status = ask(&setup).await.status();
        assert_eq!(status == StatusCode::OK, is_valid, "{body}");
    }
    let setup = Setup::new();
    setup.network.serve(DOCUMENT, 404, document().to_string());
    assert_refused(&ask(&setup).await, "404");
    setup.network.time_out(DOCUMENT);
    assert_refused(&ask(&setup).await, "timeout");
}

/// DO3: many requests for one document cause one fetch, and an invalid one is not remembered.
#[tokio::test]
async fn many_requests_for_one_document() {
    let setup = Arc::new(Setup::new());
    serve(&setup.network, &document(), 3600);
    let gate = setup.network.hang(DOCUMENT);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move { ask(&setup).await.status() })
        })
        .collect();
    tokio::task::yield_now().await;
    gate.release();
    for task in tasks {
        assert_eq!(task.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(setup.network.hits(DOCUMENT), 1);
}

/// DO7: documents are cached within bounds, and errors are not cached.
#[tokio::test]
async fn documents_that_are_always_or_never_cached() {
    for (max_age, minutes) in [(0, 5), (600, 10), (u64::MAX, 24 * 60)] {
        let setup = Setup::new();
        serve(&setup.network, &document(), max_age);
        ask(&setup).await;
        setup.pass(Duration::from_secs(minutes * 60 - 1));
        ask(&setup).await;
        assert_eq!(setup.network.hits(DOCUMENT), 1, "{max_age}");
        setup.pass(Duration::from_secs(1));
        ask(&setup).await;
        assert_eq!(setup.network.hits(DOCUMENT), 2, "{max_age}");
    }
    let setup = Setup::new();
    setup.network.serve(DOCUMENT, 500, "");
    assert_refused(&ask(&setup).await, "500");
    serve(&setup.network, &document(), 3600);
    assert_eq!(ask(&setup).await.status(), StatusCode::OK);
}

/// DO7: an outage of the client's host ends no sign-in.
#[tokio::test]
async fn the_host_of_the_client_is_down() {
    let setup = Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant;
    });
    let mut with_keys = document();
    let key = SigningKey::generate(Algorithm::Es256, "k").unwrap();
    with_keys["token_endpoint_auth_method"] = json!("private_key_jwt");
    with_keys["jwks_uri"] = json!(KEYS);
    serve(&setup.network, &with_keys, 3600);
    setup.network.serve(KEYS, 200, TestIssuer::jwks_of(&[&key]));
    let client = document_client();
    let mut browser = Browser::new(&setup);
    let code = param(&browser.sign_in(&client).await, "code").unwrap();
    let mut fields = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code),
        ("code_verifier", client.verifier.secret().to_owned()),
    ];
    let response = authenticated(&setup, &key, ISSUER, "1", &fields).await;
    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
    let mut refresh_token = json_of(&response)["refresh_token"].clone();

    let ok = json_response(StatusCode::OK, &with_keys);
    let outages: [(&str, Outage); 4] = [
        ("connection", Box::new(|network| network.fail(DOCUMENT))),
        ("timeout", Box::new(|network| network.time_out(DOCUMENT))),
        ("503", Box::new(|network| network.serve(DOCUMENT, 503, ""))),
        (
            "keys",
            Box::new(move |network| {
                let ok = ok.clone();
                network.respond(DOCUMENT, move |_| Ok(ok.clone()));
                network.fail(KEYS);
            }),
        ),
    ];
    for (number, (name, outage)) in outages.iter().enumerate() {
        outage(&setup.network);
        setup.pass(HOUR * 30);
        assert_refused(&ask(&setup).await, name);
        fields = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh_token.as_str().unwrap().to_owned()),
        ];
        let jti = format!("outage {number}");
        let response = authenticated(&setup, &key, ISSUER, &jti, &fields).await;
        assert_eq!(response.status(), StatusCode::OK, "{name}: {response:?}");
        refresh_token = json_of(&response)["refresh_token"].clone();
    }

    // A document that the host withdrew, or made invalid, is not used any more.
    for (status, body) in [
        (404, String::new()),
        (200, "{}".to_owned()),
        (200, "a".repeat(6000)),
    ] {
        setup.network.serve(DOCUMENT, status, body);
        fields[1].1 = refresh_token.as_str().unwrap().to_owned();
        let jti = format!("invalid {status}");
        let response = authenticated(&setup, &key, ISSUER, &jti, &fields).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{status}");
    }
}

/// DO3, DO7: documents of clients that got no token are forgotten after a day, so that a flood of
/// them does not fill the store.
#[tokio::test]
async fn a_flood_of_documents() {
    let setup = Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant;
    });
    serve(&setup.network, &document(), u64::MAX);
    for number in 0..20 {
        let url = format!("https://client.example/{number}.json");
        let mut found = document();
        found["client_id"] = json!(url);
        setup.network.serve(&url, 200, found.to_string());
        let mut client = document_client();
        client.id = url;
        Browser::new(&setup).authorize(&client.request()).await;
    }
    let client = document_client();
    let tokens = setup.sign_in(&client).await;
    let count = async || {
        setup.records.sweep().await.unwrap();
        setup
            .records
            .count(Table("broker_documents"))
            .await
            .unwrap()
    };
    assert_eq!(count().await, 21);
    setup.pass(HOUR * 24);
    assert_eq!(count().await, 1);
    setup.network.fail(DOCUMENT);
    setup.pass(HOUR * 24 * 100);
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);
    setup.pass(HOUR * 24 * 100);
    assert_eq!(count().await, 1);
}

/// ST7: a document that was sealed with a removed key is fetched again, also if its client got a
/// token.
#[tokio::test]
async fn a_document_of_a_removed_key() {
    let text = BrokerKeys::generate().unwrap();
    let setup_with = |text: &str, clock, records| {
        let keys = Arc::new(BrokerKeys::parse(text).unwrap());
        let setup = Setup::assemble(settings(), clock, records, keys);
        serve(&setup.network, &document(), 3600);
        setup
    };
    let clock = ManualClock::new();
    let records = Arc::new(MemoryRecords::new(Arc::new(clock.clone())));
    let before = setup_with(&text, clock.clone(), Arc::clone(&records) as _);
    before.sign_in(&document_client()).await;
    // The next epoch, in place of the removed one.
    let text = text.replacen("records 1 ", "records 2 ", 1);
    let after = setup_with(&text, clock, records);
    assert_eq!(ask(&after).await.status(), StatusCode::OK);
    assert_eq!(after.network.hits(DOCUMENT), 1);
    after.sign_in(&document_client()).await;
    assert_eq!(after.network.hits(DOCUMENT), 1);
}

/// DO3: hosts that answer slowly do not keep other clients from refreshing.
#[tokio::test(start_paused = true)]
async fn slow_hosts_occupy_the_fetches() {
    let setup = Arc::new(Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant;
    }));
    serve(&setup.network, &document(), 3600);
    let client = document_client();
    let tokens = setup.sign_in(&client).await;
    setup.pass(HOUR * 2);
    let gate = setup.network.hang(DOCUMENT);
    let slow = tokio::spawn({
        let setup = Arc::clone(&setup);
        async move { ask(&setup).await.status() }
    });
    tokio::task::yield_now().await;
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);
    gate.release();
    assert_eq!(slow.await.unwrap(), StatusCode::OK);
}
