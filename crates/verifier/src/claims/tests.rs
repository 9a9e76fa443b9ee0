//! Claims are validated exactly: type, issuer, audience and times.

use std::time::Duration;

use portcullis_metadata::{Issuer, ResourceUri, UnixTime, UnverifiedClaims};
use serde_json::{Value, json};

use super::validation::validate_signed;
use crate::{
    principal::Principal,
    settings::{AudienceName, FurtherAudience, IssuerSettings},
};

mod application_audience;

const NOW: u64 = 1_767_225_600;
const ISSUER: &str = "https://issuer.example/realms/prod";
const RESOURCE: &str = "https://mcp.example.com/mcp";

fn settings() -> IssuerSettings {
    IssuerSettings::new(Issuer::parse(ISSUER).unwrap())
}

/// Returns a name that an issuer gives a resource.
fn further(resource: &str, name: AudienceName) -> FurtherAudience {
    FurtherAudience {
        resource: ResourceUri::parse(resource).unwrap(),
        name,
    }
}

/// Returns valid claims with changes. `null` removes a claim.
fn claims(changes: Value) -> Vec<u8> {
    let mut claims =
        json!({ "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": NOW + 300, "iat": NOW });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    serde_json::to_vec(&claims).unwrap()
}

fn validated(changes: Value, settings: &IssuerSettings) -> Result<Principal, &'static str> {
    validated_payload(claims(changes), settings)
}

fn validated_payload(
    payload: Vec<u8>,
    settings: &IssuerSettings,
) -> Result<Principal, &'static str> {
    let claims = UnverifiedClaims::parse(&payload).map_err(|error| error.code())?;
    let resource = ResourceUri::parse(RESOURCE).unwrap();
    let validated = validate_signed(
        &claims,
        &payload,
        settings,
        &resource,
        UnixTime::from_secs(NOW),
    );
    validated.map_err(|error| error.code())
}

fn rejection(changes: Value, settings: &IssuerSettings) -> Option<&'static str> {
    validated(changes, settings).err()
}

#[track_caller]
fn assert_rejected(changes: Value, code: &str) {
    assert_eq!(
        rejection(changes.clone(), &settings()),
        Some(code),
        "{changes}"
    );
}

#[track_caller]
fn assert_accepted(changes: Value) {
    assert_eq!(rejection(changes.clone(), &settings()), None, "{changes}");
}

/// C4: claims that only other token types have are rejected with any value.
#[test]
fn other_token_types_are_rejected() {
    for claim in ["at_hash", "c_hash", "s_hash", "events"] {
        for value in [json!("x"), json!({}), json!(0), json!(false)] {
            assert_rejected(json!({ claim: value }), "token.not_an_access_token");
        }
    }
    for typ in ["ID", "Refresh", "Logout", "Offline", "id", "REFRESH"] {
        assert_rejected(json!({ "typ": typ }), "token.not_an_access_token");
    }
}

/// C4: `token_use` distinguishes the tokens of Amazon Cognito, which have the same issuer and keys.
#[test]
fn tokens_of_another_use_are_rejected() {
    for token_use in ["access", "access_token"] {
        assert_accepted(json!({ "token_use": token_use }));
    }
    for token_use in [
        "id",
        "id_token",
        "refresh",
        "refresh_token",
        "ACCESS",
        "accessory",
        "",
    ] {
        assert_rejected(
            json!({ "token_use": token_use }),
            "token.not_an_access_token",
        );
    }
}

/// C4: the `typ` claim and the `nonce` of Keycloak's access tokens are accepted.
#[test]
fn keycloak_access_tokens_are_accepted() {
    assert_accepted(
        json!({ "typ": "Bearer", "nonce": "n", "sid": "s", "auth_time": NOW, "acr": "1" }),
    );
}

