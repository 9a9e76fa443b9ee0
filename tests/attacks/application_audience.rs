//! ID tokens and tokens of other applications, for a resource whose `aud` is an application ID of
//! the issuer.

use portcullis_scenarios::{Deployment, Finished, INITIALIZE, Portcullis, Request, Scratch};
use portcullis_testkit::TokenBuilder;
use serde_json::json;

const APPLICATION: &str = "11112222-bbbb-3333-cccc-4444dddd5555";

/// Returns a token with the claims that both ID tokens and access tokens of Microsoft Entra ID
/// (version 2.0) have.
fn entra_token(deployment: &Deployment) -> TokenBuilder {
    let token = deployment
        .test_issuer
        .token()
        .audience(APPLICATION)
        .without("client_id")
        .without("azp");
    token
        .claim("tid", "aaaabbbb-0000-cccc-1111-dddd2222eeee")
        .claim("oid", "o")
        .claim("ver", "2.0")
        .claim("name", "Alice")
}

/// C6, C4: an ID token with the same `aud` is rejected, even if its roles count as scopes.
#[tokio::test]
async fn an_id_token_is_rejected() {
    let lines = format!("audiences = [\"{APPLICATION}\"]\nscope_claims = [\"roles\"]");
    let deployment = Deployment::builder().issuer(lines).start().await;
    let token = || entra_token(&deployment);
    let roles = || token().claim("roles", json!(["mcp:tools"]));
    deployment
        .assert_accepted("scp", &token().claim("scp", "mcp:tools").sign())
        .await;
    deployment
        .assert_accepted("azp and roles", &roles().claim("azp", "client").sign())
        .await;
    deployment
        .assert_accepted("appid and roles", &roles().claim("appid", "client").sign())
        .await;
    deployment
        .assert_accepted("the resource URL", &deployment.good_token())
        .await;

    let code = "token.not_an_access_token";
    deployment
        .assert_rejected([
            (
                "an ID token",
                token()
                    .claim("nonce", "n")
                    .claim("preferred_username", "alice@contoso.com")
                    .sign(),
                code,
            ),
            (
                "an ID token with roles",
                roles().claim("nonce", "n").sign(),
                code,
            ),
            (
                "an ID token with an empty scp",
                roles().claim("scp", "").sign(),
                code,
            ),
            (
                "an ID token with an empty azp",
                roles().claim("azp", "").sign(),
                code,
            ),
        ])
        .await;
}

/// C6: only the complete configured name matches.
#[tokio::test]
async fn other_applications_are_rejected() {
    let lines = format!("audiences = [\"{APPLICATION}\", \"api://contoso/mcp\"]");
    let deployment = Deployment::builder().issuer(lines).start().await;
    let with = |audience: &str| {
        deployment
            .token()
            .audience(audience)
            .claim("azp", "client")
            .sign()
    };
    deployment
        .assert_accepted("another case", &with(&APPLICATION.to_uppercase()))
        .await;
    deployment
        .assert_accepted("the URI", &with("api://contoso/mcp"))
        .await;

    let others = [
        "00000003-0000-0000-c000-000000000000",
        "https://graph.microsoft.com",
        "api://11112222-bbbb-3333-cccc-4444dddd5555",
        "api://contoso",
        "api://contoso/mcp/",
        "api://contoso/MCP",
        "11112222-bbbb-3333-cccc-4444dddd5555/",
        "11112222bbbb3333cccc4444dddd5555",
    ];
    deployment
        .assert_rejected(
            others.map(|audience| (audience, with(audience), "token.audience_mismatch")),
        )
        .await;
}

/// C6: two resources whose tokens have names of applications. A token for one of them is rejected
/// at the other.
#[tokio::test]
async fn the_other_resource_rejects_the_token() {
    let other = "22223333-bbbb-3333-cccc-4444dddd5555";
    let deployment = Deployment::builder()
        .issuer(format!(
            "audiences = {{ \"/mcp\" = [\"{APPLICATION}\"], \"/other\" = [\"{other}\"] }}"
        ))
        .tables(format!(
            "[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"\n{SCOPED}"
        ))
        .start()
        .await;
    let token = |application: &str| {
        let token = deployment.token().audience(application);
        token
            .claim("azp", "client")
            .claim("scope", "mcp:tools tools")
            .sign()
    };
    for (endpoint, accepted, rejected) in
        [("/mcp", APPLICATION, other), ("/other", other, APPLICATION)]
    {
        let status = async |token: String| {
            let request = Request::post(endpoint, INITIALIZE).bearer(&token);
            deployment.send(request).await.status
        };
        assert_eq!(status(token(accepted)).await, 200, "{endpoint}");
        assert_eq!(status(token(rejected)).await, 401, "{endpoint}");
    }
}

/// C6: an audience that is not the resource's URL needs required scopes and a resource of its own,
/// and must be a UUID or an `api://` URI.
#[tokio::test]
async fn unsafe_configurations_are_rejected() {
    let second =
        format!("{SCOPED}\n[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"\n{SCOPED}");
    for (audience, resource, named) in [
        (APPLICATION, "", "required_scopes is empty"),
        ("api://contoso/mcp", "", "required_scopes is empty"),
        (APPLICATION, second.as_str(), "would count for all of them"),
        ("api", SCOPED, "audiences has \"api\""),
        ("api://", SCOPED, "audiences has \"api://\""),
        (
            "urn:contoso:mcp",
            SCOPED,
            "audiences has \"urn:contoso:mcp\"",
        ),
    ] {
        let checked = check(audience, resource).await;
        assert_eq!(checked.code, Some(1), "{audience}: {checked:?}");
        assert!(checked.stderr.contains(named), "{audience}: {checked:?}");
    }
}

/// C6: an application's ID with required scopes is accepted, with a warning.
#[tokio::test]
async fn an_application_id_with_required_scopes_is_accepted() {
    let checked = check(APPLICATION, SCOPED).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked.stdout.contains(": issuer[0].audiences has"),
        "{checked:?}"
    );
}

/// The line of a resource with required scopes.
const SCOPED: &str = "required_scopes = [\"tools\"]";

/// Runs `check` on a configuration with this audience and these lines of the resource.
async fn check(audience: &str, resource: &str) -> Finished {
    let configuration = format!(
        r#"
        base_url = "https://mcp.example.com"
        [[issuer]]
        issuer = "https://auth.example.com"
        audiences = ["{audience}"]
        [[resource]]
        endpoint = "/mcp"
        upstream = "demo"
        {resource}
        "#
    );
    let file = Scratch::file("portcullis.toml", &configuration);
    Portcullis::run(&["check", "--config", file.as_str()]).await
}
