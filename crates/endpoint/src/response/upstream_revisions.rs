//! The revisions that the inner service supports, learned from its responses.

use std::{fmt, sync::Arc};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use portcullis_mcp::{ErrorCode, Revision, Revisions};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::message_reader::{MessageReader, Progress};
use crate::message::BudgetShare;

/// The errors of legacy servers for an unknown method or a missing session.
const LEGACY_ERRORS: [ErrorCode; 3] = [
    ErrorCode::MethodNotFound,
    ErrorCode::InvalidRequest,
    ErrorCode::ServerError,
];

/// The revisions that the inner service listed last, in a result of `server/discover` or an error
/// -32022.
///
/// A service that answers `server/discover` with an error of a legacy server supports only legacy
/// revisions.
#[derive(Default)]
pub(crate) struct UpstreamRevisions(Mutex<Option<Revisions>>);

impl UpstreamRevisions {
    /// Returns those of the `served` revisions that the inner service supports; all of them until
    /// it lists some.
    pub(crate) fn supported(&self, served: Revisions) -> Revisions {
        let listed = *self.0.lock();
        listed.map_or(served, |listed| {
            served
                .iter()
                .filter(|revision| listed.contains(*revision))
                .collect()
        })
    }

    fn set(&self, listed: Revisions) {
        *self.0.lock() = Some(listed);
    }
}

/// Reads the revisions from a response while its body is sent to the client, without delay.
pub(crate) struct RevisionsReader {
    reader: MessageReader,
    is_discover: bool,
    revisions: Arc<UpstreamRevisions>,
}

impl RevisionsReader {
    /// Returns a reader for the response to a modern request; `None` if the response cannot list
    /// revisions.
    pub(crate) fn new(
        is_discover: bool,
        status: StatusCode,
        headers: &HeaderMap,
        revisions: &Arc<UpstreamRevisions>,
        share: impl FnOnce() -> BudgetShare,
    ) -> Option<Box<Self>> {
        let may_list = status == StatusCode::BAD_REQUEST
            || is_discover && (status.is_success() || status == StatusCode::NOT_FOUND);
        if !may_list {
            return None;
        }
        let reader = MessageReader::new(headers, share())?;
        Some(Box::new(Self {
            reader,
            is_discover,
            revisions: Arc::clone(revisions),
        }))
    }

    /// Reads the next piece. `is_last` means that no piece follows. Returns whether the reader is
    /// finished.
    pub(crate) fn read(&mut self, piece: &[u8], is_last: bool) -> bool {
        match self.reader.read(piece, is_last, |message| {
            listed_revisions(message, self.is_discover)
        }) {
            Progress::Unfinished => false,
            Progress::NotFound | Progress::NoBudget => true,
            Progress::Found(listed) => {
                self.revisions.set(listed);
                true
            }
        }
    }
}

/// Omits the bytes that were read.
impl fmt::Debug for RevisionsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevisionsReader").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct RpcResponse {
    result: Option<DiscoverResult>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default, deserialize_with = "unsupported_version_data")]
    data: Option<UnsupportedVersionData>,
}

#[derive(Deserialize)]
struct UnsupportedVersionData {
    supported: Vec<String>,
}

/// Deserializes the `data` of an error; `None` if it has another form, as it has in other errors.
fn unsupported_version_data<'de, D: Deserializer<'de>>(
    data: D,
) -> Result<Option<UnsupportedVersionData>, D::Error> {
    let data = Value::deserialize(data)?;
    Ok(serde_json::from_value(data).ok())
}

/// Returns the known revisions that a message lists; `None` if it lists none.
fn listed_revisions(message: &[u8], is_discover: bool) -> Option<Revisions> {
    let response: RpcResponse = serde_json::from_slice(message).ok()?;
    let dates = match (response.result, response.error) {
        (Some(result), None) => result.supported_versions,
        (None, Some(error)) if error.code == ErrorCode::UnsupportedProtocolVersion.value() => {
            error.data?.supported
        }
        (None, Some(error))
            if is_discover && LEGACY_ERRORS.iter().any(|code| code.value() == error.code) =>
        {
            return Some(
                Revisions::ALL
                    .iter()
                    .filter(|revision| !revision.is_modern())
                    .collect(),
            );
        }
        _ => return None,
    };
    Some(
        dates
            .iter()
            .filter_map(|date| Revision::parse(date))
            .collect(),
    )
}
