//! Changed, missing, reordered and truncated records are found.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::chain::Chain;

const SECRET: &str = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
const OTHER_SECRET: &str = "llllllllllllllllllllllllllllllll";

fn keys(text: &str) -> ChainKeys {
    ChainKeys::parse(text).unwrap()
}

fn record(event: &str, number: usize) -> String {
    format!(
        r#"{{"timestamp":"2027-01-15T08:00:0{}.000Z","event":"{event}","n":{number}}}"#,
        number % 10
    )
}

/// Files with the records of one chain.
struct Trail {
    folder: TempDir,
    chain: Chain,
    files: Vec<PathBuf>,
}

impl Trail {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            chain: Self::chain(SECRET, Head::default()),
            files: Vec::new(),
        }
    }

    fn chain(secret: &str, head: Head) -> Chain {
        Chain::new(keys(secret).current().cloned(), head)
    }

    /// A trail of two files with six records: 1 to 3 and 4 to 6.
    fn of_two_files() -> Self {
        let mut trail = Self::new();
        trail.file(
            "b",
            &[
                record("audit.started", 1),
                record("decision", 2),
                record("decision", 3),
            ],
        );
        let continued = trail.continued();
        trail.file(
            "a",
            &[continued, record("decision", 5), record("audit.stopped", 6)],
        );
        trail
    }

    fn continued(&self) -> String {
        let head = self.chain.head();
        format!(
            r#"{{"timestamp":"2027-01-15T08:00:04.000Z","event":"audit.continued","audit.previous":"{head}"}}"#
        )
    }

    fn lines(&mut self, records: &[String]) -> String {
        let mut out = Vec::new();
        records.iter().for_each(|record| {
            self.chain
                .append(format!("{record}\n").as_bytes(), &mut out)
        });
        String::from_utf8(out).unwrap()
    }

    fn file(&mut self, name: &str, records: &[String]) {
        let lines = self.lines(records);
        self.write(name, &lines);
    }

    fn write(&mut self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        if !self.files.contains(&path) {
            self.files.push(path);
        }
    }

    fn edit(&self, file: usize, edit: impl FnOnce(&mut Vec<String>)) {
        let mut lines: Vec<_> = fs::read_to_string(&self.files[file])
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        edit(&mut lines);
        fs::write(
            &self.files[file],
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        )
        .unwrap();
    }

    fn verify(&self) -> Report {
        files(&self.files, &keys(SECRET), &[]).unwrap()
    }

    fn broken(&self) -> Break {
        self.verify().first_break.expect("a break")
    }
}

/// J4: an intact trail is verified with its files in any order, and each file also without the
/// files before it.
#[test]
fn an_intact_trail() {
    let mut trail = Trail::of_two_files();
    for _ in 0..2 {
        let report = trail.verify();
        assert_eq!(report.first_break, None);
        assert_eq!(report.records, 6);
        assert_eq!(report.chains, 1);
        assert!(report.is_stopped);
        assert_eq!(report.first.unwrap().seq, 1);
        assert_eq!(report.last.unwrap().seq, 6);
        assert!(report.files[0].ends_with("b"));
        trail.files.reverse();
    }
    let last = files(&trail.files[1..], &keys(SECRET), &[]).unwrap();
    assert_eq!(last.first_break, None);
    assert_eq!(last.records, 3);
    assert_eq!(last.first.unwrap().seq, 4);
}

/// Asserts the first break after an edit of one of the two files, at a line of one of them.
#[track_caller]
fn assert_broken(
    edit: (usize, fn(&mut Vec<String>)),
    (file, line): (usize, u64),
    expected: BreakCode,
    expected_message: &str,
) {
    let trail = Trail::of_two_files();
    let (edited, edit) = edit;
    trail.edit(edited, edit);
    let Break {
        code,
        message,
        file: found_file,
        line: found_line,
    } = trail.broken();
    assert_eq!(code, expected, "{message}");
    assert_eq!(found_file.as_ref(), Some(&trail.files[file]), "{message}");
    assert_eq!(found_line, Some(line), "{message}");
    assert!(message.contains(expected_message), "{message}");
}

