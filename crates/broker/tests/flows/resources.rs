//! Attacks on the resource and the scopes of a request (AU).

use http::StatusCode;

use crate::{
    authorization::{OTHER, changed, error_at_client},
    support::{Browser, RESOURCE, Setup, claims, json_of, location, param, resource, text_of},
};

/// AU7, OR7: with one resource, `resource` may be absent or imprecise, and never another one.
#[tokio::test]
async fn a_foreign_resource() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for resource in [
        "https://attacker.example/mcp",
        "https://mcp.example.com.attacker.example/mcp",
        "https://mcp.example.com/other",
        "https://mcp.example.com/mcp/other",
        "https://mcp.example.com:8443/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com/mcp#fragment",
        "https://user@mcp.example.com/mcp",
        "mcp",
        "https://mcp.example.com/other?a=b",
        "https://mcp.example.com/?a=b",
    ] {
        let params = changed(&client, &[("resource", resource)]);
        let error = error_at_client(&browser.authorize(&params).await);
        assert_eq!(error, "invalid_target", "{resource}");
    }
    for resource in [
        "",
        RESOURCE,
        "https://mcp.example.com",
        "https://mcp.example.com/",
        "https://mcp.example.com/mcp/",
        "https://mcp.example.com/mcp?session=1",
    ] {
        let params = changed(&client, &[("resource", resource)]);
        let page = browser.authorize(&params).await;
        assert_eq!(page.status(), StatusCode::OK, "{resource}");
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&setup.exchange(&client, &code).await);
        assert_eq!(claims(&tokens)["aud"], RESOURCE, "{resource}");
    }
}

/// AU7: with two resources, a request names one of them, unless there is a default.
#[tokio::test]
async fn an_ambiguous_resource() {
    let two = Setup::with(|settings| settings.resources.push(resource(OTHER)));
    let with_default = Setup::with(|settings| {
        settings.resources.push(resource(OTHER));
        settings.default_resource = Some(1);
    });
    let client = two.client().await;
    for ambiguous in [
        "",
        "https://mcp.example.com",
        "https://mcp.example.com/mcp?a=b",
    ] {
        let params = changed(&client, &[("resource", ambiguous)]);
        let response = Browser::new(&two).authorize(&params).await;
        assert_eq!(error_at_client(&response), "invalid_target", "{ambiguous}");
    }
    let client = with_default.client().await;
    for (requested, expected) in [("", OTHER), (RESOURCE, RESOURCE), (OTHER, OTHER)] {
        let mut browser = Browser::new(&with_default);
        let params = changed(&client, &[("resource", requested)]);
        let page = browser.authorize(&params).await;
        assert!(text_of(&page).contains(expected), "{requested}");
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&with_default.exchange(&client, &code).await);
        assert_eq!(claims(&tokens)["aud"], expected);
    }
    let params = changed(&client, &[("resource", "https://mcp.example.com")]);
    let response = Browser::new(&with_default).authorize(&params).await;
    assert_eq!(error_at_client(&response), "invalid_target");
}

/// AU8: only scopes of the resource are granted, and the response names them.
#[tokio::test]
async fn a_client_that_asks_for_all_scopes() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for (scope, expected) in [
        ("", "mcp:tools"),
        ("mcp:tools mcp:root", "mcp:tools"),
        (
            "mcp:tools mcp:admin offline_access openid",
            "mcp:admin mcp:tools",
        ),
        ("offline_access", "mcp:tools"),
        ("openid offline_access", "mcp:tools"),
    ] {
        let page = browser
            .authorize(&changed(&client, &[("scope", scope)]))
            .await;
        assert_eq!(page.status(), StatusCode::OK, "{scope}");
        for name in ["mcp:tools", "mcp:admin", "mcp:root", "offline_access"] {
            let shown = text_of(&page).contains(&format!("<code>{name}</code>"));
            assert_eq!(shown, expected.contains(name), "{name}");
        }
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&setup.exchange(&client, &code).await);
        assert_eq!(tokens["scope"], expected, "{scope}");
        assert_eq!(claims(&tokens)["scope"], expected, "{scope}");
    }
    for scope in [
        "mcp:root",
        "mcp:root offline_access",
        "mcp:tools\u{7f}",
        "\"",
        "MCP:TOOLS",
    ] {
        let response = browser
            .authorize(&changed(&client, &[("scope", scope)]))
            .await;
        assert_eq!(error_at_client(&response), "invalid_scope", "{scope}");
    }
}
