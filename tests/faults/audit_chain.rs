//! The chain of audit records under crashes, rotation and manipulation, and
//! `portcullis audit verify`.

use std::{fs, path::Path};

use portcullis_scenarios::{
    Deployment, Finished, Portcullis, Request, Scratch, Signal, audit_records,
};
use serde_json::{Value, json};

const KEY: &str = "an-audit-key-of-more-than-32-characters";

/// A folder of audit files, and the key.
struct Trail {
    folder: Scratch,
    key: Scratch,
}

impl Trail {
    fn new() -> Self {
        Self {
            folder: Scratch::folder("audit"),
            key: Scratch::file("audit-key", KEY),
        }
    }

    fn file(&self) -> String {
        format!("{}/audit.jsonl", self.folder.as_str())
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    async fn deployment(&self, settings: &str) -> Deployment {
        let tables = format!(
            "[audit]\ntarget = {{ file = \"{}\" }}\nkey = {{ file = \"{}\" }}\n{settings}",
            self.file(),
            self.key.as_str()
        );
        Deployment::builder().tables(tables).start().await
    }

    /// The files, the newest first.
    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut names: Vec<_> = names
            .map(|name| name.to_str().unwrap().to_owned())
            .collect();
        names.sort_unstable();
        names.reverse();
        names
    }

    async fn verify(&self, more: &[&str]) -> (Option<i32>, Value) {
        let files = self.files();
        let mut arguments = vec!["audit", "verify", "--json", "--key-file", self.key.as_str()];
        arguments.extend(files.iter().map(String::as_str));
        arguments.extend(more);
        let Finished {
            code,
            stdout,
            stderr,
        } = Portcullis::run(&arguments).await;
        (
            code,
            serde_json::from_str(&stdout)
                .unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}")),
        )
    }
}

/// Sends requests of an authenticated caller, which are rejected. Each has a record of its own.
async fn send(deployment: &Deployment, requests: usize) {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = Request::post(Deployment::ENDPOINT, ping).bearer(&deployment.good_token());
    for _ in 0..requests {
        deployment.send(request.clone()).await.assert_no_session();
    }
}

async fn decided(file: &str) {
    audit_records(file, |record| record["event"] == "decision").await;
}

/// J4: the chain continues after a crash within a record, a restart, a rotation by another program
/// and a reload.
#[tokio::test]
async fn continues() {
    let trail = Trail::new();
    let deployment = trail.deployment("").await;
    send(&deployment, 3).await;
    decided(&trail.file()).await;
    deployment.portcullis.signal(Signal::KILL);
    drop(deployment.portcullis.wait().await);
    let cut = trail.text();
    fs::write(trail.file(), &cut[..cut.len() - 20]).unwrap();

    let deployment = trail.deployment("").await;
    deployment.portcullis.signal(Signal::HUP);
    deployment
        .portcullis
        .logged("the audit trail was reopened", |_| true)
        .await;
    send(&deployment, 1).await;
    fs::rename(trail.file(), format!("{}.1", trail.file())).unwrap();
    deployment.portcullis.signal(Signal::HUP);
    audit_records(trail.file(), |record| record["event"] == "audit.continued").await;
    send(&deployment, 1).await;
    decided(&trail.file()).await;
    let finished = deployment.portcullis.stop().await;
    let head: Value = finished
        .stderr
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["audit.head"].is_string())
        .expect("the head in the log");
    let (code, report) = trail
        .verify(&["--head", head["audit.head"].as_str().unwrap()])
        .await;
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["torn"], 1, "{report}");
    assert_eq!(report["chains"], 1, "{report}");
    assert_eq!(report["is_stopped"], true, "{report}");
    assert_eq!(report["last"]["head"], head["audit.head"]);
    assert!(
        trail
            .text()
            .lines()
            .next()
            .unwrap()
            .contains("audit.continued"),
        "{}",
        trail.text()
    );
}