/// J4: the first break is named with file and line.
#[test]
fn manipulations_are_found() {
    use BreakCode::{Altered, Missing, NotChained, Order};

    let change: fn(&mut Vec<String>) = |lines| lines[1] = lines[1].replace("\"n\":2", "\"n\":7");
    assert_broken((0, change), (0, 2), Altered, "record 2 was altered");

    assert_broken(
        (0, |lines| drop(lines.remove(1))),
        (0, 2),
        Missing,
        "record 2 is missing",
    );
    assert_broken(
        (0, |lines| lines.truncate(1)),
        (1, 1),
        Missing,
        "the records 2 to 3 are missing",
    );
    assert_broken(
        (1, |lines| drop(lines.remove(0))),
        (1, 1),
        Missing,
        "record 4 is missing",
    );
    assert_broken(
        (0, |lines| lines.swap(1, 2)),
        (0, 2),
        Missing,
        "record 2 is missing",
    );
    assert_broken(
        (0, |lines| lines.push(lines[1].clone())),
        (0, 4),
        Order,
        "record 2 follows record 3",
    );

    let insert: fn(&mut Vec<String>) =
        |lines| lines.insert(1, "{\"event\":\"decision\"}".to_owned());
    assert_broken((0, insert), (0, 2), NotChained, "not a record");
    assert_broken(
        (0, |lines| lines[2].truncate(20)),
        (0, 3),
        NotChained,
        "not a record",
    );
    assert_broken(
        (0, |lines| lines.insert(0, String::new())),
        (0, 1),
        NotChained,
        "not a record",
    );
}

/// J4: a missing file is found, and so is a file without its beginning.
#[test]
fn missing_files_are_found() {
    let mut trail = Trail::of_two_files();
    let continued = trail.continued();
    trail.file("c", &[continued, record("decision", 8)]);
    trail.files.remove(1);
    assert_eq!(trail.broken().code, BreakCode::Missing);
    let trail = Trail::of_two_files();
    trail.edit(1, |lines| drop(lines.remove(0)));
    let report = files(&trail.files[1..], &keys(SECRET), &[]).unwrap();
    assert_eq!(report.first_break.unwrap().code, BreakCode::StartMissing);
    assert_eq!(
        files(&[], &keys(SECRET), &[])
            .unwrap()
            .first_break
            .unwrap()
            .code,
        BreakCode::Empty
    );
    assert!(files(&["/nowhere".into()], &keys(SECRET), &[]).is_err());
    assert!(files(&["/".into()], &keys(SECRET), &[]).is_err());
}

/// J4: a head from the log shows that records at the end were removed, or replaced by others after
/// a restart.
#[test]
fn heads_show_truncation() {
    let trail = Trail::of_two_files();
    let head = trail.chain.head();
    let verify_head = |head| {
        files(&trail.files, &keys(SECRET), &[head])
            .unwrap()
            .first_break
            .map(|cause| cause.code)
    };
    assert_eq!(verify_head(head), None);
    trail.edit(1, |lines| drop(lines.pop()));
    assert_eq!(
        trail.verify().first_break,
        None,
        "the trail itself does not show it"
    );
    assert_eq!(verify_head(head), Some(BreakCode::Truncated));
    assert_eq!(
        verify_head(Head { seq: 5, ..head }),
        Some(BreakCode::Replaced)
    );
    let last = files(&trail.files[1..], &keys(SECRET), &[Head { seq: 1, ..head }]).unwrap();
    assert_eq!(last.first_break.unwrap().code, BreakCode::StartMissing);
}

