//! Responses: rejections, bodies, and the messages in responses of the inner service.

mod body;
mod message_reader;
mod rejection;
mod respond;
mod upstream_revisions;

pub use self::body::{EndpointBody, EndpointBodyError};
pub(crate) use self::{
    message_reader::{MessageReader, Progress},
    rejection::{Reason, Rejection},
    respond::session_ended,
    upstream_revisions::{RevisionsReader, UpstreamRevisions},
};
