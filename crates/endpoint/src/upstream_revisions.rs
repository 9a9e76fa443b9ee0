//! Which revisions the inner service supports, as far as its own answers tell.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, StatusCode};
use portcullis_mcp::{ErrorCode, Revision, Revisions};
use serde::Deserialize;

use crate::{
    answer::{AnswerReader, Progress},
    budget::Share,
};

/// The revisions that the inner service listed last: in a result of `server/discover`, or in an error -32022.
#[derive(Default)]
pub(crate) struct UpstreamRevisions(Mutex<Option<Revisions>>);

impl UpstreamRevisions {
    /// Those of `served` that the inner service supports; all of them while it has listed none.
    pub(crate) fn among(&self, served: Revisions) -> Revisions {
        let listed = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listed.map_or(served, |listed| served.iter().filter(|revision| listed.contains(*revision)).collect())
    }

    fn set(&self, listed: Revisions) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listed);
    }
}

/// Reads the revisions from an answer while it passes. Nothing is held back.
pub(crate) struct Learning {
    reader: AnswerReader,
    learned: Arc<UpstreamRevisions>,
}

impl Learning {
    /// Begins where the head of the answer to a modern request ends; `None` where the answer can have no list.
    pub(crate) fn begin(
        discovers: bool,
        status: StatusCode,
        headers: &HeaderMap,
        learned: &Arc<UpstreamRevisions>,
        share: impl FnOnce() -> Share,
    ) -> Option<Box<Self>> {
        if !(discovers && status.is_success() || status == StatusCode::BAD_REQUEST) {
            return None;
        }
        let reader = AnswerReader::new(headers, share())?;
        Some(Box::new(Self { reader, learned: Arc::clone(learned) }))
    }

    /// Takes the next piece; `last` tells that nothing follows. Whether there is nothing more to learn.
    pub(crate) fn take(&mut self, piece: &[u8], last: bool) -> bool {
        match self.reader.take(piece, last, listed) {
            Progress::Unfinished => false,
            Progress::Nothing => true,
            Progress::Found(listed) => {
                self.learned.set(listed);
                true
            }
        }
    }
}

/// Without what was read.
impl fmt::Debug for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learning").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Discovered>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
    data: Option<Supported>,
}

#[derive(Deserialize)]
struct Supported {
    supported: Vec<String>,
}

/// The revisions that a message lists. Dates that are not known here are left out.
fn listed(message: &[u8]) -> Option<Revisions> {
    let answer: Answer = serde_json::from_slice(message).ok()?;
    let is_unsupported = |failure: &Failure| failure.code == ErrorCode::UnsupportedProtocolVersion.value();
    let dates = match (answer.result, answer.error.filter(is_unsupported)) {
        (Some(discovered), None) => discovered.supported_versions,
        (None, Some(failure)) => failure.data?.supported,
        _ => return None,
    };
    Some(dates.iter().filter_map(|date| Revision::parse(date)).collect())
}
