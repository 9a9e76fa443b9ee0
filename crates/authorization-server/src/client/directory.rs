//! [`ClientDirectory`]: finds clients by their identifier.

use std::{future::Future, sync::Arc};

use http::HeaderMap;

use crate::{client::Client, error::ErrorResponse};

/// Finds clients: configured ones, registered ones, and those whose identifier is the URL of their
/// metadata document.
pub trait ClientDirectory: Send + Sync {
    /// Returns the client with this identifier. `headers` are those of the request that names it.
    ///
    /// # Errors
    /// Fails with `invalid_client` when there is no such client, and with `temporarily_unavailable`
    /// when it cannot be found now. The description is a sentence for the user, because it is
    /// displayed at the authorization endpoint.
    fn find(
        &self,
        id: &str,
        headers: &HeaderMap,
    ) -> impl Future<Output = Result<Arc<Client>, ErrorResponse>> + Send;
}
