//! Missing, malformed and endless files.

use super::*;

/// J9: a CA file without an end is not read to its end.
#[tokio::test]
async fn endless_ca_files() {
    let issuer = with("", "ca_file = \"/dev/zero\"", "");
    assert_neither_serves_nor_checks("of an issuer", &issuer, &["issuer[0]", "ca_file", "4 MiB"])
        .await;
    let traces = with(
        "",
        "",
        "[traces]\nendpoint = \"http://127.0.0.1:1\"\nca_file = \"/dev/zero\"",
    );
    assert_neither_serves_nor_checks("of traces", &traces, &["traces.ca_file", "4 MiB"]).await;
}

/// J4: an invalid audit trail is rejected before anything is served.
#[tokio::test]
async fn audit_trails() {
    for (case, audit, words) in [
        (
            "no target",
            "queue = 65536",
            &["audit.target", "missing"][..],
        ),
        (
            "an unknown target",
            "target = \"stderr\"",
            &[
                "audit.target has an unknown value",
                "did you mean `stdout`?",
            ],
        ),
        (
            "a folder that is missing",
            "target = { file = \"/nowhere/audit.jsonl\" }",
            &["audit.target", "/nowhere/audit.jsonl", "folder that exists"],
        ),
        (
            "no file",
            "target = { file = \"\" }",
            &["audit.target", "has an empty path"],
        ),
        (
            "a folder",
            "target = { file = \"/\" }",
            &["audit.target", "/ cannot be opened"],
        ),
        (
            "too small a queue",
            "target = \"stdout\"\nqueue = 1",
            &["audit.queue = 1", "65536"],
        ),
        (
            "no rows",
            "target = \"stdout\"\nusage_rows = 0",
            &["audit.usage_rows = 0"],
        ),
        (
            "an interval",
            "target = \"stdout\"\nusage_interval = \"48h\"",
            &["audit.usage_interval", "24h"],
        ),
        (
            "a key",
            "target = \"stdout\"\nfile = \"x\"",
            &["audit.file", "write target = { file = "],
        ),
    ] {
        assert_neither_serves_nor_checks(case, &with("", "", &format!("[audit]\n{audit}")), words)
            .await;
    }
}

/// A missing file, and one that is not TOML.
#[tokio::test]
async fn files() {
    for command in ["serve", "check"] {
        let finished = Portcullis::run(&[command, "--config", "/nowhere/portcullis.toml"]).await;
        assert_rejected(
            "missing",
            &finished,
            &["/nowhere/portcullis.toml", "does not exist", "--config"],
        );
    }
    assert_neither_serves_nor_checks("not TOML", "listen = ", &["bad.toml:1: listen"]).await;

    let empty = Scratch::file("empty.toml", "");
    for command in ["serve", "check"] {
        let finished = Portcullis::run(&[command, "--config", empty.as_str()]).await;
        let lines: Vec<&str> = finished.stderr.lines().collect();
        let starts = ["base_url is missing", "resource is missing"]
            .map(|text| format!("error: {}:1: {text}", empty.as_str()));
        let has = |start: &String| lines.iter().any(|line| line.starts_with(start));
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(starts.iter().all(has), "{lines:#?}");
    }
}
