mod line;
mod summed;

use std::{
    io::{self, Write},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use parking_lot::Mutex;
use portcullis_guard::{Decision, DecisionSink, trace::TraceContext};

use crate::{
    LogFormat, Rejections, SummedRejections,
    log_queue::{Batch, LogQueue, WRITE_PERIOD},
};

pub use line::{Details, Line};

/// The maximum size of one slot of the queue in bytes.
const SLOT_CAPACITY: usize = 4 << 20;
/// The number of slots of the queue. More threads than that share them.
const SLOTS: usize = 16;

/// The access log: one line per request, queued in memory and written in batches by a thread.
/// Queued lines are written when it is dropped. A flood of [equal rejections](Rejections) has one
/// line a second, with their number.
pub struct AccessLog {
    format: LogFormat,
    rejections: Rejections,
    started: Instant,
    queue: LogQueue,
    /// The number of lines that were dropped because the queue was full.
    dropped: AtomicU64,
    /// The batch that is being written, reused to avoid allocations.
    batch: Mutex<Batch>,
}

impl AccessLog {
    /// Starts the writer thread, which ends when the log is dropped.
    ///
    /// # Errors
    /// Fails when the thread cannot be created.
    pub fn start(format: LogFormat) -> io::Result<Arc<Self>> {
        let log = Arc::new(Self::without_writer(format));
        let written = Arc::downgrade(&log);
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_until_dropped(&written))?;
        Ok(log)
    }

    /// Creates a log without a writer thread. It is written when it is flushed or dropped.
    pub fn without_writer(format: LogFormat) -> Self {
        Self {
            format,
            rejections: Rejections::default(),
            started: Instant::now(),
            queue: LogQueue::new(SLOTS, SLOT_CAPACITY),
            dropped: AtomicU64::new(0),
            batch: Mutex::default(),
        }
    }

    /// Writes the queued lines, and the numbers of equal rejections.
    ///
    /// # Errors
    /// Fails when a line cannot be written.
    pub fn flush(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_queued(out)?;
        self.write_summed(&self.rejections.take(), out)
    }

    /// As [`flush`](Self::flush), with the numbers of equal rejections only if they are due.
    fn flush_due(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_queued(out)?;
        self.write_summed(&self.rejections.take_due(self.started.elapsed()), out)
    }

    fn write_summed(&self, summed: &[SummedRejections], out: &mut impl Write) -> io::Result<()> {
        let mut lines = Vec::new();
        summed
            .iter()
            .for_each(|summed| summed::write(summed, self.format, &mut lines));
        out.write_all(&lines)
    }

    fn write_queued(&self, out: &mut impl Write) -> io::Result<()> {
        let mut batch = self.batch.lock();
        let mut slot = 0;
        let mut lost = 0;
        while self.queue.take(slot, &mut batch).is_some() {
            let written = out.write_all(&batch.lines);
            lost += batch.lost;
            batch.clear();
            written?;
            slot += 1;
        }
        if lost > 0 {
            tracing::warn!(
                access.dropped = lost,
                "access lines were dropped: standard error is too slow"
            );
        }
        Ok(())
    }

    /// Queues a line, unless it is only counted among [equal rejections](Rejections). It is dropped
    /// and counted when the queue is full.
    pub fn write(&self, line: &Line<'_>) {
        let is_listed = self.rejections.lists(
            line.code,
            line.principal.is_some(),
            line.details.client_address,
            line.time,
        );
        if !is_listed {
            return;
        }
        if self.queue.push(|out| line.write(self.format, out)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of lines that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn write_until_dropped(log: &Weak<AccessLog>) {
    loop {
        thread::park_timeout(WRITE_PERIOD);
        let Some(log) = log.upgrade() else { return };
        // A failure of standard error cannot be reported anywhere.
        let _ = log.flush_due(&mut io::stderr().lock());
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let _ = self.flush(&mut io::stderr().lock());
    }
}

impl DecisionSink for AccessLog {
    fn decided(&self, decision: &Decision<'_>) {
        self.write(&Line {
            request_id: decision.request_id.as_str(),
            time: decision.time,
            method: decision.method,
            path: decision.path,
            status: decision.status,
            code: decision.code,
            principal: decision.principal,
            latency: decision.latency,
            details: Details {
                resource: Some(decision.resource),
                operation: decision.operation,
                client_address: decision.client_address,
                upstream: decision.upstream.map(|upstream| upstream.duration),
                trace_id: decision
                    .trace
                    .filter(TraceContext::is_sampled)
                    .map(|trace| trace.trace_id()),
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Method, StatusCode};
    use portcullis_guard::Operation;
    use portcullis_metadata::{EscapedText, ResourceUri, UnixTime};
    use portcullis_testkit::strategies::any_text;
    use portcullis_verifier::Principal;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{json::write_string, testing::VerifierFixture};

    fn written(format: LogFormat, path: &str) -> String {
        written_of(format, path, None)
    }

    fn written_of(format: LogFormat, path: &str, principal: Option<&Principal>) -> String {
        let log = AccessLog::without_writer(format);
        write_rejection(&log, path, principal);
        let mut out = Vec::new();
        log.flush(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn write_rejection(log: &AccessLog, path: &str, principal: Option<&Principal>) {
        log.write(&Line {
            request_id: "an-id",
            time: UnixTime::from_secs(1_800_000_000),
            method: &Method::POST,
            path,
            status: StatusCode::UNAUTHORIZED,
            code: Some("token.missing"),
            principal,
            latency: Duration::from_micros(7),
            details: Details::default(),
        });
    }

    /// J1: the line has the reason code and the request id that the client received.
    #[test]
    fn a_json_line_is_json() {
        let line: serde_json::Value =
            serde_json::from_str(&written(LogFormat::Json, "/a\"b")).unwrap();
        assert_eq!(line["timestamp"], "2027-01-15T08:00:00.000Z");
        assert_eq!(line["request.id"], "an-id");
        assert_eq!(line["http.path"], "/a\"b");
        assert_eq!(line["http.status"], 401);
        assert_eq!(line["deny.code"], "token.missing");
    }

    #[test]
    fn a_human_line_is_one_line() {
        let line = written(LogFormat::Human, "/mcp");
        assert_eq!(
            line,
            "2027-01-15T08:00:00.000Z  INFO request request.id=an-id http.method=POST http.path=/mcp http.status=401 \
             latency.us=7 deny.code=\"token.missing\"\n"
        );
    }

    /// J1: a line has the resource, the method, the tool, the client address, and the time of the
    /// upstream, in both formats.
    #[test]
    fn lines_have_details() {
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let line = |format, operation: &Operation| {
            let log = AccessLog::without_writer(format);
            log.write(&Line {
                request_id: "an-id",
                time: UnixTime::from_secs(1_800_000_000),
                method: &Method::POST,
                path: "/mcp",
                status: StatusCode::OK,
                code: None,
                principal: None,
                latency: Duration::from_micros(7),
                details: Details {
                    resource: Some(&resource),
                    operation: Some(operation),
                    client_address: Some([192, 0, 2, 7].into()),
                    upstream: Some(Duration::from_micros(5)),
                    trace_id: Some([0xab; 16]),
                },
            });
            let mut out = Vec::new();
            log.flush(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let tool = Operation::new("tools/call", Some("a\"dd"));
        let value: Value = serde_json::from_str(&line(LogFormat::Json, &tool)).unwrap();
        assert_eq!(value["latency.us"], 7);
        assert_eq!(value["upstream.us"], 5);
        assert_eq!(value["resource"], json!(resource.as_str()));
        assert_eq!(value["client.address"], "192.0.2.7");
        assert_eq!(value["mcp.method"], "tools/call");
        assert_eq!(value["mcp.tool"], "a\"dd");
        assert_eq!(value["trace.id"], json!("ab".repeat(16)));
        assert_eq!(value["mcp.target"], Value::Null);

        let human = line(
            LogFormat::Human,
            &Operation::new("resources/read", Some("file:///a")),
        );
        let end = format!(
            " latency.us=7 upstream.us=5 client.address=192.0.2.7 trace.id={} resource=\"https://mcp.example.com/mcp\" \
             mcp.method=\"resources/read\" mcp.target=\"file:///a\"\n",
            "ab".repeat(16)
        );
        assert!(human.ends_with(&end), "{human}");

        let long = line(
            LogFormat::Json,
            &Operation::new("tools/call", Some(&"x".repeat(100_000))),
        );
        assert!(long.len() < 1000, "{}", long.len());
    }

    /// J1: of a flood of equal rejections, the first ones have lines, and the others are one line
    /// with their number, in both formats.
    #[test]
    fn equal_rejections_are_one_line() {
        for (format, expected) in [
            (
                LogFormat::Json,
                r#"{"timestamp":"2027-01-15T08:00:00.000Z","level":"INFO","message":"equal rejections","count":90,"count.from":"2027-01-15T08:00:00.000Z","client.address":"unknown","deny.code":"token.missing"}"#,
            ),
            (
                LogFormat::Human,
                "2027-01-15T08:00:00.000Z  INFO equal rejections count=90 count.from=2027-01-15T08:00:00.000Z \
                 client.address=unknown deny.code=\"token.missing\"",
            ),
        ] {
            let log = AccessLog::without_writer(format);
            let verified = VerifierFixture::new().verified("alice", "editor");
            for principal in [None, Some(verified.principal())] {
                (0..100).for_each(|_| write_rejection(&log, "/", principal));
            }
            let mut out = Vec::new();
            log.flush(&mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.lines().last(), Some(expected));
            assert_eq!(text.lines().count(), 10 + 100 + 1, "{text}");
        }
    }

    /// J1: a long method or path is truncated, in both formats.
    #[test]
    fn long_methods_and_paths_are_truncated() {
        for format in [LogFormat::Json, LogFormat::Human] {
            let log = AccessLog::without_writer(format);
            log.write(&Line {
                request_id: "an-id",
                time: UnixTime::from_secs(1_800_000_000),
                method: &Method::from_bytes(&[b'M'; 10_000]).unwrap(),
                path: &format!("/{}", "p".repeat(30_000)),
                status: StatusCode::NOT_FOUND,
                code: None,
                principal: None,
                latency: Duration::ZERO,
                details: Details::default(),
            });
            let mut out = Vec::new();
            log.flush(&mut out).unwrap();
            let line = String::from_utf8(out).unwrap();
            assert!(line.contains(&format!("{}…", "M".repeat(256))), "{line}");
            assert!(line.contains(&format!("/{}…", "p".repeat(255))), "{line}");
            assert!(line.len() < 1000, "{}", line.len());
        }
    }

    /// J8: deceptive characters in a path and a subject are escaped, and a JSON line keeps their
    /// value.
    #[test]
    fn text_from_peers_is_escaped() {
        let text = "/a\u{9b}31m\u{202e}\u{2028}\u{200b}b";
        let verified = VerifierFixture::new().verified(text, "editor\u{1b}[2J");
        let line = written_of(LogFormat::Human, text, Some(verified.principal()));
        assert!(
            line.contains(r" http.path=/a\u{9b}31m\u{202e}\u{2028}\u{200b}b "),
            "{line}"
        );
        assert!(
            line.contains(r#" principal.subject="/a\u009b31m\u202e\u2028\u200bb""#),
            "{line}"
        );
        let json = written_of(LogFormat::Json, text, Some(verified.principal()));
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["http.path"], json!(text));
        assert_eq!(value["principal.subject"], json!(text));
        for line in [line, json] {
            assert!(
                !line.trim_end_matches('\n').contains(EscapedText::escapes),
                "{line:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// J1: all lines of a token have its issuer, subject and client.
        #[test]
        fn lines_name_the_principal(subject in any_text(), client in any_text()) {
            let verified = VerifierFixture::new().verified(&subject, &client);
            let principal = Some(verified.principal());
            let quoted = |text: &str| {
                let mut out = Vec::new();
                write_string(&mut out, text);
                String::from_utf8(out).unwrap()
            };
            let end = format!(" principal.subject={} principal.client={}\n", quoted(&subject), quoted(&client));
            let [subject, client] = [json!(subject), json!(client)];
            for _ in 0..2 {
                let line = written_of(LogFormat::Json, "/", principal);
                let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(&line["principal.issuer"], "https://issuer.example");
                prop_assert_eq!(&line["principal.subject"], &subject);
                prop_assert_eq!(&line["principal.client"], &client);
                let line = written_of(LogFormat::Human, "/", principal);
                prop_assert!(line.contains(r#" deny.code="token.missing" principal.issuer="https://issuer.example" "#));
                prop_assert!(line.ends_with(&end), "{}", line);
            }
        }
    }
}
