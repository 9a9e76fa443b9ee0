//! Tests of the chain over partial writes, rotation and restarts.

use std::{fs, path::PathBuf};

use super::*;
use crate::{
    Head,
    verify::{self, Report},
};

const SECRET: &str = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";

fn keys() -> ChainKeys {
    ChainKeys::parse(SECRET).unwrap()
}

fn chained(opening: Opening) -> Fixture {
    Fixture::opened(1 << 20, opening, keys().current().cloned())
}

/// Verifies what was written to the scripted files.
fn verified(fixture: &Fixture) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let script = fixture.sink.0.lock();
    let names: Vec<PathBuf> = (0..script.files.len())
        .map(|number| folder.path().join(number.to_string()))
        .collect();
    for (name, file) in names.iter().zip(&script.files) {
        fs::write(name, file).unwrap();
    }
    let report = verify::files(&names, &keys(), &[]).unwrap();
    assert_eq!(report.first_break, None);
    report
}

/// J4: every record is in the chain, also after partial writes and failures.
#[test]
fn every_record_is_chained() {
    let mut fixture = chained(Opening::default());
    fixture
        .sink
        .add_results((0..500).map(|number| match number % 3 {
            0 => Ok(7),
            1 => Err(io::ErrorKind::Interrupted.into()),
            _ => full(),
        }));
    for _ in 0..600 {
        fixture.record("/mcp", None);
        fixture.writer.write_queued();
    }
    assert_eq!(fixture.finish(), Progress::End);

    let report = verified(&fixture);
    assert_eq!(report.records, 603);
    assert_eq!(report.chains, 1);
    assert!(report.is_stopped);
}

/// J4: the number of lost records is in the chain.
#[test]
fn lost_records_are_in_the_chain() {
    let mut fixture = Fixture::opened(1000, Opening::default(), keys().current().cloned());
    for _ in 0..100 {
        fixture.record("/mcp", None);
    }
    assert_eq!(fixture.finish(), Progress::End);
    let report = verified(&fixture);
    assert_eq!(report.lost + fixture.audit.written(), 100);
    assert!(report.lost > 50, "{}", report.lost);
}

/// J4: files are rotated by size between two records, and the chain continues.
#[test]
fn rotation_continues_the_chain() {
    let mut fixture = chained(Opening::default());
    fixture.sink.0.lock().rotate_at = Some(4000);
    for _ in 0..100 {
        fixture.record("/mcp", None);
    }
    assert_eq!(fixture.finish(), Progress::End);

    let report = verified(&fixture);
    let sizes: Vec<_> = fixture.sink.0.lock().files.iter().map(Vec::len).collect();
    assert!(sizes.len() > 5, "{sizes:?}");
    assert!(
        sizes
            .iter()
            .rev()
            .skip(1)
            .all(|size| (4000..4600).contains(size)),
        "{sizes:?}"
    );
    assert_eq!(report.records as usize, 103 + sizes.len() - 1);

    for file in 1..sizes.len() {
        assert_eq!(fixture.sink.records(file)[0]["event"], "audit.continued");
    }
}

/// J4: a file that cannot be rotated stays in use. The rotation is tried again later.
#[test]
fn a_failed_rotation_loses_nothing() {
    let mut fixture = chained(Opening::default());
    fixture.sink.0.lock().rotate_at = Some(1000);
    fixture.sink.0.lock().cannot_rotate = true;
    for _ in 0..10 {
        fixture.record("/mcp", None);
        fixture.writer.write_queued();
    }
    assert_eq!(fixture.sink.0.lock().files.len(), 1);
    fixture.sink.0.lock().cannot_rotate = false;
    fixture.clock.advance(Duration::from_secs(60));
    fixture.writer.write_queued();
    assert_eq!(fixture.sink.0.lock().files.len(), 2);
    assert_eq!(
        verified(&fixture).records,
        13,
        "with usage and audit.continued"
    );
}

/// J4: a file that another program has renamed within a record is continued. The old file says
/// nothing of its torn line, so the new one does.
#[test]
fn reopening_continues_the_chain() {
    for accepted in [1, 100, 400, 450, 900] {
        let mut fixture = chained(Opening::default());
        fixture.writer.write_queued();
        for _ in 0..3 {
            fixture.record("/mcp", None);
        }
        fixture.sink.add_results([Ok(accepted), full()]);
        fixture.writer.write_queued();
        fixture.audit.0.reopen.store(true, Ordering::Release);
        assert_eq!(fixture.finish(), Progress::End);
        let report = verified(&fixture);
        assert_eq!(report.records, 8, "{accepted}");
        assert_eq!(report.torn, 1, "{accepted}");
    }
}

/// J4: a process continues the chain of the one before, and records a torn line.
#[test]
fn a_restart_continues_the_chain() {
    let head: Head = format!("7:{}", "A".repeat(43)).parse().unwrap();
    let opening = Opening {
        has_records: true,
        torn: Some(3),
        head: Some(head),
        ..Opening::default()
    };
    let mut fixture = chained(opening);
    fixture.writer.write_queued();
    let records = fixture.sink.records(0);
    assert_eq!(records[0]["event"], "audit.started");
    assert_eq!(records[0]["seq"], 8);
    assert_eq!(records[1]["event"], "audit.torn");
    assert_eq!(records[1]["audit.bytes"], 3);

    let mut rotated = chained(Opening {
        head: Some(head),
        ..Opening::default()
    });
    rotated.writer.write_queued();
    let first = &rotated.sink.records(0)[0];
    assert_eq!(first["event"], "audit.continued");
    assert_eq!(first["audit.previous"], head.to_string());
    assert_eq!(verified(&rotated).records, 2);
}

/// J4: a chain that begins because the former one cannot be continued says so.
#[test]
fn a_new_chain_is_recorded() {
    for begins_new_chain in [false, true] {
        let mut fixture = chained(Opening {
            has_records: true,
            begins_new_chain,
            ..Opening::default()
        });
        fixture.writer.write_queued();
        let first = &fixture.sink.records(0)[0];
        assert_eq!(first["event"], "audit.started");
        assert_eq!(
            first["audit.new_chain"] == true,
            begins_new_chain,
            "{first}"
        );
    }
}

/// J4: without a key, records have neither number nor MAC.
#[test]
fn without_a_key_records_are_not_chained() {
    let mut fixture = Fixture::new(1 << 20);
    assert_eq!(fixture.finish(), Progress::End);
    assert!(
        fixture
            .sink
            .records(0)
            .iter()
            .all(|record| record.get("seq").is_none() && record.get("mac").is_none())
    );
}
