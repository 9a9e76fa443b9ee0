//! In place of the demo server, in packages without the feature `dev`: a server of which there is
//! no value.

use std::convert::Infallible;

use bytes::Bytes;
use http::Response;
use http_body_util::combinators::BoxBody;
use portcullis_config::without_dev;
use portcullis_endpoint::Admitted;
use portcullis_mcp::Revisions;

/// The demo server, which this program does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DemoServer {}

impl DemoServer {
    /// Returns an error, because this program has no demo server. Always fails: this package has no
    /// demo server.
    pub(crate) fn new(_: Revisions) -> anyhow::Result<Self> {
        Err(anyhow::anyhow!(without_dev("upstream = \"demo\"")))
    }

    /// Is never called, because there is no value of this type.
    pub(crate) fn respond(self, _: &Admitted) -> Response<BoxBody<Bytes, Infallible>> {
        match self {}
    }
}
