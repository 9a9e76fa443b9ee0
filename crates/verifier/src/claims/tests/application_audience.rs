//! The issuer's own name for the resource as an audience.

use super::*;

const APPLICATION: &str = "11112222-bbbb-3333-cccc-4444dddd5555";

fn with_application() -> IssuerSettings {
    let mut settings = settings();
    settings.audiences = vec![further(RESOURCE, application())];
    settings
}

fn application() -> AudienceName {
    AudienceName::Application(crate::ApplicationAudience::parse(APPLICATION).unwrap())
}

/// C6: a name of another resource is no audience.
#[test]
fn the_name_of_another_resource_is_rejected() {
    let mut settings = settings();
    settings.audiences = vec![further("https://mcp.example.com/other", application())];
    let claims = json!({ "aud": APPLICATION, "azp": "client" });
    assert_eq!(
        rejection(claims, &settings),
        Some("token.audience_mismatch")
    );
}

/// C6: the issuer's own name for the resource is an audience, and no part or extension of it.
#[test]
fn the_issuers_own_name_is_an_audience() {
    for aud in [
        json!(APPLICATION),
        json!(APPLICATION.to_uppercase()),
        json!(["x", APPLICATION]),
        json!(RESOURCE),
    ] {
        let claims = json!({ "aud": aud, "azp": "client" });
        assert_eq!(
            rejection(claims.clone(), &with_application()),
            None,
            "{aud}"
        );
    }
    assert_eq!(
        rejection(json!({ "aud": RESOURCE }), &with_application()),
        None
    );
    for aud in [
        json!(format!("api://{APPLICATION}")),
        json!(&APPLICATION[..35]),
        json!([[APPLICATION]]),
    ] {
        let claims = json!({ "aud": aud, "azp": "client" });
        assert_eq!(
            rejection(claims, &with_application()),
            Some("token.audience_mismatch"),
            "{aud}"
        );
    }
    assert_rejected(
        json!({ "aud": APPLICATION, "azp": "client" }),
        "token.audience_mismatch",
    );
}

/// C6, C4: with that name, a token without scopes and client may be an ID token.
#[test]
fn an_id_token_has_the_same_audience() {
    let with = |mut claims: Value| {
        claims["aud"] = json!(APPLICATION);
        rejection(claims, &with_application())
    };
    for claims in [
        json!({ "scp": "tools" }),
        json!({ "scope": "tools" }),
        json!({ "azp": "c" }),
        json!({ "appid": "c" }),
    ] {
        assert_eq!(with(claims.clone()), None, "{claims}");
    }
    for claims in [
        json!({}),
        json!({ "roles": ["tools"], "nonce": "n", "name": "Alice" }),
        json!({ "scp": "" }),
        json!({ "scope": " " }),
        json!({ "scp": [] }),
        json!({ "azp": "" }),
        json!({ "client_id": "c" }),
    ] {
        assert_eq!(
            with(claims.clone()),
            Some("token.not_an_access_token"),
            "{claims}"
        );
    }
}
