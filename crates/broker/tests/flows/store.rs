//! Attacks on the store (ST).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_state_store::records::{Change, KeyedRecord, StoredRecord, Table, Write};
use portcullis_testkit::Canaries;
use serde_json::{Value, json};

use crate::{
    failing_records::{Failures, Fixture, assert_unavailable, fixture},
    log::Log,
    support::{Browser, Client, Setup, claims, json_of, location, param, text_of},
};

/// ST1: the store contains no code, token, address or secret in plain text.
#[tokio::test]
async fn a_copy_of_the_store() {
    let Fixture { setup, written, .. } = fixture();
    *setup.provider.user.lock() =
        json!({ "sub": "user-of-the-provider", "sid": "session-1", "email": "alice@example.com" });
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    let tokens = json_of(&setup.exchange(&client, &code).await);
    setup.pass(setup.settings.lifetimes.recheck);
    let refreshed = json_of(&setup.refresh(&client, text(&tokens, "refresh_token")).await);
    let mut canaries = secrets(&setup, &browser, &url, &[&tokens, &refreshed]);
    canaries.add("the code", &code);
    canaries.add("the address", "alice@example.com");
    canaries.add("the user", "user-of-the-provider");
    canaries.add("the subject", claims(&tokens)["sub"].as_str().unwrap());
    let written = written.lock();
    let tables: BTreeSet<_> = written.iter().map(|(table, _)| table.0).collect();
    assert!(tables.len() >= 6, "{tables:?}");
    for (table, value) in written.iter() {
        canaries.assert_absent(table.0, &String::from_utf8_lossy(value));
    }
}

fn text<'t>(tokens: &'t Value, name: &str) -> &'t str {
    tokens[name].as_str().unwrap()
}

/// Returns the secrets of a sign-in.
fn secrets(setup: &Setup, browser: &Browser<'_>, url: &url::Url, tokens: &[&Value]) -> Canaries {
    let mut canaries = Canaries::default();
    canaries.add("the provider's refresh token", "provider-refresh-token");
    canaries.add("the provider's access token", "provider-access-token");
    canaries.add("the provider's code", "provider-code");
    canaries.add("the secret at the provider", "secret-at-idp");
    canaries.add("the state", &param(url, "state").unwrap());
    for (name, value) in &browser.cookies {
        canaries.add(name.as_str(), value);
    }
    let requests = setup.network.requests(setup.provider.endpoint("token"));
    let form = portcullis_testkit::form(&requests[0]);
    canaries.add("the provider's verifier", &form["code_verifier"]);
    for tokens in tokens {
        canaries.add("the refresh token", text(tokens, "refresh_token"));
        canaries.add("the access token", text(tokens, "access_token"));
    }
    canaries
}

/// ST2: a record that was exchanged, changed or shortened is an error, and never an empty record.
#[tokio::test]
async fn records_that_were_rewritten() {
    for table in ["broker_grants", "broker_sign_ins", "broker_clients"] {
        for attack in ["exchange", "change", "shorten", "empty"] {
            let Fixture { setup, .. } = fixture();
            let client = setup.client().await;
            let other = setup
                .client_with(json!({
                    "redirect_uris": ["http://127.0.0.1/"],
                    "token_endpoint_auth_method": "none",
                }))
                .await;
            let tokens = setup.sign_in(&client).await;
            setup.sign_in(&other).await;
            rewrite(&setup, table, attack).await;
            let (log, _guard) = Log::here();
            let response = setup.refresh(&client, text(&tokens, "refresh_token")).await;
            assert_unavailable(&response, &format!("{table} {attack}"));
            let lines = log.lines().join("\n");
            assert!(lines.contains("store.record_unreadable"), "{lines}");
            assert!(!setup.events.contains("GrantEnded"));
        }
    }
}

/// Rewrites all records of a table.
async fn rewrite(setup: &Setup, table: &'static str, attack: &str) {
    let found = setup
        .records
        .scan(Table(table), &[], None, 10)
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
    let values: Vec<_> = found
        .iter()
        .map(|(_, record)| record.value.clone())
        .collect();
    let mut change = Change::default();
    for (position, (key, record)) in found.into_iter().enumerate() {
        let mut value = values[position].clone();
        match attack {
            "exchange" => value = values[1 - position].clone(),
            "change" => value[60] ^= 1,
            "shorten" => value.truncate(60),
            _ => value.clear(),
        }
        let record = StoredRecord { value, ..record };
        change.writes.push(Write::Put {
            table: Table(table),
            key,
            record,
        });
    }
    setup.records.commit(change).await.unwrap();
}

