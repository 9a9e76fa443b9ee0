//! Claim rules for all requests and for some messages, report-only rules, and implied scopes.

use portcullis_scenarios::{Deployment, modern_request};
use serde_json::{Value, json};

const RULES: &str = r#"
required_scopes = ["mcp:tools"]
scope_implies = { "mcp:admin" = ["mcp:operator"], "mcp:operator" = ["mcp:tools"] }

[[resource.claim]]
claim = "/realm_access/roles"
one_of = ["mcp-user"]

[[resource.claim]]
claim = "email"
domain = ["example.com"]
report_only = true

[[resource.rule]]
method = "tools/call"
name = "billing_*"
claims = [{ claim = "groups", one_of = ["finance"] }]
"#;

/// C14, B7: a role for every token, groups for some tools, and a broader scope instead of the
/// required one.
#[tokio::test]
async fn claims_and_implied_scopes() {
    struct Case {
        tool: &'static str,
        scope: &'static str,
        roles: Value,
        groups: Value,
        /// The reason of the denial; `None` if the call is allowed.
        code: Option<&'static str>,
    }
    let case = |tool, scope, roles, groups, code| Case {
        tool,
        scope,
        roles,
        groups,
        code,
    };

    let deployment = Deployment::builder().resource(RULES).start().await;
    let user = || json!({ "roles": ["mcp-user"] });
    let other = json!({ "roles": ["other"] });
    let mut denied = Vec::new();
    for Case {
        tool,
        scope,
        roles,
        groups,
        code,
    } in [
        case("add", "mcp:tools", user(), json!([]), None),
        case("add", "mcp:admin", user(), json!([]), None),
        case(
            "add",
            "mcp:other",
            user(),
            json!([]),
            Some("scope.insufficient"),
        ),
        case("add", "mcp:tools", other, json!([]), Some("claim.mismatch")),
        case(
            "add",
            "mcp:tools",
            json!({}),
            json!([]),
            Some("claim.missing"),
        ),
        case(
            "billing_pay",
            "mcp:tools",
            user(),
            json!(["staff", "finance"]),
            None,
        ),
        case(
            "billing_pay",
            "mcp:tools",
            user(),
            json!(["staff"]),
            Some("claim.mismatch"),
        ),
        case(
            "BILLING_pay",
            "mcp:admin",
            user(),
            json!("Finance"),
            Some("claim.mismatch"),
        ),
    ] {
        let token = deployment
            .test_issuer
            .token()
            .scope(scope)
            .claim("realm_access", roles.clone())
            .claim("groups", groups);
        let request = modern_request(
            Deployment::ENDPOINT,
            "tools/call",
            &json!({ "name": tool, "arguments": {} }),
        )
        .header("Mcp-Name", tool)
        .bearer(&token.sign());
        let response = deployment.send(request).await;
        assert_eq!(
            response.status,
            if code.is_some() { 403 } else { 200 },
            "{tool} {scope} {roles}: {response:?}"
        );
        if let Some(code) = code {
            assert_eq!(
                response.header("www-authenticate").is_some(),
                code == "scope.insufficient",
                "{response:?}"
            );
            denied.push((response, code));
        }
    }
    assert_eq!(deployment.upstream.count(), 3);
    deployment.portcullis.assert_all_denied(&denied).await;
}
