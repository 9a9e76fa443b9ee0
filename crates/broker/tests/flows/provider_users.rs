//! Which user signs in, and what the user may do (PR).

use http::StatusCode;
use portcullis_broker::ScopeGrant;
use portcullis_guard::authorize::{ClaimRule, ClaimTest};
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::Scopes;
use serde_json::{Value, json};

use crate::{
    provider::{outcome, rule, two_providers},
    support::{Browser, Setup, claims, json_of, location, param, provider},
};

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

/// PR4: a user is identified by provider and identifier, never by a name or address.
#[tokio::test]
async fn two_people_with_one_address() {
    let setup = Setup::with(two_providers);
    let client = setup.client().await;
    let sub = async |name: &'static str, user: Value| {
        for provider in &setup.providers {
            *provider.user.lock() = user.clone();
        }
        let mut browser = Browser::new(&setup);
        browser.provider = name;
        let page = browser.authorize(&client.request()).await;
        let url = browser.approve(&page).await;
        let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
        let claims = claims(&json_of(&setup.exchange(&client, &code).await));
        claims["sub"].as_str().unwrap().to_owned()
    };
    let address = "alice@example.com";
    let alice = sub("idp", json!({ "sub": "1", "email": address })).await;
    let renamed = sub("idp", json!({ "sub": "1", "email": "new@example.com" })).await;
    let mallory = sub("idp", json!({ "sub": "2", "email": address })).await;
    let elsewhere = sub("other", json!({ "sub": "1", "email": address })).await;
    assert_eq!(alice, renamed);
    assert_ne!(alice, mallory);
    assert_ne!(alice, elsewhere);
    assert!(alice.starts_with("idp_") && elsewhere.starts_with("other_"));
}

/// PR5: a client does not become a user.
#[tokio::test]
async fn a_client_without_a_user() {
    let setup = Setup::new();
    let client = setup.client().await;
    for grant_type in [
        "client_credentials",
        "password",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:token-exchange",
        "implicit",
    ] {
        let fields = [
            ("grant_type", grant_type),
            ("client_id", client.id.as_str()),
            ("username", "alice"),
            ("password", "password"),
            ("assertion", "a.b.c"),
            ("scope", "mcp:tools"),
        ];
        let response = setup.post("/oauth/token", &fields).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(json_of(&response)["error"], "unsupported_grant_type");
    }
    // A client whose identifier is that of a user does not get the user's claims.
    *setup.provider.user.lock() = json!({ "sub": client.id });
    let tokens = setup.sign_in(&client).await;
    assert_ne!(claims(&tokens)["sub"], client.id);
}

/// PR5: claims of the provider do not replace those of the token.
#[tokio::test]
async fn claims_of_the_provider_that_name_another() {
    let setup = Setup::with(|settings| {
        for name in ["sub", "aud", "scope", "client_id", "sid", "iss", "exp"] {
            settings.claims.insert(name.into(), "chosen".into());
        }
        settings.claims.insert("email".into(), "email".into());
    });
    let user = json!({ "sub": "mallory", "chosen": "admin", "email": "m@example.com" });
    *setup.provider.user.lock() = user;
    let client = setup.client().await;
    let claims = claims(&setup.sign_in(&client).await);
    assert_eq!(claims["email"], "m@example.com");
    assert!(!claims.to_string().contains("admin"));
}

/// PR6: a user who does not meet a rule gets nothing.
#[tokio::test]
async fn a_user_who_is_not_allowed() {
    let setup = Setup::with(|settings| {
        settings.providers[0].allow = vec![
            rule("groups", &["staff"]),
            ClaimRule::new("email_verified", ClaimTest::Present).unwrap(),
        ];
    });
    for (user, expected) in [
        (json!({ "sub": "a" }), Some("access_denied")),
        (
            json!({ "sub": "a", "groups": ["staff"] }),
            Some("access_denied"),
        ),
        (
            json!({ "sub": "a", "groups": ["guests"], "email_verified": true }),
            Some("access_denied"),
        ),
        (
            json!({ "sub": "a", "groups": "staffing", "email_verified": true }),
            Some("access_denied"),
        ),
        (
            json!({ "sub": "a", "groups": null, "email_verified": true }),
            Some("access_denied"),
        ),
        (
            json!({ "sub": "a", "groups": { "staff": 1 }, "email_verified": true }),
            Some("access_denied"),
        ),
        (
            json!({ "sub": "a", "groups": ["staff"], "email_verified": true }),
            None,
        ),
    ] {
        *setup.provider.user.lock() = user.clone();
        assert_eq!(outcome(&setup).await.as_deref(), expected, "{user}");
    }
    assert!(setup.events.contains("broker.user_not_allowed"));
}

/// PR6: groups that Entra left out do not pass a rule, nor reduce a user without a word.
#[tokio::test]
async fn groups_that_the_provider_left_out() {
    let issuer = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
    for is_grant in [false, true] {
        let setup = Setup::with(|settings| {
            let mut entra = provider("entra", ProviderKind::Entra, &issuer);
            if is_grant {
                entra.grants = vec![ScopeGrant {
                    rule: Some(rule("groups", &["admins"])),
                    scopes: Scopes::parse("mcp:tools").unwrap(),
                }];
            } else {
                entra.allow = vec![rule("groups", &["admins"])];
            }
            settings.providers = vec![entra];
        });
        let client = setup.client().await;
        for (claim, value, is_allowed) in [
            ("groups", json!(["admins"]), true),
            ("_claim_names", json!({ "groups": "src1" }), false),
            ("hasgroups", json!(true), false),
            ("hasgroups", json!("true"), false),
        ] {
            *setup.provider.user.lock() = json!({
                "sub": "pairwise", "tid": TENANT, "oid": "object-1", claim: value,
            });
            let mut browser = Browser::new(&setup);
            browser.provider = "entra";
            let target = browser.sign_in(&client).await;
            assert_eq!(param(&target, "code").is_some(), is_allowed, "{claim}");
        }
        assert!(setup.events.contains("broker.groups_missing"));
    }
}

/// AU8, PR6: `grant` rules reduce the scopes that the user saw.
#[tokio::test]
async fn a_user_with_fewer_scopes() {
    let setup = Setup::with(|settings| {
        let scopes = |text| Scopes::parse(text).unwrap();
        settings.providers[0].grants = vec![
            ScopeGrant {
                rule: Some(rule("groups", &["staff"])),
                scopes: scopes("mcp:tools"),
            },
            ScopeGrant {
                rule: Some(rule("groups", &["admins"])),
                scopes: scopes("mcp:admin"),
            },
        ];
    });
    let client = setup.client().await;
    for (groups, requested, expected) in [
        (json!(["staff"]), "mcp:tools mcp:admin", Some("mcp:tools")),
        (json!(["staff", "admins"]), "mcp:tools", Some("mcp:tools")),
        (json!(["staff"]), "mcp:admin", None),
        (json!(["guests"]), "mcp:tools", None),
        (Value::Null, "mcp:tools", None),
    ] {
        *setup.provider.user.lock() = json!({ "sub": "a", "groups": groups });
        let mut browser = Browser::new(&setup);
        let mut params = client.request();
        params.push(("scope", requested.to_owned()));
        let page = browser.authorize(&params).await;
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let Some(expected) = expected else {
            assert_eq!(param(&target, "error").as_deref(), Some("access_denied"));
            continue;
        };
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&setup.exchange(&client, &code).await);
        assert_eq!(tokens["scope"], expected);
        assert_eq!(claims(&tokens)["scope"], expected);
    }
}
