//! Claims of active responses: audience, times, issuer, type and binding.

use portcullis_metadata::ResourceUri;

use super::*;
use crate::{AudienceName, FurtherAudience};

/// D3, C6: the audience is required and must contain this resource or an additional audience.
#[tokio::test(start_paused = true)]
async fn the_audience_is_checked() {
    assert_eq!(
        rejection(active_without("aud")).await,
        Some("token.audience_missing")
    );
    for aud in [
        json!("api"),
        json!("https://mcp.example.com"),
        json!("https://mcp.example.com/mcp/tools"),
        json!("https://mcp.example.com/mcp//"),
        json!([]),
        json!(["account", "https://other.example/mcp"]),
        json!([7, null, {"aud": TestIssuer::RESOURCE}]),
    ] {
        assert_eq!(
            rejection(active_with("aud", aud.clone())).await,
            Some("token.audience_mismatch"),
            "{aud}"
        );
    }
    assert_eq!(
        rejection(active_with("aud", Value::Null)).await,
        Some("token.audience_missing")
    );

    for aud in [
        json!("HTTPS://MCP.example.com/MCP/"),
        json!(["account", TestIssuer::RESOURCE]),
    ] {
        assert_eq!(
            rejection(active_with("aud", aud.clone())).await,
            None,
            "{aud}"
        );
    }

    let other = "https://old.example.com/mcp";
    let fixture = Fixture::with(|issuer| {
        issuer.validation = Validation::Introspection(client());
        issuer.audiences = vec![FurtherAudience {
            resource: ResourceUri::parse(TestIssuer::RESOURCE).unwrap(),
            name: AudienceName::Url(ResourceUri::parse(other).unwrap()),
        }];
    });
    set_response(&fixture, &active_with("aud", other));
    assert_eq!(fixture.rejection(OPAQUE).await, None);
}

/// D3: an expired token is rejected, except within the leeway. `exp` is optional.
#[tokio::test(start_paused = true)]
async fn the_expiry_is_checked() {
    assert_eq!(
        rejection(active_with("exp", START - 10)).await,
        Some("token.expired")
    );
    assert_eq!(
        rejection(active_with("exp", 0)).await,
        Some("token.expired")
    );
    assert_eq!(rejection(active_with("exp", START - 9)).await, None);
    assert_eq!(
        rejection(active_with("exp", START as f64 + 0.5)).await,
        None
    );
    assert_eq!(rejection(active_without("exp")).await, None);
    assert_eq!(
        rejection(active_with("nbf", START + 11)).await,
        Some("token.not_yet_valid")
    );
    assert_eq!(
        rejection(active_with("iat", START + 11)).await,
        Some("token.issued_in_future")
    );
}

/// D3: the maximum lifetime applies to introspected tokens, too.
#[tokio::test(start_paused = true)]
async fn the_lifetime_is_checked() {
    let fixture = Fixture::with(|issuer| {
        issuer.validation = Validation::Introspection(client());
        issuer.max_lifetime = Some(Duration::from_secs(300));
    });
    for (iat, code) in [
        (Some(START), None),
        (Some(START - 1), Some("token.lifetime_too_long")),
        (None, Some("token.issued_at_missing")),
    ] {
        set_response(
            &fixture,
            &iat.map_or_else(active, |iat| active_with("iat", iat)),
        );
        assert_eq!(fixture.rejection(&format!("token-{iat:?}")).await, code);
    }
}

/// D3, C5: `iss`, if present, must be this issuer byte for byte.
#[tokio::test(start_paused = true)]
async fn the_issuer_is_checked() {
    assert_eq!(rejection(active_with("iss", ISSUER)).await, None);
    for iss in [
        "https://issuer.example/",
        "https://ISSUER.example",
        "https://evil.example",
        "",
    ] {
        assert_eq!(
            rejection(active_with("iss", iss)).await,
            Some("token.issuer_mismatch"),
            "{iss}"
        );
    }
}

/// D3, C4: a response about another token type is rejected even if it is active.
#[tokio::test(start_paused = true)]
async fn the_token_type_is_checked() {
    for token_type in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(
            rejection(active_with("token_type", token_type)).await,
            None,
            "{token_type}"
        );
    }
    for token_type in [
        "ID",
        "Refresh",
        "Offline",
        "N_A",
        "mac",
        "Bearer ",
        "refresh_token",
        "",
    ] {
        assert_eq!(
            rejection(active_with("token_type", token_type)).await,
            Some("token.not_an_access_token"),
            "{token_type}"
        );
    }
    for typ in ["ID", "Refresh", "Offline", "Logout"] {
        assert_eq!(
            rejection(active_with("typ", typ)).await,
            Some("token.not_an_access_token"),
            "{typ}"
        );
    }
    for claim in ["at_hash", "c_hash", "s_hash", "events"] {
        assert_eq!(
            rejection(active_with(claim, "x")).await,
            Some("token.not_an_access_token"),
            "{claim}"
        );
    }
    assert_eq!(rejection(active_with("typ", 5)).await, Some("claims.type"));
}

/// D3, C13: a sender-constrained token is rejected.
#[tokio::test(start_paused = true)]
async fn a_sender_constrained_token_is_rejected() {
    for cnf in [
        json!({"jkt": "x"}),
        json!({"x5t#S256": "x"}),
        json!({}),
        json!("x"),
        json!(true),
    ] {
        assert_eq!(
            rejection(active_with("cnf", cnf.clone())).await,
            Some("token.sender_constrained"),
            "{cnf}"
        );
    }
    assert_eq!(
        rejection(active_with("token_type", "DPoP")).await,
        Some("token.sender_constrained")
    );
}
