//! Providers are examined as the broker uses them.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails where something is missing"
)]

use portcullis_config::{SecretSource, plan::Plan};
use portcullis_devidp::{ClientSettings, DevIdp, DevIdpSettings, GrantType, Provider};
use portcullis_discovery::Product;
use portcullis_doctor::{Report, Verdict};
use portcullis_metadata::Secret;
use portcullis_testkit::ReservedPort;

use crate::online_check::{Part, examine};

const SECRET: &str = "the secret of the application";
const REDIRECT_URI: &str = "http://127.0.0.1:3000/oauth/callback/keycloak";

/// Starts a provider with an application of this server. Returns its issuer.
async fn provider() -> String {
    let mut application = ClientSettings::with_secret("broker", Secret::new(SECRET));
    application.redirect_uris = vec![REDIRECT_URI.to_owned()];
    application.grant_types = vec![GrantType::AuthorizationCode, GrantType::RefreshToken];
    let idp = DevIdp::bind(DevIdpSettings {
        provider: Some(Provider::Keycloak),
        clients: vec![application],
        ..DevIdpSettings::default()
    });
    let idp = idp.await.unwrap();
    let issuer = idp.issuer().as_str().to_owned();
    tokio::spawn(idp.serve(std::future::pending()));
    issuer
}

/// Examines the provider with this issuer and this secret.
async fn examined(issuer: &str, secret: &str) -> Report {
    let text = format!(
        r#"
        base_url = "http://127.0.0.1:3000"
        state_dir = "off"
        [broker]
        [[broker.provider]]
        kind = "keycloak"
        issuer = "{issuer}"
        client_id = "broker"
        client_secret = {{ env = "UNUSED" }}
        [[resource]]
        endpoint = "/mcp"
        upstream = "demo"
        "#
    );
    let mut config = portcullis_config::from_text(&text).unwrap();
    let broker = config.broker.as_mut().unwrap();
    broker.provider[0].client_secret = SecretSource::Given(Secret::new(secret));
    let plan = Plan::new(&config).unwrap();
    examine(
        &[Part::Providers],
        &plan,
        "http://127.0.0.1:3000",
        Product::default(),
        &mut |_| (),
        &mut |_| (),
    )
    .await
}

fn problems(report: &Report) -> Vec<&'static str> {
    let problems = report
        .findings()
        .filter(|finding| finding.verdict == Verdict::Problem);
    problems.map(|finding| finding.rule.id).collect()
}

/// The credentials are tested without a user, and what to register is said.
#[tokio::test]
async fn the_application_is_tested() {
    let issuer = provider().await;
    let report = examined(&issuer, SECRET).await;
    assert_eq!(problems(&report), [""; 0], "{report:#?}");
    let titles: Vec<&str> = report.steps.iter().map(|step| &*step.title).collect();
    assert_eq!(
        titles[titles.len() - 2..],
        [
            "the keys of broker.provider[0]",
            "the application of broker.provider[0]"
        ]
    );
    for (rule, verdict, part) in [
        ("provider.application", Verdict::Met, "made-up code"),
        ("provider.redirect_uri", Verdict::Note, REDIRECT_URI),
        (
            "provider.logout_uri",
            Verdict::Note,
            "http://127.0.0.1:3000/oauth/logout/keycloak",
        ),
    ] {
        assert!(
            report.findings().any(|finding| finding.rule.id == rule
                && finding.verdict == verdict
                && finding.text.contains(part)),
            "{rule}: {report:#?}"
        );
    }

    let report = examined(&issuer, "another secret").await;
    assert_eq!(problems(&report), ["provider.application"], "{report:#?}");
    assert!(!format!("{report:?}").contains("another secret"));
}

/// A provider that is not there has one problem, and the application is not tested.
#[tokio::test]
async fn an_unreachable_provider_has_one_problem() {
    let closed = ReservedPort::new();
    let report = examined(&format!("http://{}/realms/dev", closed.address()), SECRET).await;
    assert_eq!(problems(&report), ["connection.reachable"], "{report:#?}");
    let has_application = report
        .steps
        .iter()
        .any(|step| step.title.contains("application"));
    assert!(!has_application, "{report:#?}");
}
