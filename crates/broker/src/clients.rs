//! [`Clients`]: the clients that are registered, and those with a metadata document.

mod documents;

use std::sync::Arc;

use http::HeaderMap;
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, StoreError,
    client::{Client, ClientDirectory},
};
use portcullis_metadata::client::ClientIdUrl;

pub(crate) use self::documents::{Documents, Freshness};
use crate::store::BrokerStore;

/// The sentence of the error for an unknown client.
pub(crate) const UNKNOWN_CLIENT: &str = "The client is not registered, or no longer.";

/// Returns the identifier of a client for logs, which contain no query: without that of the URL of
/// a metadata document.
pub fn logged_client_id(id: &str) -> &str {
    id.split_once('?').map_or(id, |(id, _)| id)
}

/// The clients that are registered, and those with a metadata document.
pub(crate) struct Clients {
    pub(crate) store: BrokerStore,
    /// `None` if clients cannot be identified by a document.
    pub(crate) documents: Option<Documents>,
}

/// Finds clients for one purpose.
pub(crate) struct ClientsFor<'a> {
    clients: &'a Clients,
    freshness: Freshness,
}

impl Clients {
    /// Finds clients for an authorization request.
    pub(crate) fn for_authorization(&self) -> ClientsFor<'_> {
        ClientsFor {
            clients: self,
            freshness: Freshness::Recent,
        }
    }

    /// Finds clients for a request with a code or token. An outage of the client's host does not
    /// end its grants (DO7).
    pub(crate) fn for_tokens(&self) -> ClientsFor<'_> {
        ClientsFor {
            clients: self,
            freshness: Freshness::LastValid,
        }
    }

    /// Records that a client got a token, so that it is kept.
    pub(crate) async fn touch(&self, id: &str) -> Result<(), StoreError> {
        let documents = self.documents.as_ref();
        match documents.and_then(|documents| Some((documents, documents.url(id)?))) {
            Some((documents, url)) => documents.touch(&self.store, &url).await,
            None => self.store.touch_client(id).await,
        }
    }
}

impl ClientDirectory for ClientsFor<'_> {
    async fn find(&self, id: &str, _: &HeaderMap) -> Result<Arc<Client>, ErrorResponse> {
        let unknown = ErrorResponse::new(ErrorCode::InvalidClient, UNKNOWN_CLIENT);
        let Clients { store, documents } = self.clients;
        if let Some(documents) = documents
            && let Some(url) = documents.url(id)
        {
            return documents.find(store, &url, self.freshness).await;
        }
        if ClientIdUrl::parse(id).is_ok() {
            return Err(ErrorResponse::new(
                ErrorCode::InvalidClient,
                "This server does not accept clients with a metadata document.",
            ));
        }
        let record = store.find_client(id).await.map_err(|error| {
            tracing::error!(
                error.code = error.code(),
                error = &error as &dyn std::error::Error,
                "a client cannot be read"
            );
            ErrorResponse::from(error)
        })?;
        let client = record.ok_or(unknown)?.client.restore();
        client.map(Arc::new).map_err(|_| unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2: a query is not logged.
    #[test]
    fn logged_identifiers_have_no_query() {
        for (id, logged) in [
            ("3f0c", "3f0c"),
            (
                "https://client.example/client.json?key=hunter2?a",
                "https://client.example/client.json",
            ),
            ("https://client.example/?", "https://client.example/"),
        ] {
            assert_eq!(logged_client_id(id), logged);
        }
    }
}