/// C5: the issuer is compared byte for byte. Equivalent URLs are rejected.
#[test]
fn the_issuer_is_compared_byte_for_byte() {
    for iss in [
        "https://issuer.example/realms/prod/",
        "https://issuer.example/realms/Prod",
        "https://ISSUER.example/realms/prod",
        "https://issuer.example:443/realms/prod",
        "https://issuer.example/realms/%70rod",
        "https://issuer.example/realms/production",
        "https://issuer.example/realms/other",
        "https://issuer.example",
        "http://issuer.example/realms/prod",
        "HTTPS://issuer.example/realms/prod",
        "https://issuer.example./realms/prod",
        "https://issuer.example/realms/prod?",
        "https://issuer.example/realms/prod#",
        "https://user@issuer.example/realms/prod",
        "https://issuer.example@attacker.example/realms/prod",
        "https://issuer.example.attacker.example/realms/prod",
        "https://іssuer.example/realms/prod",
        "https://xn--ssuer-example/realms/prod",
        " https://issuer.example/realms/prod",
        "https://issuer.example/realms/prod ",
        "https://issuer.example/realms/prod\u{0}",
        "issuer.example/realms/prod",
        "",
    ] {
        assert_rejected(json!({ "iss": iss }), "token.issuer_unknown");
    }
    assert_rejected(json!({ "iss": null }), "token.issuer_missing");
}

/// C5: `iss`, `sub`, `client_id` and `azp` must be strings.
#[test]
fn identities_are_strings() {
    for claim in ["iss", "sub", "client_id", "azp"] {
        for value in [json!(7), json!(["alice"]), json!({ "a": 1 }), json!(true)] {
            assert_rejected(json!({ claim: value }), "claims.type");
        }
    }
    assert_accepted(json!({ "sub": null }));
}

/// C6: a token without a string in `aud` is rejected.
#[test]
fn an_audience_is_required() {
    assert_rejected(json!({ "aud": null }), "token.audience_missing");
    assert_rejected(json!({ "aud": [] }), "token.audience_mismatch");
    assert_rejected(
        json!({ "aud": [7, null, { "aud": RESOURCE }, [RESOURCE]] }),
        "token.audience_mismatch",
    );
    assert_rejected(json!({ "aud": 7 }), "claims.type");
    assert_rejected(json!({ "aud": true }), "claims.type");
    assert_rejected(json!({ "aud": { "0": RESOURCE } }), "claims.type");
}

/// C6: one matching entry is sufficient. A trailing slash and ASCII case are ignored.
#[test]
fn one_matching_audience_is_sufficient() {
    for aud in [
        json!(RESOURCE),
        json!([RESOURCE]),
        json!(["account", 7, RESOURCE]),
        json!("https://mcp.example.com/mcp/"),
        json!("HTTPS://MCP.EXAMPLE.COM/MCP"),
    ] {
        assert_accepted(json!({ "aud": aud }));
    }
}

/// C6: prefixes, parents, other resources and generic names do not match.
#[test]
fn similar_audiences_are_rejected() {
    for aud in [
        "https://mcp.example.com",
        "https://mcp.example.com/",
        "https://mcp.example.com/mcp/tools",
        "https://mcp.example.com/mcp2",
        "https://mcp.example.com/mcp//",
        "https://mcp.example.com/mcp?x=1",
        "https://mcp.example.com/%6Dcp",
        "https://mcp.example.com:443/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com.evil.example/mcp",
        "https://mcp.example.com/mc",
        "https://mcp.example.com//mcp",
        "https://mcp.example.com/./mcp",
        "https://mcp.example.com/mcp#x",
        "https://mcp.example.com:8443/mcp",
        "https://www.mcp.example.com/mcp",
        "https://user@mcp.example.com/mcp",
        " https://mcp.example.com/mcp",
        "https://mcp.example.com/mcp ",
        "https://mcp.example.com/mcp\u{0}",
        "https://mcp.example.com/ⅿcp",
        "mcp.example.com/mcp",
        ISSUER,
        "mcp",
        "/mcp",
        "/",
        "account",
        "api",
        "*",
        "",
    ] {
        assert_rejected(json!({ "aud": aud }), "token.audience_mismatch");
        assert_rejected(json!({ "aud": [aud, "other"] }), "token.audience_mismatch");
    }
}

/// C6: another URL of the resource matches only if the issuer's settings list it.
#[test]
fn extra_audiences_are_explicit() {
    let mut settings = settings();
    let old = ResourceUri::parse("https://old.example.com/mcp").unwrap();
    settings.audiences = vec![further(RESOURCE, AudienceName::Url(old))];
    assert_eq!(
        rejection(json!({ "aud": "https://old.example.com/mcp/" }), &settings),
        None
    );
    assert_eq!(rejection(json!({ "aud": RESOURCE }), &settings), None);
    assert_eq!(
        rejection(json!({ "aud": "https://old.example.com" }), &settings),
        Some("token.audience_mismatch")
    );
    assert_rejected(
        json!({ "aud": "https://old.example.com/mcp" }),
        "token.audience_mismatch",
    );
}

