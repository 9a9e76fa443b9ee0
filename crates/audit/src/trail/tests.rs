//! Records, lost and partial writes, usage and the shutdown, with a sink in memory.

use std::{collections::VecDeque, io};

use http::{Method, StatusCode};
use parking_lot::Mutex;
use portcullis_guard::{Operation, RequestId};
use portcullis_metadata::{ResourceUri, UnixTime};
use portcullis_testkit::ManualClock;
use serde_json::{Value, json};

use super::*;
use crate::{
    AuditTarget,
    chain::ChainKey,
    sink::{Opening, Sink},
    writer::Progress,
};

mod chained;
mod rejections;

/// A sink whose script determines the results of its first writes. Afterwards it accepts
/// everything.
#[derive(Clone, Default)]
struct ScriptedSink(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    results: VecDeque<io::Result<usize>>,
    /// The content of each file, the current one last.
    files: Vec<Vec<u8>>,
    rotate_at: Option<u64>,
    cannot_rotate: bool,
}

impl Sink for ScriptedSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut script = self.0.lock();
        let accepted = script
            .results
            .pop_front()
            .unwrap_or(Ok(bytes.len()))?
            .min(bytes.len());
        if script.files.is_empty() {
            script.files.push(Vec::new());
        }
        script
            .files
            .last_mut()
            .unwrap()
            .extend_from_slice(&bytes[..accepted]);
        Ok(accepted)
    }

    fn reopen(&mut self) -> io::Result<Opening> {
        self.0.lock().files.push(Vec::new());
        Ok(Opening::default())
    }

    fn bytes_until_rotation(&self, _: UnixTime) -> u64 {
        let script = self.0.lock();
        let length = script.files.last().map_or(0, Vec::len) as u64;
        script
            .rotate_at
            .map_or(u64::MAX, |size| size.saturating_sub(length))
    }

    fn rotate(&mut self, _: UnixTime) -> io::Result<Opening> {
        if self.0.lock().cannot_rotate {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.reopen()
    }
}

impl ScriptedSink {
    fn add_results(&self, results: impl IntoIterator<Item = io::Result<usize>>) {
        self.0.lock().results.extend(results);
    }

    fn text(&self, file: usize) -> String {
        String::from_utf8(self.0.lock().files[file].clone()).unwrap()
    }

    fn records(&self, file: usize) -> Vec<Value> {
        let text = self.text(file);
        text.lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    fn events(&self) -> Vec<String> {
        self.records(0)
            .iter()
            .map(|record| record["event"].as_str().unwrap().to_owned())
            .collect()
    }
}

struct Fixture {
    audit: Audit,
    writer: Writer<ScriptedSink>,
    sink: ScriptedSink,
    clock: Arc<ManualClock>,
    resource: ResourceUri,
}

impl Fixture {
    fn new(queue: usize) -> Self {
        Self::opened(queue, Opening::default(), None)
    }

    /// A trail with this queue and key, whose file was opened in this way.
    fn opened(queue: usize, opening: Opening, key: Option<ChainKey>) -> Self {
        let mut settings = AuditSettings::new(AuditTarget::Stdout);
        (settings.queue, settings.usage_rows) = (queue, 16);
        settings.usage_interval = Duration::from_secs(60);
        settings.version = "1.2.3";
        let clock = Arc::new(ManualClock::new());
        let audit = Audit::new(&settings, 0, clock.clone());
        let sink = ScriptedSink::default();
        let writer = Writer::new(
            Arc::clone(&audit.0),
            (sink.clone(), opening),
            key,
            settings.usage_interval,
        );
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        Self {
            audit,
            writer,
            sink,
            clock,
            resource,
        }
    }

    fn record(&self, path: &str, code: Option<&'static str>) {
        self.record_operation(path, code, None);
    }

    /// Records a decision about this path and operation.
    fn record_operation(
        &self,
        path: &str,
        code: Option<&'static str>,
        operation: Option<&Operation>,
    ) {
        let request_id = RequestId::generate();
        let time = self.clock.now();
        let method = &Method::POST;
        let mut decision = Decision::new(
            &request_id,
            time,
            method,
            path,
            StatusCode::OK,
            &self.resource,
        );
        decision.code = code;
        decision.operation = operation;
        decision.client_address = Some([192, 0, 2, 7].into());
        decision.latency = Duration::from_micros(7);
        self.audit.decided(&decision);
    }

