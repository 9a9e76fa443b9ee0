use std::vec;

use portcullis_metadata::AuthorizationServerMetadata;
use url::Url;

use super::{Discovery, lookup::Lookup};

/// The search for the metadata of an authorization server, one URL after the other.
///
/// It reports what each URL has, and leaves the conclusions to its caller.
/// [`Discovery::authorization_server`] is the search with the checks that a client must make.
#[derive(Debug)]
pub struct Search<'a> {
    discovery: &'a Discovery,
    urls: vec::IntoIter<Url>,
}

impl<'a> Search<'a> {
    pub(super) fn new(discovery: &'a Discovery, urls: Vec<Url>) -> Self {
        Self {
            discovery,
            urls: urls.into_iter(),
        }
    }

    /// Requests the next URL. Returns `None` after the last URL, and after the one that ends the
    /// search ([`Lookup::ends_search`]).
    pub async fn next(&mut self) -> Option<Lookup<AuthorizationServerMetadata>> {
        let url = self.urls.next()?;
        let is_last = self.urls.as_slice().is_empty();
        let lookup = self
            .discovery
            .look_up(url, is_last, AuthorizationServerMetadata::parse)
            .await;
        if lookup.ends_search() {
            self.urls = vec::IntoIter::default();
        }
        Some(lookup)
    }
}
