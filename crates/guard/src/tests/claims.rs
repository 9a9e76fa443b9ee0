//! Claim rules: values, domains and report-only mode.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{Setup, With, request};
use crate::authorize::{ClaimRule, ClaimTest};

fn one_of(claim: &str, values: &[&str]) -> ClaimRule {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    ClaimRule::new(claim, ClaimTest::OneOf(values)).unwrap()
}

fn domain(claim: &str, domains: &[&str]) -> ClaimRule {
    let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
    ClaimRule::new(claim, ClaimTest::Domain(domains)).unwrap()
}

fn present(claim: &str) -> ClaimRule {
    ClaimRule::new(claim, ClaimTest::Present).unwrap()
}

/// Returns the status, reason code and report-only denial for a token with these claims under these
/// rules.
async fn check(
    rules: &[ClaimRule],
    claims: &[(&str, Value)],
) -> (u16, Option<&'static str>, Option<&'static str>) {
    let mut setup = Setup::new();
    setup.settings.claims = rules.to_vec();
    let token = claims
        .iter()
        .fold(setup.test_issuer.token(), |token, (name, value)| {
            token.claim(name, value.clone())
        });
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&token.sign()))
        .await;
    let decision = setup.sink.only();
    assert_eq!(answer.status.as_u16(), decision.status);
    (decision.status, decision.code, decision.report_only_denial)
}

/// C14: a claim or an element of a list must equal one of the listed values. The claim is found by
/// name or JSON pointer.
#[tokio::test]
async fn listed_values() {
    let groups = one_of("groups", &["staff", "7", "true"]);
    let roles = one_of("/realm_access/roles", &["mcp-user"]);
    let client = one_of("azp", &["agent"]);
    for (rule, name, value, code) in [
        (&groups, "groups", json!("staff"), None),
        (&groups, "groups", json!(["other", "staff"]), None),
        (&groups, "groups", json!(7), None),
        (&groups, "groups", json!(true), None),
        (&groups, "groups", json!("Staff"), Some("claim.mismatch")),
        (&groups, "groups", json!("staff "), Some("claim.mismatch")),
        (
            &groups,
            "groups",
            json!("staff other"),
            Some("claim.mismatch"),
        ),
        (&groups, "groups", json!([]), Some("claim.mismatch")),
        (
            &groups,
            "groups",
            json!([["staff"]]),
            Some("claim.mismatch"),
        ),
        (
            &groups,
            "groups",
            json!({"staff": true}),
            Some("claim.mismatch"),
        ),
        (&groups, "groups", json!(false), Some("claim.mismatch")),
        (&groups, "groups", json!(null), Some("claim.missing")),
        (&groups, "Groups", json!("staff"), Some("claim.missing")),
        (&roles, "realm_access", json!({"roles": ["mcp-user"]}), None),
        (
            &roles,
            "realm_access",
            json!({"roles": ["mcp-users"]}),
            Some("claim.mismatch"),
        ),
        (
            &roles,
            "realm_access",
            json!(["mcp-user"]),
            Some("claim.missing"),
        ),
        (&client, "azp", json!("agent"), None),
        (&client, "azp", json!("agents"), Some("claim.mismatch")),
    ] {
        let status = if code.is_none() { 200 } else { 403 };
        assert_eq!(
            check(std::slice::from_ref(rule), &[(name, value.clone())]).await,
            (status, code, None),
            "{name} {value}"
        );
    }
}

/// C14: the domain of an email matches in any letter case. Subdomains and longer names do not
/// match.
#[tokio::test]
async fn domains() {
    let rule = domain("email", &["example.com", "example.org"]);
    for (email, code) in [
        (json!("a@example.com"), None),
        (json!("a@b@EXAMPLE.org"), None),
        (json!(["a@else.example", "a@example.com"]), None),
        (json!("a@sub.example.com"), Some("claim.mismatch")),
        (json!("a@notexample.com"), Some("claim.mismatch")),
        (json!("a@example.com@evil.example"), Some("claim.mismatch")),
        (json!("a@example.com "), Some("claim.mismatch")),
        (json!("example.com"), Some("claim.mismatch")),
        (json!(""), Some("claim.mismatch")),
        (json!(1), Some("claim.mismatch")),
    ] {
        let status = if code.is_none() { 200 } else { 403 };
        assert_eq!(
            check(std::slice::from_ref(&rule), &[("email", email.clone())]).await,
            (status, code, None),
            "{email}"
        );
    }
}

/// C14: every enforced rule must be met. A report-only rule rejects nothing, and the decision has
/// its denial.
#[tokio::test]
async fn report_only_rules() {
    let team = one_of("team", &["a"]);
    let org = present("org");
    let trial = team.clone().report_only();
    let trial_org = org.clone().report_only();
    let good = ("team", json!("a"));
    let bad = ("team", json!("b"));
    let org_claim = ("org", json!(false));
    for nothing in [json!([]), json!([null])] {
        let present = check(std::slice::from_ref(&org), &[("org", nothing)]).await;
        assert_eq!(present, (403, Some("claim.mismatch"), None));
    }
    for (rules, claims, expected) in [
        (
            vec![team.clone(), org.clone()],
            vec![good.clone(), org_claim.clone()],
            (200, None, None),
        ),
        (
            vec![team.clone(), org.clone()],
            vec![good.clone()],
            (403, Some("claim.missing"), None),
        ),
        (
            vec![team.clone(), org.clone()],
            vec![bad.clone()],
            (403, Some("claim.mismatch"), None),
        ),
        (vec![trial.clone()], vec![good.clone()], (200, None, None)),
        (
            vec![trial.clone(), trial_org],
            vec![bad.clone()],
            (200, None, Some("claim.mismatch")),
        ),
        (
            vec![trial.clone(), org],
            vec![bad.clone()],
            (403, Some("claim.missing"), None),
        ),
        (
            vec![trial, team],
            vec![bad],
            (403, Some("claim.mismatch"), None),
        ),
    ] {
        assert_eq!(
            check(&rules, &claims).await,
            expected,
            "{rules:?} {claims:?}"
        );
    }
}

/// C14: the rejection is generic, has no challenge, and comes before the scope check.
#[tokio::test]
async fn denied_claims_get_no_challenge() {
    let mut setup = Setup::new().require("read");
    setup.settings.claims = vec![present("org")];
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.header("www-authenticate"), None);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.body.contains("access_denied"), "{}", answer.body);
    assert!(!answer.body.contains("org"), "{}", answer.body);
    assert_eq!(setup.sink.only().subject.as_deref(), Some("alice"));
    assert_eq!(setup.inner.count(), 0);
}