/// J4: without the key, no record can be changed, inserted, removed or moved, and no file or end
/// removed, unnoticed.
#[tokio::test]
async fn shows_manipulation() {
    let trail = Trail::new();
    let deployment = trail.deployment("").await;
    send(&deployment, 5).await;
    let finished = deployment.portcullis.stop().await;
    let text = trail.text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let head = format!("{}:{}", last["seq"], last["mac"].as_str().unwrap());
    assert!(finished.stderr.contains(&head), "{}", finished.stderr);

    let changed = lines[2].replace("\"http.status\":400", "\"http.status\":200");
    for (code, line, changed) in [
        (
            "altered",
            3,
            [&lines[..2], &[&changed], &lines[3..]].concat(),
        ),
        ("missing", 3, [&lines[..2], &lines[3..]].concat()),
        (
            "not_chained",
            2,
            [&lines[..1], &["{\"event\":\"decision\"}\n"], &lines[1..]].concat(),
        ),
        (
            "missing",
            2,
            [&lines[..1], &lines[2..3], &lines[1..2], &lines[3..]].concat(),
        ),
        ("order", 4, [&lines[..3], &lines[2..]].concat()),
        ("start_missing", 1, lines[1..].to_vec()),
        (
            "truncated",
            lines.len() - 1,
            lines[..lines.len() - 1].to_vec(),
        ),
    ] {
        fs::write(trail.file(), changed.concat()).unwrap();
        let (exit, report) = trail.verify(&["--head", &head]).await;
        assert_eq!(exit, Some(1), "{report}");
        assert_eq!(report["ok"], false, "{report}");
        let found = &report["break"];
        assert_eq!(found["code"], code, "{report}");
        assert_eq!(found["line"], json!(line), "{report}");
        assert_eq!(found["file"], trail.file(), "{report}");
    }
    fs::write(trail.file(), text).unwrap();
    let other = Scratch::file("audit-key", &"x".repeat(44));
    let wrong = Portcullis::run(&[
        "audit",
        "verify",
        &trail.file(),
        "--key-file",
        other.as_str(),
    ])
    .await;
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong
            .stdout
            .contains("audit.jsonl:1: record 1 was altered, or was written with another key"),
        "{wrong:?}"
    );
}

/// J4: the file is rotated by size, the names sort by time, and only as many are kept as
/// configured.
#[tokio::test]
async fn rotates_by_size() {
    let trail = Trail::new();
    let deployment = trail.deployment("rotate_size = 65536\nkeep = 2").await;
    send(&deployment, 700).await;
    let finished = deployment.portcullis.stop().await;
    assert!(
        finished.stderr.contains("an old audit file was removed"),
        "{}",
        finished.stderr
    );

    let files = trail.files();
    assert_eq!(files.len(), 3, "{files:?}");
    for rotated in &files[..2] {
        let size = fs::metadata(rotated).unwrap().len();
        assert!((65536..66600).contains(&size), "{rotated}: {size}");
    }
    let (code, report) = trail.verify(&[]).await;
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["ok"], true, "{report}");
    assert!(
        report["first"]["seq"].as_u64().unwrap() > 1,
        "the oldest file was removed: {report}"
    );
    assert_eq!(report["files"].as_array().unwrap().len(), 3);

    fs::remove_file(&files[0]).unwrap();
    let (code, report) = trail.verify(&[]).await;
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(report["break"]["code"], "missing", "{report}");
}

/// J4: without `audit.key`, the key is generated in the state directory, where `audit verify` finds
/// it. Without a state directory, the log says that records are not chained.
#[tokio::test]
async fn the_key_is_generated() {
    let state = Scratch::path_for("state");
    let trail = Trail::new();
    let audit = format!("[audit]\ntarget = {{ file = \"{}\" }}", trail.file());
    let top = format!("state_dir = \"{}\"", state.as_str());
    let deployment = Deployment::builder().top(&top).tables(&audit).start().await;
    send(&deployment, 1).await;
    deployment.portcullis.stop().await;
    let configuration = Scratch::file(
        "portcullis.toml",
        &format!(
            "base_url = \"http://127.0.0.1:1\"\n{top}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n"
        ),
    );
    let verify = [
        "audit",
        "verify",
        &trail.file(),
        "--config",
        configuration.as_str(),
    ];
    let verified = Portcullis::run(&verify).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(
        verified.stdout.contains("the chain is intact"),
        "{verified:?}"
    );
    assert!(Path::new(state.as_str()).join("audit-key").is_file());

    let deployment = Deployment::builder()
        .top("state_dir = \"off\"")
        .tables(&audit)
        .start()
        .await;
    deployment
        .portcullis
        .logged("audit records are not chained", |line| {
            line["level"] == "WARN"
        })
        .await;
    deployment.portcullis.stop().await;
    let verified = Portcullis::run(&verify).await;
    assert_eq!(
        verified.code,
        Some(1),
        "records without a chain: {verified:?}"
    );
}
