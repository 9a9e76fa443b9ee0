//! Web pages, redirects, malformed URLs and providers outside the profile.

use super::*;

const OPENID: &str = "https://auth.example.com/.well-known/openid-configuration";

fn html(status: u16) -> FetchResponse {
    let mut page = response(status, &[CORS], &Value::Null);
    page.headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    page.body = "<!doctype html><title>My App</title>".into();
    page
}

fn finding<'a>(report: &'a Report, rule: &str) -> &'a Finding {
    report
        .findings()
        .find(|finding| finding.rule.id == rule && finding.verdict >= Verdict::Warning)
        .unwrap()
}

/// A web page at the first URL of an authorization server is the cause, and not the 404 of the last
/// URL. With a document at a later URL, it is a warning.
#[tokio::test]
async fn a_web_page_instead_of_metadata_is_reported() {
    let fixture = Fixture::new();
    fixture
        .fetch
        .respond(fixture.test_issuer.metadata_url(), |_| Ok(html(200)));
    fixture.fetch.serve(OPENID, 404, "");
    let report = fixture.examine().await;
    let cause = report.first_problem().unwrap();
    assert_eq!(cause.rule.id, "issuer.found");
    assert!(
        cause
            .text
            .contains("200 OK, a web page with the title \"My App\""),
        "{cause:?}"
    );
    assert!(
        cause.text.contains(&format!("{OPENID} (404 Not Found)")),
        "{cause:?}"
    );
    assert_eq!(
        cause.url.as_deref(),
        Some(fixture.test_issuer.metadata_url().as_str())
    );

    fixture
        .fetch
        .serve(OPENID, 200, fixture.test_issuer.metadata_json());
    let report = fixture.examine().await;
    assert_eq!(report.first_problem(), None);
    assert!(finding(&report, "issuer.found").text.contains("a web page"));
}

#[tokio::test]
async fn a_web_page_instead_of_the_resources_metadata_is_a_warning() {
    let fixture = Fixture::new();
    fixture.challenge(401, "Bearer");
    fixture.fetch.respond(NAMED, |_| Ok(html(200)));
    fixture.fetch.serve(
        ROOT,
        200,
        json!({"resource": RESOURCE, "authorization_servers": [ISSUER]}).to_string(),
    );
    let report = fixture.examine().await;
    assert_eq!(report.first_problem(), None);
    assert_eq!(finding(&report, "resource.found").verdict, Verdict::Warning);
    fixture.fetch.respond(ROOT, |_| Ok(html(200)));
    assert_eq!(fixture.first_problem().await, "resource.found");
}

/// If a search ends at an unreachable URL, the step also shows what the URLs before it answered.
#[tokio::test]
async fn the_attempts_before_an_unreachable_url_are_shown() {
    let fixture = Fixture::new();
    fixture
        .fetch
        .serve(fixture.test_issuer.metadata_url(), 403, "");
    fixture
        .fetch
        .respond(OPENID, |_| Err(portcullis_discovery::FetchError::Timeout));
    let report = fixture.examine().await;
    assert_eq!(
        report.first_problem().unwrap().rule.id,
        "connection.bounded"
    );
    let earlier = format!(
        "no metadata document at {} (403 Forbidden)",
        fixture.test_issuer.metadata_url()
    );
    assert!(
        report
            .findings()
            .any(|finding| finding.text.contains(&earlier)),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_redirect_shows_its_target() {
    for (location, fix) in [
        (
            "https://sso.example/login?state=hush",
            "the URL that it redirects to",
        ),
        ("http://mcp.example.com/mcp/", "X-Forwarded-Proto"),
    ] {
        let fixture = Fixture::new();
        fixture.fetch.respond(RESOURCE, move |_| {
            Ok(response(302, &[(header::LOCATION, location)], &Value::Null))
        });
        let report = fixture.examine().await;
        let cause = report.first_problem().unwrap();
        let shown = location.split('?').next().unwrap();
        assert!(
            cause.text.contains(&format!("a redirect to {shown}")),
            "{cause:?}"
        );
        assert!(cause.fix.as_ref().unwrap().contains(fix), "{cause:?}");
        assert!(!serde_json::to_string(&report).unwrap().contains("hush"));
    }
}

#[tokio::test]
async fn a_firewall_is_recognized() {
    let fixture = Fixture::new();
    fixture.fetch.respond(RESOURCE, |_| {
        let mut page = html(403);
        page.headers
            .insert("cf-mitigated", HeaderValue::from_static("challenge"));
        Ok(page)
    });
    let report = fixture.examine().await;
    let cause = report.first_problem().unwrap();
    assert!(
        cause.text.contains("a page of a firewall (Cloudflare)"),
        "{cause:?}"
    );
    assert!(
        cause
            .fix
            .as_ref()
            .unwrap()
            .contains("let the firewall pass"),
        "{cause:?}"
    );
}

#[tokio::test]
async fn repaired_urls_and_missing_public_clients_are_warnings() {
    let fixture = Fixture::new();
    fixture.issuer(json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    let report = fixture.examine().await;
    assert_eq!(report.first_problem(), None);
    assert_eq!(
        finding(&report, "issuer.public_clients").verdict,
        Verdict::Warning
    );

    // Portcullis rejects the document, and other clients repair the URL.
    let url = "https:/me:hunter2@auth.example.com/token?key=hunter2";
    fixture.issuer(json!({"token_endpoint": url}));
    let report = fixture.examine().await;
    assert_eq!(report.first_problem().unwrap().rule.id, "issuer.document");
    let text = &finding(&report, "url.malformed").text;
    assert!(
        text.contains("`token_endpoint` is malformed: https:/…@auth.example.com/token?…"),
        "{text}"
    );
    assert!(!format!("{report:?}").contains("hunter2"), "{report:?}");
}

/// A page in a browser also needs the authorization server's metadata and its token endpoint.
#[tokio::test]
async fn cors_is_checked_at_the_authorization_server() {
    let fixture = Fixture::new();
    fixture.fetch.serve(
        fixture.test_issuer.metadata_url(),
        200,
        fixture.test_issuer.metadata_json(),
    );
    fixture.fetch.serve(
        fixture.test_issuer.endpoint("token"),
        401,
        r#"{"error":"invalid_client"}"#,
    );
    let report = fixture.examine().await;
    let warned = report.steps.iter().filter(|step| {
        step.findings
            .iter()
            .any(|it| it.verdict == Verdict::Warning)
    });
    let titles: Vec<_> = warned.map(|step| step.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "a web page reads the authorization server's metadata",
            "a web page uses the token endpoint"
        ]
    );
}

/// A provider that is known to support PKCE, and a person who vouches for it.
#[tokio::test]
async fn pkce_may_be_assumed() {
    let fixture = Fixture::new();
    fixture.issuer(json!({"code_challenge_methods_supported": null}));
    assert_eq!(fixture.first_problem().await, "issuer.pkce");
    let doctor = Doctor::new(Arc::new(fixture.fetch.clone()))
        .clock(Arc::new(ManualClock::new()))
        .assume_pkce(true);
    let examine = async || {
        doctor
            .examine(&Url::parse(RESOURCE).unwrap(), None, &mut |_| ())
            .await
    };
    assert_eq!(examine().await.first_problem(), None);
    fixture.issuer(json!({"code_challenge_methods_supported": ["plain"]}));
    assert_eq!(
        examine().await.first_problem().unwrap().rule.id,
        "issuer.pkce"
    );
}
