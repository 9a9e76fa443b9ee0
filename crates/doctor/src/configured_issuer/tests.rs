//! An issuer is examined as the server that trusts it uses it.

use std::sync::Arc;

use portcullis_metadata::{Issuer, ResourceUri};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use portcullis_verifier::IssuerSettings;

use crate::{ConfiguredIssuer, ConfiguredResource, Doctor, Finding, IssuerPurpose, Step, Verdict};

const ISSUER: &str = "https://auth.example.com";

/// Examines the issuer as the server with these settings does.
async fn examine(fetch: &ScriptedFetch, settings: &IssuerSettings) -> Vec<Step> {
    let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
    let resources = vec![ConfiguredResource {
        endpoint: "/mcp",
        resource: &resource,
        scopes: vec!["mcp:tools"],
    }];
    let issuer = ConfiguredIssuer {
        key: "issuer[0]",
        settings,
        purpose: IssuerPurpose::AccessTokens,
        resources,
    };
    let mut reported = 0;
    let doctor = Doctor::new(Arc::new(fetch.clone())).clock(Arc::new(ManualClock::new()));
    let steps = doctor.examine_issuer(&issuer, &mut |_| reported += 1).await;
    assert_eq!(reported, steps.len(), "every step is reported once");
    steps
}

fn settings(issuer: &str) -> IssuerSettings {
    IssuerSettings::new(Issuer::parse(issuer).unwrap())
}

/// The problems, each as its rule and fix.
fn problems(steps: &[Step]) -> Vec<(&'static str, &str)> {
    let findings = steps.iter().flat_map(|step| &step.findings);
    let problems = findings.filter(|finding| finding.verdict == Verdict::Problem);
    problems
        .map(|Finding { rule, fix, .. }| (rule.id, fix.as_deref().unwrap_or_default()))
        .collect()
}

#[tokio::test]
async fn a_usable_issuer_has_no_problem() {
    let fetch = ScriptedFetch::new();
    fetch.publish(&TestIssuer::new(ISSUER));
    let steps = examine(&fetch, &settings(ISSUER)).await;
    assert_eq!(problems(&steps), []);
    let titles: Vec<_> = steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(
        titles,
        ["the metadata of issuer[0]", "the keys of issuer[0]"]
    );
    assert!(
        steps
            .iter()
            .all(|step| step.request.is_some() && step.response.is_some()),
        "{steps:#?}"
    );
}

/// The fix names the issuer whose metadata is there: here without the slash at the end.
#[tokio::test]
async fn a_similar_issuer_is_proposed() {
    let fetch = ScriptedFetch::new();
    fetch.publish(&TestIssuer::new("https://auth.example.com/a"));
    let steps = examine(&fetch, &settings("https://auth.example.com/a/")).await;
    let fixes: Vec<_> = steps
        .iter()
        .flat_map(|step| &step.findings)
        .filter_map(|finding| finding.fix.as_deref())
        .collect();
    assert!(
        fixes
            .iter()
            .any(|fix| fix.contains("write issuer[0].issuer = \"https://auth.example.com/a\"")),
        "{fixes:?}"
    );
}

/// The first cause ends the examination: neither keys nor introspection are examined without
/// metadata.
#[tokio::test]
async fn an_issuer_that_cannot_be_reached_has_one_problem() {
    let fetch = ScriptedFetch::new();
    let test_issuer = TestIssuer::new(ISSUER);
    fetch.publish(&test_issuer);
    fetch.fail("https://auth.example.com/.well-known/oauth-authorization-server");
    let steps = examine(&fetch, &settings(ISSUER)).await;
    let problems = problems(&steps);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].0, "connection.reachable");
}

/// Users can sign in at an issuer whose access tokens are opaque.
#[tokio::test]
async fn a_provider_needs_no_readable_access_tokens() {
    const GOOGLE: &str = "https://accounts.google.com";
    let fetch = ScriptedFetch::new();
    fetch.publish(&TestIssuer::new(GOOGLE));
    let settings = settings(GOOGLE);
    let steps = examine(&fetch, &settings).await;
    assert_eq!(problems(&steps).len(), 1, "{steps:#?}");
    let provider = ConfiguredIssuer {
        key: "broker.provider[0]",
        settings: &settings,
        purpose: IssuerPurpose::SignIn,
        resources: Vec::new(),
    };
    let doctor = Doctor::new(Arc::new(fetch)).clock(Arc::new(ManualClock::new()));
    let steps = doctor.examine_issuer(&provider, &mut |_| ()).await;
    assert_eq!(problems(&steps), []);
}
