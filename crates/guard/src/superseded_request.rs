//! [`SupersededRequest`]: a request that the settings of another configuration must decide.

use bytes::Bytes;
use http::Request;

/// A request whose body arrived after its settings were
/// [replaced](crate::ProtectedResource::mark_superseded): a response extension by which a service
/// behind the guard returns it, complete.
///
/// The guard reports no decision about it. The server that marked the settings passes the request
/// to the new ones, and drops the response. It has all headers that it arrived with, except
/// hop-by-hop ones, and so also the token.
#[derive(Clone)]
pub struct SupersededRequest(pub Request<Bytes>);