/// C7: `exp` is required and checked with the leeway, exactly to the millisecond.
#[test]
fn expiry_is_required_and_checked() {
    assert_rejected(json!({ "exp": null }), "token.expiry_missing");
    assert_rejected(json!({ "exp": NOW - 10 }), "token.expired");
    assert_rejected(json!({ "exp": NOW as f64 - 10.001 }), "token.expired");
    assert_accepted(json!({ "exp": NOW as f64 - 9.999 }));
    assert_accepted(json!({ "exp": NOW - 9 }));
    assert_rejected(json!({ "exp": 0 }), "token.expired");
}

/// C7: `nbf` and `iat` in the future are rejected, except within the leeway.
#[test]
fn future_times_are_rejected() {
    assert_accepted(json!({ "nbf": NOW + 10, "iat": NOW + 10 }));
    assert_accepted(json!({ "nbf": NOW as f64 + 9.5, "iat": NOW as f64 + 9.5 }));
    assert_rejected(json!({ "nbf": NOW + 11 }), "token.not_yet_valid");
    assert_rejected(json!({ "nbf": NOW as f64 + 10.001 }), "token.not_yet_valid");
    assert_rejected(json!({ "iat": NOW + 11 }), "token.issued_in_future");
    assert_rejected(
        json!({ "iat": NOW as f64 + 10.001 }),
        "token.issued_in_future",
    );
    assert_accepted(json!({ "iat": null }));
}

/// C7: the leeway is a setting of the issuer.
#[test]
fn leeway_can_be_set() {
    let mut settings = settings();
    settings.leeway = Duration::ZERO;
    assert_eq!(
        rejection(json!({ "exp": NOW }), &settings),
        Some("token.expired")
    );
    assert_eq!(rejection(json!({ "exp": NOW + 1 }), &settings), None);
    assert_eq!(
        rejection(json!({ "nbf": NOW + 1 }), &settings),
        Some("token.not_yet_valid")
    );
    settings.leeway = Duration::from_secs(60);
    assert_eq!(rejection(json!({ "exp": NOW - 59 }), &settings), None);
    assert_eq!(
        rejection(json!({ "exp": NOW - 60 }), &settings),
        Some("token.expired")
    );
}

/// C7: numbers that are not dates are rejected and never rounded.
#[test]
fn invalid_dates_are_rejected() {
    for claim in ["exp", "nbf", "iat"] {
        for value in [
            json!(-1),
            json!(-0.5),
            json!(1e300),
            json!(1e19),
            json!(u64::MAX),
            json!(253_402_300_800_u64),
            json!("1767225900"),
            json!([NOW]),
            json!(true),
            json!({}),
        ] {
            assert_rejected(json!({ claim: value }), "claims.date");
        }
    }
}

/// C7: the maximum lifetime is checked with `exp` and `iat`. A token without `iat` is rejected.
#[test]
fn lifetime_can_be_limited() {
    let mut settings = settings();
    settings.max_lifetime = Some(Duration::from_secs(300));
    assert_eq!(rejection(json!({}), &settings), None);
    assert_eq!(
        rejection(json!({ "exp": NOW + 301 }), &settings),
        Some("token.lifetime_too_long")
    );
    assert_eq!(
        rejection(json!({ "exp": NOW + 200, "iat": NOW - 101 }), &settings),
        Some("token.lifetime_too_long")
    );
    assert_eq!(
        rejection(json!({ "iat": null }), &settings),
        Some("token.issued_at_missing")
    );
}

/// C8: scopes come from `scope` or `scp`, as a string or an array.
#[test]
fn scopes_are_parsed_in_every_form() {
    for changes in [
        json!({ "scope": "mcp:tools openid" }),
        json!({ "scope": "openid  mcp:tools openid" }),
        json!({ "scope": ["mcp:tools", "openid"] }),
        json!({ "scp": ["openid", "mcp:tools"] }),
        json!({ "scp": "openid mcp:tools" }),
    ] {
        let principal = validated(changes.clone(), &settings()).unwrap();
        assert_eq!(
            principal.scopes().iter().collect::<Vec<_>>(),
            ["mcp:tools", "openid"],
            "{changes}"
        );
    }
    assert!(
        validated(json!({}), &settings())
            .unwrap()
            .scopes()
            .is_empty()
    );
    assert_rejected(json!({ "scope": 7 }), "claims.type");
    assert_rejected(json!({ "scope": "a\"b" }), "claims.scope");
}

