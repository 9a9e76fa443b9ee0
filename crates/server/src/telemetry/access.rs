//! One line a request, gathered in memory and written in batches by a thread of its own.

mod line;

use std::{
    cell::Cell,
    io::{self, Write},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use portcullis_guard::{Decision, DecisionSink};

use super::LogFormat;

pub(crate) use line::Line;

/// How often gathered lines are written.
const PERIOD: Duration = Duration::from_millis(100);
/// Bytes that one slot gathers at most between two writes; further lines are counted and dropped.
const MAX_GATHERED: usize = 4 << 20;
/// Bytes of a slot's buffer that are kept for the next lines.
const MAX_KEPT: usize = 1 << 20;
/// Places to gather in, so that workers do not wait for each other.
const SLOTS: usize = 16;

thread_local! {
    static SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}
static NEXT_SLOT: AtomicUsize = AtomicUsize::new(0);

/// The access log. Lines that are still gathered when it is dropped are written then.
pub(crate) struct AccessLog {
    format: LogFormat,
    slots: [Mutex<Vec<u8>>; SLOTS],
    /// Takes the place of a slot's buffer while that is written, so that gathering seldom allocates.
    spare: Mutex<Vec<u8>>,
    dropped: AtomicU64,
}

impl AccessLog {
    /// Starts the writing thread. It ends when the log is dropped.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub(crate) fn start(format: LogFormat) -> io::Result<Arc<Self>> {
        let log = Arc::new(Self::without_writer(format));
        let written = Arc::downgrade(&log);
        thread::Builder::new().name("access-log".to_owned()).spawn(move || write_until_dropped(&written))?;
        Ok(log)
    }

    /// A log that nobody writes before it is flushed or dropped.
    pub(crate) fn without_writer(format: LogFormat) -> Self {
        Self { format, slots: Default::default(), spare: Mutex::default(), dropped: AtomicU64::new(0) }
    }

    /// Writes what has been gathered.
    pub(crate) fn flush(&self, out: &mut impl Write) -> io::Result<()> {
        let mut spare = lock(&self.spare);
        for slot in &self.slots {
            let mut gathered = lock(slot);
            // Otherwise the buffers that have grown would wander to where nobody gathers.
            if gathered.is_empty() {
                continue;
            }
            mem::swap(&mut *gathered, &mut *spare);
            drop(gathered);
            let written = out.write_all(&spare);
            spare.clear();
            spare.shrink_to(MAX_KEPT);
            written?;
        }
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            lines => {
                tracing::warn!(access.dropped = lines, "access lines were dropped, standard error is too slow");
                Ok(())
            }
        }
    }

    /// Gathers a line.
    pub(crate) fn write(&self, line: &Line<'_>) {
        self.gather(|out| line.write(self.format, out));
    }

    fn gather(&self, line: impl FnOnce(&mut Vec<u8>)) {
        let slot = SLOT.with(|slot| {
            let number = slot.get().unwrap_or_else(|| NEXT_SLOT.fetch_add(1, Ordering::Relaxed) % SLOTS);
            slot.set(Some(number));
            number
        });
        let mut gathered = lock(&self.slots[slot]);
        if gathered.len() > MAX_GATHERED {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        line(&mut gathered);
    }
}

fn lock(buffer: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_until_dropped(log: &Weak<AccessLog>) {
    loop {
        thread::park_timeout(PERIOD);
        let Some(log) = log.upgrade() else { return };
        // Standard error that is gone leaves nowhere to say so.
        let _ = log.flush(&mut io::stderr().lock());
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
        });
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use portcullis_metadata::{EscapedText, UnixTime};
    use portcullis_verifier::Principal;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        telemetry::json::write_json,
        testing::{Bench, any_text},
    };

    fn written(format: LogFormat, path: &str) -> String {
        written_of(format, path, None)
    }

    fn written_of(format: LogFormat, path: &str, principal: Option<&Principal>) -> String {
        let log = AccessLog::without_writer(format);
        log.write(&Line {
            request_id: "an-id",
            time: UnixTime::from_secs(1_800_000_000),
            method: &Method::POST,
            path,
            status: StatusCode::UNAUTHORIZED,
            code: Some("token.missing"),
            principal,
            latency: Duration::from_micros(7),
        });
        let mut out = Vec::new();
        log.flush(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// J1: the line has the reason code and the correlation id that the client got.
    #[test]
    fn a_json_line_is_json() {
        let line: serde_json::Value = serde_json::from_str(&written(LogFormat::Json, "/a\"b")).unwrap();
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

    /// J8: a path and a subject cannot deceive a reader, and a JSON line keeps their value.
    #[test]
    fn text_from_others_is_escaped() {
        let text = "/a\u{9b}31m\u{202e}\u{2028}\u{200b}b";
        let verified = Bench::new().verified(text, "editor\u{1b}[2J");
        let line = written_of(LogFormat::Human, text, Some(verified.principal()));
        assert!(line.contains(r" http.path=/a\u{9b}31m\u{202e}\u{2028}\u{200b}b "), "{line}");
        assert!(line.contains(r#" principal.subject="/a\u009b31m\u202e\u2028\u200bb""#), "{line}");
        let json = written_of(LogFormat::Json, text, Some(verified.principal()));
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["http.path"], &value["principal.subject"]), (&json!(text), &json!(text)));
        for line in [line, json] {
            assert!(!line.trim_end_matches('\n').contains(EscapedText::escapes), "{line:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// J1: lines name the token's issuer, subject and client, the same in all lines.
        #[test]
        fn lines_name_the_principal(subject in any_text(), client in any_text()) {
            let verified = Bench::new().verified(&subject, &client);
            let principal = Some(verified.principal());
            let [subject, client] = [json!(subject), json!(client)];
            let quoted = |text: &Value| {
                let mut out = Vec::new();
                write_json(&mut out, text);
                String::from_utf8(out).unwrap()
            };
            let end = format!(" principal.subject={} principal.client={}\n", quoted(&subject), quoted(&client));
            for _ in 0..2 {
                let line = written_of(LogFormat::Json, "/", principal);
                let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(&line["principal.issuer"], "https://issuer.example");
                prop_assert_eq!((&line["principal.subject"], &line["principal.client"]), (&subject, &client));
                let line = written_of(LogFormat::Human, "/", principal);
                prop_assert!(line.contains(r#" deny.code="token.missing" principal.issuer="https://issuer.example" "#));
                prop_assert!(line.ends_with(&end), "{}", line);
            }
        }
    }

    /// A buffer that has grown stays where lines are gathered.
    #[test]
    fn idle_slots_take_no_memory() {
        let log = AccessLog::without_writer(LogFormat::Human);
        for _ in 0..2 * SLOTS {
            log.gather(|out| out.resize(MAX_KEPT, b'x'));
            log.flush(&mut Vec::new()).unwrap();
        }
        let grown = log.slots.iter().chain([&log.spare]).filter(|slot| lock(slot).capacity() > 0);
        assert_eq!(grown.count(), 2);
    }

    #[test]
    fn a_full_slot_drops_and_counts() {
        let log = AccessLog::without_writer(LogFormat::Human);
        log.gather(|out| out.resize(MAX_GATHERED + 1, b'x'));
        log.gather(|out| out.push(b'y'));
        assert_eq!(log.dropped.load(Ordering::Relaxed), 1);
        let mut out = Vec::new();
        log.flush(&mut out).unwrap();
        assert_eq!(out.len(), MAX_GATHERED + 1);
        assert_eq!(log.dropped.load(Ordering::Relaxed), 0);
    }
}
