mod budget;
mod collector;
mod content_coding;
mod content_type;
mod operation;

use http::HeaderMap;
use portcullis_mcp::{Envelope, EnvelopeError, EnvelopeLimits, Era, EraError, Revisions, classify};

pub use self::budget::BodyBudget;
pub(crate) use self::{
    budget::BudgetShare,
    collector::{BodyError, Collector},
    content_coding::is_encoded,
    content_type::{UnsupportedContentType, check_content_type},
    operation::operation,
};

/// A POSTed message as far as it can be parsed, and its era as far as it can be determined.
pub(crate) struct Message<'a> {
    pub(crate) envelope: Result<Envelope<'a>, EnvelopeError>,
    pub(crate) era: Result<Era, EraError>,
}

impl<'a> Message<'a> {
    /// Parses the envelope, and compares it with the headers. Both can fail independently of each
    /// other.
    pub(crate) fn parse(
        body: &'a [u8],
        headers: &HeaderMap,
        limits: EnvelopeLimits,
        served: Revisions,
    ) -> Self {
        let envelope = Envelope::parse(body, limits);
        let era = classify(envelope.as_ref(), headers, served);
        Self { envelope, era }
    }

    /// Returns whether the message needs a session.
    pub(crate) fn is_legacy(&self) -> bool {
        match &self.era {
            Ok(era) => matches!(era, Era::Legacy { .. }),
            Err(error) => error.is_legacy(),
        }
    }

    /// Returns whether the message can be parsed and opens a legacy session.
    pub(crate) fn is_initialize(&self) -> bool {
        self.envelope.as_ref().is_ok_and(Envelope::is_initialize)
    }
}