/// C13: a sender-constrained token is rejected with any confirmation method.
#[test]
fn sender_constrained_tokens_are_rejected() {
    for cnf in [
        json!({ "jkt": "x" }),
        json!({ "x5t#S256": "x" }),
        json!({ "kid": "x" }),
        json!({}),
        json!("x"),
        json!(0),
    ] {
        assert_rejected(json!({ "cnf": cnf }), "token.sender_constrained");
    }
}

/// C13: a confirmation claim of `null` is rejected, too.
#[test]
fn a_null_confirmation_is_rejected() {
    let mut with_null: Value = serde_json::from_slice(&claims(json!({}))).unwrap();
    with_null["cnf"] = Value::Null;
    let validated = validated_payload(with_null.to_string().into(), &settings());
    assert_eq!(validated.err(), Some("token.sender_constrained"));
}

#[test]
fn the_principal_has_the_claims() {
    let claims =
        json!({ "client_id": "app", "azp": "other", "email": "a@example.com", "scope": "x" });
    let principal = validated(claims, &settings()).unwrap();
    assert_eq!(principal.issuer().as_str(), ISSUER);
    assert_eq!(principal.subject(), Some("alice"));
    assert_eq!(principal.client(), Some("app"));
    assert_eq!(principal.expires(), UnixTime::from_secs(NOW + 300));
    assert_eq!(
        principal.claims().get("email"),
        Some(&json!("a@example.com"))
    );
    assert_eq!(principal.claim("azp"), Some(&json!("other")));
    assert_eq!(principal.claims().len(), 9);
    assert!(!format!("{principal:?}").contains("alice"));
    assert_eq!(
        validated(json!({ "azp": "other" }), &settings())
            .unwrap()
            .client(),
        Some("other")
    );
}

/// E7: only a client without a subject may own sessions as itself, and only if the issuer's
/// settings allow it.
#[test]
fn owning_sessions_without_a_subject_is_a_setting() {
    let owns = |changes: Value, settings: &IssuerSettings| {
        validated(changes, settings)
            .unwrap()
            .may_own_sessions_as_client()
    };
    let mut allowing = settings();
    allowing.subjectless_client = true;
    assert!(owns(json!({ "sub": null, "client_id": "app" }), &allowing));
    assert!(!owns(
        json!({ "sub": null, "client_id": "app" }),
        &settings()
    ));
    assert!(!owns(json!({ "sub": null }), &allowing));
    assert!(!owns(json!({ "client_id": "app" }), &allowing));
}

/// C8: configured claims count as scopes.
#[test]
fn scope_claims_count() {
    let mut settings = settings();
    settings.scope_claims = vec!["permissions".to_owned(), "/realm_access/roles".to_owned()];
    let claims =
        json!({ "scope": "a", "permissions": ["b", "c d"], "realm_access": { "roles": ["e"] } });
    assert_eq!(
        validated(claims.clone(), &settings)
            .unwrap()
            .scopes()
            .to_string(),
        "a b e"
    );
    assert_eq!(
        validated(claims, &self::settings())
            .unwrap()
            .scopes()
            .to_string(),
        "a"
    );
}

/// C8: `scope` and `scp` are always read, and a pointer needs valid escapes.
#[test]
fn scope_claims_are_checked() {
    let code = |claim: &str| {
        let mut settings = settings();
        settings.scope_claims = vec![claim.to_owned()];
        settings.check().err().map(|error| error.code())
    };
    for claim in [
        "permissions",
        "/realm_access/roles",
        "https://example.com/roles",
        "/a~1b/~0c",
        "Scope",
    ] {
        assert_eq!(code(claim), None, "{claim}");
    }
    for claim in ["", "/", "scope", "scp", "/scope", "/scp", "/a~2", "/a~"] {
        assert_eq!(code(claim), Some("settings.scope_claim"), "{claim}");
    }
}
