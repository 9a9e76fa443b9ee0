//! Ending of selected streams: after a change of the settings those whose request would no longer
//! be admitted, and those that an administrator ends.

use std::sync::Arc;

use portcullis_guard::{Operation, ProtectedResource};
use portcullis_verifier::Principal;

use super::{StreamEndReason, StreamRegistry, open_stream::OpenStream};

/// The request that opened an event stream.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StreamRequest<'a> {
    /// The resource with the settings under which the request was admitted.
    pub resource: &'a Arc<ProtectedResource>,
    /// The principal of the token; `None` if authentication was off.
    pub principal: Option<&'a Principal>,
    /// The message that the stream answers; `None` for GET.
    pub operation: Option<&'a Operation>,
}

impl StreamRegistry {
    /// Ends the streams that `is_admitted` rejects, such as those that do not satisfy new rules.
    /// Returns their number.
    ///
    /// Each stream ends as after [`sweep`](Self::sweep), which must still be called. `is_admitted`
    /// is called without a lock.
    pub fn end_unless(&self, is_admitted: impl Fn(&StreamRequest<'_>) -> bool) -> usize {
        self.end(StreamEndReason::ConfigurationChanged, |request| {
            !is_admitted(request)
        })
    }

    /// Ends the streams that `is_ended` selects, with a reason, in the same way. Returns their
    /// number.
    pub fn end(
        &self,
        reason: StreamEndReason,
        is_ended: impl Fn(&StreamRequest<'_>) -> bool,
    ) -> usize {
        let now = self.now();
        let mut ended = Vec::new();
        for stream in self.all() {
            if is_ended(&stream.request()) && stream.finish(now) {
                ended.push(stream);
            }
        }
        for stream in &ended {
            self.report(&stream.ended(now.unix, reason));
            stream.wake();
        }
        ended.len()
    }
}

impl OpenStream {
    fn request(&self) -> StreamRequest<'_> {
        StreamRequest {
            resource: &self.resource,
            principal: self.authorization.principal(),
            operation: self.operation.as_ref(),
        }
    }
}