/// J4: a line that a crash has cut off is accepted only if the next records say so.
#[test]
fn torn_lines_are_explained() {
    let torn =
        |bytes: usize| format!(r#"{{"timestamp":"","event":"audit.torn","audit.bytes":{bytes}}}"#);
    let mut trail = Trail::new();
    let first = trail.lines(&[record("decision", 1)]);
    let rest = trail.lines(&[torn(5), record("audit.started", 2)]);
    trail.write("a", &format!("{first}{{\"tim\n{rest}"));
    let report = trail.verify();
    assert_eq!(report.first_break, None);
    assert_eq!(report.torn, 1);
    assert_eq!(report.records, 3);

    for text in [
        format!("{first}{{\"timestam\n{rest}"),
        format!("{first}{{\"tim\n{{\"tim\n{rest}"),
    ] {
        trail.write("a", &text);
        assert_eq!(trail.broken().code, BreakCode::NotChained);
        assert_eq!(trail.broken().line, Some(2));
    }
    trail.write("a", &format!("{first}{{\"tim"));
    let report = trail.verify();
    assert_eq!(report.first_break, None);
    assert!(report.ends_within_line);

    let mut trail = Trail::new();
    let decisions: Vec<_> = (1..4).map(|number| record("decision", number)).collect();
    trail.file("a", &[&decisions[..], &[torn(5)]].concat());
    assert_eq!(
        trail.broken().code,
        BreakCode::Missing,
        "the torn line was removed"
    );
    assert_eq!(trail.broken().line, Some(3), "the torn line was removed");

    // A file that was rotated by another program ends within a line.
    let mut trail = Trail::new();
    let first = trail.lines(&[record("decision", 1)]);
    trail.write("a", &format!("{first}{{\"tim"));
    let continued = trail.continued();
    trail.file("b", &[continued, torn(5), record("decision", 3)]);
    assert_eq!(trail.verify().first_break, None);
    assert_eq!(trail.verify().torn, 1);

    trail.files.remove(0);
    assert_eq!(trail.verify().first_break, None);
    assert_eq!(trail.verify().torn, 0);
}

/// J4: another chain may begin only after the regular end of a process.
#[test]
fn further_chains() {
    for (event, code) in [
        ("audit.stopped", None),
        ("decision", Some(BreakCode::EndMissing)),
    ] {
        let mut trail = Trail::new();
        trail.file("a", &[record("audit.started", 1), record(event, 2)]);
        trail.chain = Trail::chain(SECRET, Head::default());
        trail.file("b", &[record("audit.started", 3), record("decision", 4)]);
        let report = trail.verify();
        assert_eq!(report.first_break.as_ref().map(|cause| cause.code), code);
        assert_eq!(report.chains, if code.is_none() { 2 } else { 1 });
    }
}

/// J4: the key may change when a process starts, and at no other record.
#[test]
fn keys_change_at_a_start() {
    for (event, code) in [
        ("audit.started", None),
        ("decision", Some(BreakCode::Altered)),
    ] {
        let mut trail = Trail::new();
        trail.file("a", &[record("audit.started", 1), record("decision", 2)]);
        trail.chain = Trail::chain(OTHER_SECRET, trail.chain.head());
        trail.file("b", &[record(event, 3), record("decision", 4)]);
        let both = keys(&format!("{OTHER_SECRET}\n{SECRET}"));
        let report = files(&trail.files, &both, &[]).unwrap();
        assert_eq!(report.first_break.map(|cause| cause.code), code);
        assert_eq!(trail.verify().first_break.unwrap().code, BreakCode::Altered);
    }
}

/// J4: lost records are counted.
#[test]
fn lost_records_are_counted() {
    let mut trail = Trail::new();
    let lost = |lost| format!(r#"{{"timestamp":"","event":"audit.lost","audit.lost":{lost}}}"#);
    trail.file("a", &[record("audit.started", 1), lost(3), lost(4)]);
    assert_eq!(trail.verify().lost, 7);
}

#[test]
fn summed_rejections_are_counted() {
    let mut trail = Trail::new();
    let summed = |count| format!(r#"{{"timestamp":"","event":"rejections","count":{count}}}"#);
    trail.file("a", &[record("audit.started", 1), summed(90), summed(100)]);
    let report = trail.verify();
    assert_eq!((report.summed, report.records), (190, 3));
}

/// J4: a break is explained if the server then began another chain on purpose. It remains a break.
#[test]
fn permitted_breaks_are_explained() {
    let unchained = format!("{}\n{}\n", record("decision", 1), record("decision", 2));
    let started = r#"{"timestamp":"2027-01-15T08:00:09.000Z","event":"audit.started""#;
    for (new_chain, is_explained) in [("", false), (r#","audit.new_chain":true"#, true)] {
        for (lines_before, code) in [
            (unchained.as_str(), BreakCode::NotChained),
            ("", BreakCode::EndMissing),
        ] {
            let mut trail = Trail::new();
            trail.file("a", &[record("audit.started", 1), record("decision", 2)]);
            trail.chain = Trail::chain(SECRET, Head::default());
            let records = trail.lines(&[format!("{started}{new_chain}}}"), record("decision", 2)]);
            let path = trail.files[0].clone();
            let before = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("{before}{lines_before}{records}")).unwrap();
            let found = trail.broken();
            assert_eq!(found.code, code, "{found:?}");
            let explanation = "began another one at 2027-01-15T08:00:09.000Z";
            assert_eq!(
                found.message.contains(explanation),
                is_explained,
                "{found:?}"
            );
        }
    }
}
