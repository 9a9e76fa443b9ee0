//! Floods of rejected requests: they fill neither the log nor the audit trail, and do not lock out
//! others.

use portcullis_scenarios::{
    Administration, Connection, Deployment, Finished, INITIALIZE, Portcullis, Request, Scratch,
};
use serde_json::Value;

/// Fewer than the default of `limits.rejected_per_address`.
const FLOOD: u64 = 3000;
const OF_CALLER: usize = 40;
const CODE: &str = "token.malformed";

fn parsed(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Returns the number of entries about one rejection of the flood, and the counts of the others.
fn listed_and_counted(entries: &[Value]) -> (usize, Vec<u64>) {
    let of_flood = || entries.iter().filter(|entry| entry["deny.code"] == CODE);
    let counted = of_flood().filter_map(|entry| entry["count"].as_u64());
    let listed = of_flood().filter(|entry| entry["request.id"].is_string());
    (listed.count(), counted.collect())
}

/// J1, J4: thousands of malformed tokens from one address have the first lines and records one by
/// one, and then one a second with their number. Every rejection of an authenticated caller has its
/// own. Metrics count all, and the trail verifies.
#[tokio::test]
async fn malformed_tokens() {
    let trail = Scratch::path_for("audit.jsonl");
    let key = Scratch::file("audit-key", "an-audit-key-of-more-than-32-characters");
    let administration = Administration::default();
    let tables = format!(
        "[audit]\ntarget = {{ file = \"{}\" }}\nkey = {{ file = \"{}\" }}",
        trail.as_str(),
        key.as_str()
    );
    let deployment = administration
        .of(Deployment::builder(), &tables)
        .start()
        .await;
    let token = deployment.good_token();
    let mut attacker = Connection::open(deployment.portcullis.address()).await;
    let malformed = Request::post(Deployment::ENDPOINT, "").bearer("x.y.z");
    let without_session = Request::post(
        Deployment::ENDPOINT,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    )
    .bearer(&token);
    for number in 0..FLOOD {
        assert_eq!(attacker.send(&malformed).await.status, 401);
        if number < OF_CALLER as u64 {
            assert_eq!(attacker.send(&without_session).await.status, 400);
        }
    }
    let metrics = administration.metrics(Administration::TOKEN).await;
    let sample = metrics
        .lines()
        .find(|line| line.contains(&format!("code=\"{CODE}\"")))
        .unwrap_or_else(|| panic!("{metrics}"));
    assert!(sample.ends_with(&format!(" {FLOOD}")), "{sample}");

    let Deployment { portcullis, .. } = deployment;
    let log = portcullis.stop().await.stderr;
    let records = std::fs::read_to_string(trail.path()).unwrap();
    for (place, text) in [("log", &log), ("trail", &records)] {
        let entries = parsed(text);
        let (listed, counted) = listed_and_counted(&entries);
        assert!((10..100).contains(&listed), "{place}: {listed}");
        assert!(counted.len() < 60, "{place}: {counted:?}");
        let all = listed as u64 + counted.iter().sum::<u64>();
        assert_eq!(all, FLOOD, "{place}: {counted:?}");
        let of_caller = entries
            .iter()
            .filter(|entry| entry["principal.subject"].is_string() && entry["http.status"] == 400);
        assert_eq!(of_caller.count(), OF_CALLER, "{place}");
    }

    let verify = [
        "audit",
        "verify",
        trail.as_str(),
        "--key-file",
        key.as_str(),
    ];
    let Finished { code, stdout, .. } = Portcullis::run(&verify).await;
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("rejections have no records of their own"),
        "{stdout}"
    );
    let with_json = [&verify[..], &["--json"]].concat();
    let report: Value = serde_json::from_str(&Portcullis::run(&with_json).await.stdout).unwrap();
    let (listed, _) = listed_and_counted(&parsed(&records));
    assert_eq!(report["summed"], FLOOD - listed as u64, "{report}");
}

/// J5: an address that sends many requests without a valid token gets 429. Its requests with one
/// are served, also with a new one.
#[tokio::test]
async fn rejections_of_one_address() {
    let deployment = Deployment::builder()
        .tables("[limits]\nrejected_per_address = { requests = 5, per = \"1h\" }")
        .start()
        .await;
    let without_token = Request::post(Deployment::ENDPOINT, INITIALIZE);
    for _ in 0..5 {
        deployment
            .send(without_token.clone())
            .await
            .assert_unauthorized();
    }
    let limited = deployment.send(without_token).await;
    assert_eq!(limited.status, 429, "{limited:?}");
    assert!(limited.header("retry-after").is_some(), "{limited:?}");
    deployment
        .portcullis
        .assert_denied(&limited, "limit.rejected")
        .await;
    deployment
        .assert_accepted("a new token", &deployment.good_token())
        .await;
}
