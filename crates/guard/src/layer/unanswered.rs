//! [`Unanswered`]: why the service behind the guard gave no response.

use portcullis_reason_codes::ReasonCodes;

/// Why a request ends without a response of the inner service.
#[derive(Clone, Copy, Debug, ReasonCodes)]
pub(crate) enum Unanswered {
    /// The service behind the guard failed.
    #[code = "inner.failed"]
    Failed,
    /// A panic ended the request.
    #[code = "inner.panicked"]
    Panicked,
    /// The server shut down before the response.
    #[code = "server.shutdown"]
    Shutdown,
    /// The client disconnected before the response.
    #[code = "client.gone"]
    ClientGone,
}
