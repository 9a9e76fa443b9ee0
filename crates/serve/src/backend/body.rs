//! [`BackendBody`]: the body of a response of the demo server or of an HTTP upstream.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{Either, combinators::BoxBody};

use super::legacy_calls::LegacyBody;

/// The body of an upstream's response: left that of the demo server and of this program, right that
/// of an HTTP upstream.
pub(crate) type BackendBody = Either<BoxBody<Bytes, Infallible>, LegacyBody>;