/// ST3: a process that ends between two steps leaves nothing half done.
#[tokio::test]
async fn a_restart_between_the_steps() {
    let first = Setup::new();
    let client = first.client().await;
    let mut browser = Browser::new(&first);
    let page = browser.authorize(&client.request()).await;
    let second = first.restarted(|_| ());
    let mut browser = move_to(&second, &browser);
    let url = browser.approve(&page).await;
    let nonce = second.provider.nonce.lock().clone();
    let third = second.restarted(|_| ());
    *third.provider.nonce.lock() = nonce;
    let mut browser = move_to(&third, &browser);
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    let fourth = third.restarted(|_| ());
    let response = fourth.exchange(&client, &code).await;
    assert_eq!(response.status(), StatusCode::OK);
    // A second use is noticed by the next process, too.
    let fifth = fourth.restarted(|_| ());
    let response = fifth.exchange(&client, &code).await;
    assert_eq!(json_of(&response)["error"], "invalid_grant");
    assert!(fifth.events.contains("CodeReplayed"));
}

fn move_to<'s>(setup: &'s Setup, browser: &Browser<'_>) -> Browser<'s> {
    let mut moved = Browser::new(setup);
    moved.cookies = browser.cookies.clone();
    moved
}

/// ST5: a restored backup knows the tokens that were issued after it, and revives no code.
#[tokio::test]
async fn a_restored_backup() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let code = param(&browser.sign_in(&client).await, "code").unwrap();
    let old_code = backup(&setup).await;
    let tokens = json_of(&setup.exchange(&client, &code).await);
    let old_grant = backup(&setup).await;
    let mut current = text(&tokens, "refresh_token").to_owned();
    for _ in 0..3 {
        let response = setup.refresh(&client, &current).await;
        current = text(&json_of(&response), "refresh_token").to_owned();
    }
    restore(&setup, old_grant).await;
    let response = setup.refresh(&client, &current).await;
    assert_eq!(response.status(), StatusCode::OK);
    // The record moved forward: older tokens are replays.
    setup.pass(Duration::from_secs(601));
    restore(&setup, old_code).await;
    let response = setup.exchange(&client, &code).await;
    assert_eq!(json_of(&response)["error"], "invalid_grant");
}

type Backup = Vec<(Table, KeyedRecord)>;

async fn backup(setup: &Setup) -> Backup {
    let mut records = Vec::new();
    for name in ["broker_codes", "broker_grants", "broker_sign_ins"] {
        let found = setup
            .records
            .scan(Table(name), &[], None, 100)
            .await
            .unwrap();
        records.extend(found.into_iter().map(|record| (Table(name), record)));
    }
    assert!(!records.is_empty());
    records
}

async fn restore(setup: &Setup, backup: Backup) {
    let mut change = Change::default();
    for (table, (key, record)) in backup {
        change.writes.push(Write::Put { table, key, record });
    }
    setup.records.commit(change).await.unwrap();
}

/// ST7: records and tokens of other keys neither open nor verify.
#[tokio::test]
async fn keys_that_were_replaced() {
    let old = Setup::new();
    let client = old.client().await;
    let tokens = old.sign_in(&client).await;
    let records = Arc::clone(&old.records);
    let new = Setup::over(move |_| records, |_| ());
    let response = new.refresh(&client, text(&tokens, "refresh_token")).await;
    assert!(!response.status().is_success());
    let page = Browser::new(&new).authorize(&client.request()).await;
    assert!(!page.status().is_success());
    let keys = |setup: &Setup| setup.broker.public_keys();
    assert_ne!(format!("{:?}", keys(&old)), format!("{:?}", keys(&new)));
}

/// ST1, PR8: the log and the events contain no token, code, cookie or secret.
#[tokio::test]
async fn secrets_in_the_log() {
    let (log, _guard) = Log::here();
    let Fixture {
        setup, failures, ..
    } = fixture();
    let client: Client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    browser.return_from(&url).await;
    let tokens = json_of(&setup.exchange(&client, &code).await);
    let token = text(&tokens, "refresh_token");
    // Everything that is logged: errors of the provider, of the store, of clients.
    setup.pass(setup.settings.lifetimes.recheck);
    let endpoint = setup.provider.endpoint("token");
    let body = json!({ "error": "invalid_client", "error_description": "secret-at-idp" });
    setup.network.serve(&endpoint, 401, body.to_string());
    let refreshed = json_of(&setup.refresh(&client, token).await);
    Failures::set(&failures.writes, true);
    setup
        .refresh(&client, text(&refreshed, "refresh_token"))
        .await;
    Failures::set(&failures.writes, false);
    Failures::set(&failures.reads, true);
    setup.refresh(&client, token).await;
    setup.exchange(&client, &code).await;
    browser.authorize(&client.request()).await;
    Failures::set(&failures.reads, false);
    setup.exchange(&client, &code).await;
    setup
        .post("/oauth/logout/idp", &[("logout_token", token)])
        .await;
    setup.pass(Duration::from_secs(700));
    setup.refresh(&client, token).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let mut canaries = secrets(&setup, &browser, &url, &[&tokens, &refreshed]);
    canaries.add("the code", &code);
    canaries.add("the client's verifier", client.verifier.secret());
    let lines = log.lines().join("\n");
    assert!(lines.contains("provider.application_rejected"), "{lines}");
    canaries.assert_absent("the log", &lines);
    canaries.assert_absent("the events", &setup.events.all());
    assert!(!text_of(&page).contains("secret-at-idp"));
}
