//! Numeric dates that overflow, are not finite, or are out of range.

use portcullis_scenarios::Deployment;

/// C7: a date that is negative, not finite or out of range is rejected, and nothing panics.
#[tokio::test]
async fn absurd_dates() {
    let deployment = Deployment::start().await;
    let payload = |name: &str, number: &str| {
        let exp = if name == "exp" { "" } else { r#","exp":4102444800"# };
        let aud = Deployment::RESOURCE;
        format!(
            r#"{{"iss":"https://issuer.example","aud":"{aud}","sub":"alice","scope":"mcp:tools"{exp},"{name}":{number}}}"#
        )
    };
    let numbers = [
        "-1",
        "-0.5",
        "-9223372036854775808",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "1e18",
        "1e308",
        "1e309",
        "-1e309",
        "1e999999999",
        "253402300800000",
    ];
    let wrong_types = ["\"4102444800\"", "[4102444800]", "{}", "true"];
    for name in ["exp", "nbf", "iat"] {
        for number in numbers.iter().chain(&wrong_types) {
            let token = deployment.token().raw_payload(payload(name, number)).sign();
            let response = deployment.try_token(&token).await;
            assert_eq!(response.assert_unauthorized(), Some("invalid_token"), "{name} = {number}: {response:?}");
        }
    }
    for number in ["NaN", "Infinity", "-Infinity", "0x7fffffff", "+4102444800", "04102444800", "4102444800.", ".5"] {
        let token = deployment.token().raw_payload(payload("exp", number)).sign();
        let response = deployment.try_token(&token).await;
        assert_eq!(response.assert_unauthorized(), Some("invalid_token"), "exp = {number}: {response:?}");
    }
    assert!(deployment.upstream.recorded().is_empty(), "a request reached the upstream");
    deployment.assert_accepted("the server continues", &deployment.good_token()).await;
}

/// C7: dates with fractions of a second are accepted.
#[tokio::test]
async fn fractions() {
    let deployment = Deployment::start().await;
    for number in ["4102444800.75", "4102444800.0", "4.1024448e9"] {
        let aud = Deployment::RESOURCE;
        let payload = format!(
            r#"{{"iss":"https://issuer.example","aud":"{aud}","sub":"alice","scope":"mcp:tools","iat":1700000000.25,"exp":{number}}}"#
        );
        deployment.assert_accepted(number, &deployment.token().raw_payload(payload).sign()).await;
    }
}
