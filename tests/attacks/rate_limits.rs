//! Requests above the rate limits of an address, a principal or a tool, also with forged addresses.

use portcullis_scenarios::{Deployment, HttpResponse, Request, modern_request};
use serde_json::json;

/// Returns a limit that is not replenished during a test.
fn limit(requests: u32) -> String {
    format!("{{ requests = {requests}, per = \"24h\" }}")
}

fn ping() -> Request {
    modern_request(Deployment::ENDPOINT, "ping", &json!({}))
}

fn assert_limited(response: &HttpResponse) {
    assert_eq!(response.status, 429, "{response:?}");
    let wait: Option<u64> = response
        .header("retry-after")
        .and_then(|value| value.parse().ok());
    assert!(
        wait.is_some_and(|wait| (1..=24 * 60 * 60).contains(&wait)),
        "{response:?}"
    );
    assert!(
        response.header("www-authenticate").is_none(),
        "{response:?}"
    );
    assert!(response.header("x-request-id").is_some(), "{response:?}");
}

/// J5: an address is limited regardless of the headers that it sends, with and without a token.
/// Metadata requests are not limited.
#[tokio::test]
async fn forged_addresses_are_ignored() {
    let deployment = Deployment::builder()
        .tables(format!("[limits]\nper_address = {}", limit(3)))
        .start()
        .await;
    let mut denied = Vec::new();
    for number in 0..6 {
        let request = ping()
            .bearer(&deployment.good_token())
            .header("X-Forwarded-For", format!("198.51.100.{number}"))
            .header("Forwarded", format!("for=198.51.100.{number}"))
            .header("X-Real-IP", format!("198.51.100.{number}"));
        let response = deployment.send(request).await;
        if number < 3 {
            assert_eq!(response.status, 200, "{response:?}");
        } else {
            assert_limited(&response);
            // The message was not read.
            response.assert_rpc_error(429, -32603);
            assert!(response.json()["id"].is_null(), "{response:?}");
            denied.push((response, "limit.address"));
        }
    }
    let without_token = deployment.send(ping()).await;
    assert_limited(&without_token);

    denied.push((without_token, "limit.address"));
    assert_eq!(
        deployment
            .send(Request::new("GET", Deployment::METADATA_PATH))
            .await
            .status,
        200
    );
    assert_eq!(deployment.upstream.count(), 3);
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// J5: behind a trusted proxy each client is counted separately, and addresses before its own are
/// ignored.
#[tokio::test]
async fn clients_of_a_trusted_proxy_are_counted_separately() {
    let top = "trusted_proxies = [\"127.0.0.0/8\", \"10.0.0.0/8\"]";
    let tables = format!("[limits]\nper_address = {}", limit(2));
    let deployment = Deployment::builder().top(top).tables(tables).start().await;
    for (chain, status) in [
        ("198.51.100.1", 200),
        ("1.1.1.1, 198.51.100.1", 200),
        ("2.2.2.2, 198.51.100.1, 10.0.0.9", 429),
        ("198.51.100.2", 200),
        ("[2001:db8:0:1::1]:443", 200),
        ("2001:db8:0:1::2", 200),
        ("2001:db8:0:1::3", 429),
        ("2001:db8:0:2::1", 200),
    ] {
        let request = ping()
            .bearer(&deployment.good_token())
            .header("X-Forwarded-For", chain);
        assert_eq!(deployment.send(request).await.status, status, "{chain}");
    }
}

/// J5: the limit of a principal applies to all of its tokens together, and other principals have
/// their own limits.
#[tokio::test]
async fn all_tokens_of_a_principal_share_a_limit() {
    let deployment = Deployment::builder()
        .tables(format!("[limits]\nper_principal = {}", limit(2)))
        .start()
        .await;
    let token = |client: &str| {
        deployment
            .test_issuer
            .token()
            .scope("mcp:tools")
            .claim("azp", client)
            .sign()
    };
    let mut denied = Vec::new();
    for (client, limited) in [
        ("one", false),
        ("two", false),
        ("three", true),
        ("one", true),
    ] {
        let response = deployment.send(ping().bearer(&token(client))).await;
        if limited {
            assert_limited(&response);
            denied.push((response, "limit.principal"));
        } else {
            assert_eq!(response.status, 200, "{response:?}");
        }
    }
    let bob = deployment
        .test_issuer
        .token()
        .scope("mcp:tools")
        .subject("bob")
        .sign();
    assert_eq!(deployment.send(ping().bearer(&bob)).await.status, 200);
    assert_eq!(
        deployment.send(ping().bearer("invalid")).await.status,
        401,
        "requests without a principal are not counted"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// J5: calls of a rule's tools are limited in every spelling of the tool's name, with a JSON-RPC
/// error.
#[tokio::test]
async fn calls_of_a_tool_are_limited() {
    let rule = format!(
        "[[resource.rule]]\nmethod = \"tools/call\"\nname = \"slow_*\"\nlimit = {}",
        limit(1)
    );
    let deployment = Deployment::builder().resource(rule).start().await;
    let call = |name: &str| {
        modern_request(
            Deployment::ENDPOINT,
            "tools/call",
            &json!({ "name": name, "arguments": {} }),
        )
        .header("Mcp-Name", name)
        .bearer(&deployment.good_token())
    };
    assert_eq!(deployment.send(call("slow_one")).await.status, 200);

    let mut denied = Vec::new();
    for name in ["slow_one", "slow_two", "SLOW_one"] {
        let response = deployment.send(call(name)).await;
        assert_limited(&response);
        response.assert_rpc_error(429, -32603);
        assert_eq!(response.json()["id"], 1, "{response:?}");
        let wait = response.header("retry-after").unwrap_or_default();
        assert!(
            response.json()["error"]["message"]
                .as_str()
                .unwrap()
                .ends_with(&format!("try again in {wait} s")),
            "{response:?}"
        );
        denied.push((response, "limit.tool"));
    }
    assert_eq!(deployment.send(call("fast")).await.status, 200);
    assert_eq!(deployment.upstream.count(), 2);
    deployment.portcullis.assert_all_denied(&denied).await;
}
