#![doc = include_str!("../README.md")]

mod envelope;
mod era;
mod error_code;
pub mod header;
mod message_id;
pub mod meta;
mod methods;
mod mirror;
mod revision;
pub mod sse;

pub use envelope::{
    Envelope, EnvelopeError, EnvelopeLimits, MessageType, Name, TargetType, has_target,
};
pub use era::{Era, EraError, checks_name_header, classify, legacy_version};
pub use error_code::{ErrorCode, error_body};
pub use message_id::MessageId;
pub use methods::client_methods;
pub use mirror::{MirrorError, decode_mirrored, encode_mirrored, mirrored_member};
pub use revision::{Revision, Revisions};
