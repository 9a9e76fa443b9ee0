//! Audit sinks that are slow, full, missing or rotated: requests never wait for them, and losses
//! are reported.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, read_to_string},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use portcullis_scenarios::{
    Deployment, DeploymentBuilder, Request, Scratch, Signal, audit_records,
};
use serde_json::Value;

async fn deployment(file: &str) -> Deployment {
    builder(file).start().await
}

fn builder(file: &str) -> DeploymentBuilder {
    let tables = format!("[audit]\ntarget = {{ file = \"{file}\" }}\nqueue = 65536");
    Deployment::builder().tables(tables)
}

/// Sends a request of an authenticated caller, which is rejected. Each has a record of its own.
async fn send_rejected(deployment: &Deployment) {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = Request::post(Deployment::ENDPOINT, ping).bearer(&deployment.good_token());
    deployment.send(request).await.assert_no_session();
}

fn events<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| record["event"] == event)
        .collect()
}

/// J4: a full named pipe without a reader delays no request. Records that do not fit in the queue
/// are counted in the trail at their place and at the end, and in the log.
#[tokio::test]
async fn a_pipe_without_a_reader() {
    const REQUESTS: usize = 400;
    let pipe = Scratch::path_for("audit.pipe");
    assert!(
        Command::new("mkfifo")
            .arg(pipe.as_str())
            .status()
            .unwrap()
            .success()
    );
    let deployment = deployment(pipe.as_str()).await;
    deployment
        .portcullis
        .logged("waits for a reader", |line| line["level"] == "WARN")
        .await;
    for _ in 0..REQUESTS {
        send_rejected(&deployment).await;
    }
    deployment
        .portcullis
        .logged("audit records are lost from now on", |line| {
            line["level"] == "WARN"
        })
        .await;

    let path = pipe.path().to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(File::open(path).unwrap()).lines();
        lines
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .collect::<Vec<_>>()
    });
    deployment
        .portcullis
        .logged("audit records were lost", |line| {
            line["audit.lost"].is_u64()
        })
        .await;
    send_rejected(&deployment).await;

    let finished = deployment.portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let records = reading.await.unwrap();
    let lost: u64 = events(&records, "audit.lost")
        .iter()
        .map(|marker| marker["audit.lost"].as_u64().unwrap())
        .sum();
    let decisions = events(&records, "decision").len() as u64;
    assert!(lost > 0, "{lost} lost, {decisions} kept");
    assert!(decisions > 1, "{lost} lost, {decisions} kept");
    assert_eq!(decisions + lost, REQUESTS as u64 + 1);

    let last = records.last().unwrap();
    assert_eq!(last["event"], "audit.stopped");
    assert_eq!(last["audit.records"], decisions);
    assert_eq!(last["audit.lost"], lost);

    let used: u64 = events(&records, "usage")
        .iter()
        .map(|row| row["usage.requests"].as_u64().unwrap())
        .sum();
    assert_eq!(used, REQUESTS as u64 + 1, "lost records count as usage");
    let line = finished
        .stderr
        .lines()
        .find(|line| line.contains("the audit trail is complete"))
        .expect("a log line");
    assert!(line.contains(&format!("\"audit.lost\":{lost}")), "{line}");
}

/// J4: a full disk delays no request. The log reports unwritten records, and the shutdown waits no
/// longer than its timeout.
#[tokio::test]
async fn a_full_disk() {
    let deployment = builder("/dev/full")
        .top("shutdown_timeout = \"2s\"")
        .start()
        .await;
    for _ in 0..10 {
        send_rejected(&deployment).await;
    }
    deployment
        .portcullis
        .logged("audit records cannot be written", |line| {
            line["level"] == "ERROR"
        })
        .await;
    send_rejected(&deployment).await;
    let finished = deployment.portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let line = finished
        .stderr
        .lines()
        .find(|line| line.contains("left unwritten"))
        .expect("a log line");
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"], "ERROR", "{line}");
    assert_eq!(line["audit.unwritten"], 11, "{line}");
}

/// J4: a file with mode 0600 is reopened at SIGHUP, without a lost or split record, and continues
/// after a restart.
#[tokio::test]
async fn rotation() {
    let file = Scratch::path_for("audit.jsonl");
    let rotated = Scratch::path_for("audit.jsonl.1");
    let first = deployment(file.as_str()).await;
    let decisions =
        async |path: &Path| audit_records(path, |record| record["event"] == "decision").await;
    send_rejected(&first).await;
    let before = decisions(file.path()).await;
    assert_eq!(events(&before, "audit.started").len(), 1);
    assert_eq!(
        fs::metadata(file.path()).unwrap().permissions().mode() & 0o777,
        0o600
    );

    fs::rename(file.path(), rotated.path()).unwrap();
    first.portcullis.signal(Signal::HUP);
    first
        .portcullis
        .logged("reopened", |line| line["level"] == "INFO")
        .await;
    send_rejected(&first).await;
    let after = decisions(file.path()).await;
    assert_eq!(events(&before, "decision").len(), 1);
    assert_eq!(events(&after, "decision").len(), 1);
    assert_ne!(
        events(&before, "decision")[0]["request.id"],
        events(&after, "decision")[0]["request.id"]
    );
    assert_eq!(first.portcullis.stop().await.code, Some(0));
    assert_eq!(
        fs::read_to_string(rotated.path()).unwrap().lines().count(),
        before.len(),
        "no further records"
    );

    // An incomplete line is left by a crash.
    let mut torn = fs::read_to_string(file.path()).unwrap();
    torn.push_str("{\"timestamp\":");
    fs::write(file.path(), &torn).unwrap();
    let second = deployment(file.as_str()).await;
    assert_eq!(second.portcullis.stop().await.code, Some(0));

    let text = fs::read_to_string(file.path()).unwrap();
    let more: Vec<_> = text
        .strip_prefix(&torn)
        .expect("the trail continues")
        .lines()
        .collect();
    assert!(more[0].is_empty(), "{more:?}");
    assert!(more[1].contains("audit.started"), "{more:?}");
    assert!(more[2].contains("audit.torn"), "{more:?}");
    assert!(more[2].contains("\"audit.bytes\":13"), "{more:?}");
}

/// J4: if the folder of the file was removed, records are still written to the open file.
#[tokio::test]
async fn a_removed_folder() {
    let folder = Scratch::folder("audit");
    let file = folder.path().join("audit.jsonl");
    let deployment = deployment(file.to_str().unwrap()).await;
    let open = File::open(file).unwrap();
    fs::remove_dir_all(folder.path()).unwrap();
    deployment.portcullis.signal(Signal::HUP);
    deployment
        .portcullis
        .logged("cannot be reopened", |line| line["level"] == "ERROR")
        .await;
    send_rejected(&deployment).await;
    let finished = deployment.portcullis.stop().await;
    assert!(
        finished.stderr.contains("the audit trail is complete"),
        "{}",
        finished.stderr
    );
    let records = read_to_string(open).unwrap();
    assert_eq!(
        records.matches("\"event\":\"decision\"").count(),
        1,
        "{records}"
    );
}