    fn finish(&mut self) -> Progress {
        self.audit.0.finishing.store(true, Ordering::Release);
        self.writer.write_queued()
    }
}

fn full() -> io::Result<usize> {
    Err(io::ErrorKind::StorageFull.into())
}

/// J4: a decision is one line of JSON with the request, the time and the reason.
#[test]
fn a_decision_is_one_line() {
    let mut fixture = Fixture::new(1 << 20);
    fixture.record("/mcp", None);
    fixture.record("/mc\"p\n", Some("token.expired"));
    fixture.record("/mcp", Some("upstream.unreachable"));
    assert_eq!(fixture.writer.write_queued(), Progress::Pause);

    let records = fixture.sink.records(0);
    assert_eq!(
        fixture.sink.events(),
        ["audit.started", "decision", "decision", "decision"]
    );
    let decision = &records[2];
    assert_eq!(decision["timestamp"], "2026-01-01T00:00:00.000Z");
    assert_eq!(decision["request.id"].as_str().unwrap().len(), 36);
    assert_eq!(decision["resource"], "https://mcp.example.com/mcp");
    assert_eq!(decision["http.method"], "POST");
    assert_eq!(decision["http.path"], "/mc\"p\n");
    assert_eq!(decision["decision"], "deny");
    assert_eq!(decision["deny.code"], "token.expired");
    assert_eq!(decision["client.address"], "192.0.2.7");
    assert_eq!(decision["latency.us"], 7);
    assert_eq!(records[1]["decision"], "allow");
    assert_eq!(records[1]["deny.code"], Value::Null);
    assert_eq!(records[3]["decision"], "fail");
    assert_eq!(records[3]["fail.code"], "upstream.unreachable");
}

/// J4: the members of a line and their order, byte for byte.
#[test]
fn lines_have_a_fixed_format() {
    let mut fixture = Fixture::new(1 << 20);
    fixture.record_operation(
        "/mcp",
        None,
        Some(&Operation::new("tools/call", Some("add"))),
    );
    fixture.record_operation(
        "/m\"p",
        Some("token.expired"),
        Some(&Operation::new("resources/read", Some("file:///a"))),
    );
    assert_eq!(fixture.finish(), Progress::End);

    let records = fixture.sink.records(0);
    let id = |line: usize| records[line]["request.id"].as_str().unwrap();
    let time = r#"{"timestamp":"2026-01-01T00:00:00.000Z""#;
    let resource = r#""resource":"https://mcp.example.com/mcp""#;
    let [tool, file] = [1, 2].map(|line| {
        format!(
            r#"{time},"event":"decision","request.id":"{}",{resource}"#,
            id(line)
        )
    });
    let tool = format!(
        r#"{tool},"mcp.tool":"add","mcp.method":"tools/call","http.method":"POST","http.path":"/mcp""#
    );
    let file = format!(r#"{file},"mcp.method":"resources/read","mcp.target":"file:///a""#);
    let file = format!(r#"{file},"http.method":"POST","http.path":"/m\"p""#);
    let end = r#","client.address":"192.0.2.7","latency.us":7}"#;
    let usage =
        format!(r#"{time},"event":"usage","usage.from":"2026-01-01T00:00:00.000Z",{resource}"#);
    let expected = [
        format!(r#"{time},"event":"audit.started","version":"1.2.3"}}"#),
        format!(r#"{tool},"http.status":200,"decision":"allow"{end}"#),
        format!(r#"{file},"http.status":200,"decision":"deny","deny.code":"token.expired"{end}"#),
        format!(
            r#"{usage},"mcp.tool":"add","usage.requests":1,"usage.denied":0,"usage.failed":0}}"#
        ),
        format!(r#"{usage},"usage.requests":1,"usage.denied":1,"usage.failed":0}}"#),
        format!(r#"{time},"event":"audit.stopped","audit.records":2,"audit.lost":0}}"#),
    ];
    let text = fixture.sink.text(0);
    let mut lines: Vec<_> = text.lines().collect();

    // Usage rows have no particular order.
    lines[3..5].sort_unstable();
    assert_eq!(lines, expected);
}

/// J4: a record has all targets of a message, up to a limit, and their number.
#[test]
fn further_targets_are_recorded() {
    let mut fixture = Fixture::new(1 << 20);
    let operation = Operation::new("subscriptions/listen", Some("file:///a"));
    fixture.record_operation(
        "/mcp",
        None,
        Some(
            &operation
                .clone()
                .with_additional_targets(["note:\"b", "note:c"].iter()),
        ),
    );
    fixture.record_operation(
        "/mcp",
        None,
        Some(
            &operation
                .clone()
                .with_additional_targets((1..1000).map(|number| format!("n:{number}"))),
        ),
    );
    fixture.record_operation("/mcp", None, Some(&operation));
    assert_eq!(fixture.writer.write_queued(), Progress::Pause);

    let records = fixture.sink.records(0);
    assert_eq!(records[1]["mcp.target"], "file:///a");
    assert_eq!(
        records[1]["mcp.further_targets"],
        json!(["note:\"b", "note:c"])
    );
    assert_eq!(records[1]["mcp.target_count"], 3);
    assert_eq!(
        records[2]["mcp.further_targets"].as_array().unwrap().len(),
        Operation::MAX_ADDITIONAL_TARGETS
    );
    assert_eq!(records[2]["mcp.target_count"], 1000);
    assert_eq!(records[3].get("mcp.further_targets"), None);
    assert_eq!(records[3].get("mcp.target_count"), None);
}

/// J4: a tool is recorded and counted by its name. Targets of other methods are only recorded.
#[test]
fn tools_are_recorded_and_counted() {
    let mut fixture = Fixture::new(1 << 20);
    for (method, target) in [
        ("tools/call", Some("add")),
        ("tools/call", Some("add")),
        ("tools/call", Some("whoami")),
        ("resources/read", Some("file:///a")),
        ("tools/list", None),
    ] {
        fixture.record_operation("/mcp", None, Some(&Operation::new(method, target)));
    }
    assert_eq!(fixture.finish(), Progress::End);

    let records = fixture.sink.records(0);
    let operation = |record: &Value| {
        ["mcp.method", "mcp.tool", "mcp.target"]
            .map(|name| record[name].as_str().unwrap_or("-").to_owned())
    };
    let decisions: Vec<_> = records
        .iter()
        .filter(|record| record["event"] == "decision")
        .map(operation)
        .collect();
    assert_eq!(decisions[1], ["tools/call", "add", "-"]);
    assert_eq!(decisions[3], ["resources/read", "-", "file:///a"]);
    assert_eq!(decisions[4], ["tools/list", "-", "-"]);

    let usage = records.iter().filter(|record| record["event"] == "usage");
    let mut usage: Vec<_> = usage
        .map(|row| {
            (
                row["mcp.tool"].as_str(),
                row["usage.requests"].as_u64().unwrap(),
            )
        })
        .collect();
    usage.sort_unstable();
    assert_eq!(usage, [(None, 2), (Some("add"), 2), (Some("whoami"), 1)]);
}

/// J4: text from peers is truncated to a maximum length, between characters.
#[test]
fn long_texts_are_truncated() {
    let mut fixture = Fixture::new(1 << 20);
    fixture.record(&format!("/{}", "é".repeat(100_000)), None);
    fixture.writer.write_queued();
    let record = &fixture.sink.records(0)[1];
    let path = record["http.path"].as_str().unwrap();
    assert!(path.len() < 300, "{path}");
    assert!(path.ends_with("é…"), "{path}");
}

/// J4: a full queue loses records without waiting. Once the sink accepts more, their number is
/// recorded at the position where they are missing.
#[test]
fn lost_records_are_counted_and_reported() {
    let mut fixture = Fixture::new(1000);
    fixture.sink.add_results([full(), full()]);
    for _ in 0..100 {
        fixture.record("/mcp", None);
        assert_eq!(fixture.writer.write_queued(), Progress::Pause);
        fixture.sink.add_results([full()]);
    }
    let kept = fixture.audit.0.queue.unwritten();
    assert_eq!(
        fixture.audit.written(),
        0,
        "nothing is written, all is counted"
    );
    assert_eq!(kept, 100, "nothing is written, all is counted");

    fixture.sink.0.lock().results.clear();
    fixture.writer.write_queued();
    fixture.record("/after", None);
    fixture.writer.write_queued();
    let records = fixture.sink.records(0);
    let events = fixture.sink.events();
    let marker = events
        .iter()
        .position(|event| event == "audit.lost")
        .expect("a marker");
    let lost = records[marker]["audit.lost"].as_u64().unwrap();
    assert_eq!(
        events.iter().filter(|event| *event == "decision").count() as u64 + lost,
        101
    );
    assert!(lost > 50, "{lost}");
    assert_eq!(fixture.audit.lost(), lost);
    assert_eq!(
        records[marker + 1]["http.path"],
        "/after",
        "the number is at the position of the missing records"
    );

    assert_eq!(fixture.finish(), Progress::End);
    let last = fixture.sink.records(0).pop().unwrap();
    assert_eq!(last["event"], "audit.stopped");
    assert_eq!(last["audit.lost"], lost);
    assert_eq!(last["audit.records"], 101 - lost);
}

/// J4: lines are complete even if the sink accepts only parts of them.
#[test]
fn partial_writes_are_continued() {
    let mut fixture = Fixture::new(1 << 20);
    fixture
        .sink
        .add_results((0..2000).map(|number| match number % 3 {
            0 => Ok(1),
            1 => Err(io::ErrorKind::Interrupted.into()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }));
    for _ in 0..3 {
        fixture.record("/mcp", None);
    }
    for _ in 0..2000 {
        fixture.writer.write_queued();
    }
    assert_eq!(
        fixture.sink.events(),
        ["audit.started", "decision", "decision", "decision"]
    );
}

/// J4: a record that was partly written when the file was rotated is complete in the new file.
#[test]
fn a_new_file_starts_with_a_whole_line() {
    let mut fixture = Fixture::new(1 << 20);
    fixture.writer.write_queued();
    fixture.record("/first", None);
    fixture.record("/second", None);
    fixture.sink.add_results([Ok(10), full()]);
    fixture.writer.write_queued();
    fixture.audit.0.reopen.store(true, Ordering::Release);
    fixture.writer.write_queued();
    let records = fixture.sink.records(1);
    assert_eq!(records[0]["event"], "audit.torn");
    assert_eq!(records[0]["audit.bytes"], 10);

    let paths: Vec<_> = records[1..]
        .iter()
        .map(|record| record["http.path"].clone())
        .collect();
    assert_eq!(paths, ["/first", "/second"]);
    assert_eq!(fixture.audit.written(), 2);
}

/// J4: usage is recorded in each interval and at the end, even if records were lost.
#[test]
fn usage_is_recorded() {
    let mut fixture = Fixture::new(300);
    for code in [
        None,
        None,
        Some("scope.insufficient"),
        Some("upstream.unreachable"),
    ] {
        fixture.record("/mcp", code);
    }
    fixture.clock.advance(Duration::from_secs(60));
    fixture.writer.write_queued();
    fixture.record("/mcp", None);
    assert_eq!(fixture.finish(), Progress::End);

    let usage: Vec<_> = fixture
        .sink
        .records(0)
        .into_iter()
        .filter(|record| record["event"] == "usage")
        .collect();
    let counted = |row: &Value| {
        ["usage.requests", "usage.denied", "usage.failed"]
            .map(|name| row[name].as_u64().unwrap_or(u64::MAX))
    };
    assert_eq!(
        usage.iter().map(counted).collect::<Vec<_>>(),
        [[4, 1, 1], [1, 0, 0]]
    );
    assert_eq!(usage[0]["resource"], "https://mcp.example.com/mcp");
    assert_eq!(usage[0]["timestamp"], "2026-01-01T00:01:00.000Z");
    assert_eq!(usage[1]["usage.from"], usage[0]["timestamp"]);
}

/// J4: the shutdown waits for a sink that accepts nothing only until its time is over. The trail is
/// complete only if the writer says so.
#[tokio::test(start_paused = true)]
async fn the_shutdown_is_bounded() {
    let completed = async |done: oneshot::Receiver<()>| {
        let Fixture { audit, .. } = Fixture::new(1 << 20);
        let start = Instant::now();
        let is_complete = AuditTrail {
            audit,
            writer: thread::current(),
            done,
            chain_error: None,
        }
        .completed(Duration::from_secs(10))
        .await;
        (is_complete, start.elapsed().as_secs())
    };
    let (writer, done) = oneshot::channel();
    assert_eq!(
        completed(done).await,
        (false, 10),
        "the writer waits for its sink"
    );
    drop(writer);

    let (writer, done) = oneshot::channel();
    writer.send(()).unwrap();
    assert_eq!(completed(done).await, (true, 0), "everything is written");

    let (writer, done) = oneshot::channel();
    drop(writer);
    assert_eq!(completed(done).await, (false, 0), "the writer has panicked");
}
