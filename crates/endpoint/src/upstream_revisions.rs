//! Which revisions the inner service supports, as far as its own answers tell.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, StatusCode};
use portcullis_mcp::{ErrorCode, Revision, Revisions};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    answer::{AnswerReader, Progress},
    budget::Share,
};

/// The revisions that the inner service listed last: in a result of `server/discover`, or in an error -32022. One that answers
/// `server/discover` with an error of a server with sessions supports no revision without them.
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
    discovers: bool,
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
        let may_list = match status {
            StatusCode::BAD_REQUEST => true,
            status => discovers && (status.is_success() || status == StatusCode::NOT_FOUND),
        };
        let reader = if may_list { AnswerReader::new(headers, share())? } else { return None };
        Some(Box::new(Self { reader, discovers, learned: Arc::clone(learned) }))
    }

    /// Takes the next piece; `last` tells that nothing follows. Whether there is nothing more to learn.
    pub(crate) fn take(&mut self, piece: &[u8], last: bool) -> bool {
        match self.reader.take(piece, last, |message| listed(message, self.discovers)) {
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
    #[serde(default, deserialize_with = "supported")]
    data: Option<Supported>,
}

#[derive(Deserialize)]
struct Supported {
    supported: Vec<String>,
}

/// The list in `data`, which can be any value.
fn supported<'de, D: Deserializer<'de>>(data: D) -> Result<Option<Supported>, D::Error> {
    let data = Value::deserialize(data)?;
    Ok(serde_json::from_value(data).ok())
}

/// The revisions that a message lists. Dates that are not known here are left out.
fn listed(message: &[u8], discovers: bool) -> Option<Revisions> {
    /// What servers with sessions answer to a method that they do not know, or without a session.
    const OF_LEGACY: [ErrorCode; 3] = [ErrorCode::MethodNotFound, ErrorCode::InvalidRequest, ErrorCode::ServerError];
    let answer: Answer = serde_json::from_slice(message).ok()?;
    let dates = match (answer.result, answer.error) {
        (Some(discovered), None) => discovered.supported_versions,
        (None, Some(failure)) if failure.code == ErrorCode::UnsupportedProtocolVersion.value() => {
            failure.data?.supported
        }
        (None, Some(failure)) if discovers && OF_LEGACY.iter().any(|code| code.value() == failure.code) => {
            return Some(Revisions::ALL.iter().filter(|revision| !revision.is_modern()).collect());
        }
        _ => return None,
    };
    Some(dates.iter().filter_map(|date| Revision::parse(date)).collect())
}
