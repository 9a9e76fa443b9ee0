//! The secrets that the client commands have sent. Their messages and log lines do not repeat them.
//!
//! They are global because the log is global. `portcullis-discovery` removes them from excerpts of
//! responses. Here they are removed from URLs, scopes and identifiers that an error quotes from a
//! server's documents.

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::OnceLock,
};

use parking_lot::Mutex;
use portcullis_discovery::SentSecrets;

/// One set for each token manager. Empty in commands that are not clients, such as `serve`.
static SENT: OnceLock<Mutex<Vec<SentSecrets>>> = OnceLock::new();

/// Removes these secrets, and those that are added to them later, from messages and log lines.
pub fn remove_from_output(sent: &SentSecrets) {
    SENT.get_or_init(Mutex::default).lock().push(sent.clone());
}

/// Returns a text without the secrets.
pub fn redact(text: &str) -> Cow<'_, str> {
    let Some(sent) = SENT.get() else {
        return Cow::Borrowed(text);
    };
    let sent = sent.lock();
    sent.iter()
        .fold(Cow::Borrowed(text), |text, sent| match sent.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => Cow::Owned(redacted),
        })
}

/// Writes log lines without the secrets. Each call of `write` has whole lines.
pub struct RedactingWriter<W>(W);

/// Returns standard error for log lines.
pub fn log_writer() -> RedactingWriter<io::Stderr> {
    RedactingWriter(io::stderr())
}

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if SENT.get().is_none() {
            return self.0.write(line);
        }
        self.0
            .write_all(redact(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
