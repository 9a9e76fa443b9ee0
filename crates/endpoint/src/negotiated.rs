use std::{fmt, sync::Arc};

use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use portcullis_mcp::{Revision, sse};
use portcullis_session::Session;
use serde::Deserialize;

/// How much of the answer is read along. What `initialize` is answered is a few kilobytes.
const MOST: usize = 256 << 10;

/// Reads along the answer to an `initialize` until it says which version the session follows. Nothing is held back: the
/// client gets each piece when it would get it anyway, and the version is known before the client can have read it.
pub(crate) struct Negotiated {
    session: Arc<Session>,
    /// What the client asked for: what counts where the answer cannot be read.
    asked: Option<&'static str>,
    read: Read,
}

enum Read {
    Json(Vec<u8>),
    Events(sse::Decoder),
}

/// The one member of the answer that matters.
#[derive(Deserialize)]
struct Answer {
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    protocol_version: String,
}

impl Negotiated {
    /// Begins where the head of the answer ends. Nothing where the body is in no form that can be read: then the version
    /// that the client asked for counts.
    pub(crate) fn begin(session: Arc<Session>, asked: Option<&'static str>, headers: &HeaderMap) -> Option<Box<Self>> {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let read = if headers.contains_key(CONTENT_ENCODING) {
            None
        } else if media_type.eq_ignore_ascii_case("application/json") {
            Some(Read::Json(Vec::new()))
        } else if media_type.eq_ignore_ascii_case("text/event-stream") {
            Some(Read::Events(sse::Decoder::new(MOST)))
        } else {
            None
        };
        let Some(read) = read else {
            settle(&session, asked);
            return None;
        };
        Some(Box::new(Self { session, asked, read }))
    }

    /// Takes the next piece; `last` says that nothing follows. Whether there is nothing more to wait for.
    pub(crate) fn read(&mut self, piece: &[u8], last: bool) -> bool {
        let found = match &mut self.read {
            Read::Json(whole) if whole.len() + piece.len() > MOST => Some(None),
            Read::Json(whole) => {
                whole.extend_from_slice(piece);
                last.then(|| version(whole))
            }
            Read::Events(decoder) => match decoder.push(piece) {
                Ok(events) => events.iter().find_map(|event| version(event.data.as_bytes())).map(Some),
                Err(_) => Some(None),
            },
        };
        let settled = found.or(last.then_some(None));
        if let Some(version) = settled {
            settle(&self.session, version.or(self.asked));
        }
        settled.is_some()
    }
}

/// Without what was read.
impl fmt::Debug for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Negotiated").field("session", &self.session).finish_non_exhaustive()
    }
}

fn settle(session: &Session, version: Option<&'static str>) {
    if let Some(version) = version {
        session.set_protocol_version(version);
    }
}

/// The version in a message, if it is the answer and the version is a known one.
fn version(message: &[u8]) -> Option<&'static str> {
    let answer: Answer = serde_json::from_slice(message).ok()?;
    Revision::parse(&answer.result.protocol_version).map(Revision::as_str)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use portcullis_metadata::{ResourceUri, Scopes};
    use portcullis_session::{Owner, SessionKey, SessionSettings, SessionStore};
    use portcullis_testkit::ManualClock;

    use super::*;

    /// What is printed names the session by its hash, and shows nothing of the answer.
    #[test]
    fn debug_shows_nothing_of_what_was_read() {
        let settings = SessionSettings::new(SessionKey::new(0, [7; 16]));
        let sessions = SessionStore::new(settings, Arc::new(ManualClock::new()), Arc::new(()));
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let room = sessions.reserve(&resource, Owner::Nobody, &Scopes::empty()).unwrap();
        let session = room.open(Box::default(), None).unwrap();
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let mut negotiated = Negotiated::begin(Arc::clone(session.session()), None, &headers).unwrap();
        assert!(!negotiated.read(b"{\"canary\":", false));
        assert_eq!(format!("{negotiated:?}"), format!("Negotiated {{ session: {:?}, .. }}", session.session()));
    }
}
