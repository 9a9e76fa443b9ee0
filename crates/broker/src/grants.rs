//! Grants as administrators see and end them.

use portcullis_authorization_server::StoreError;
use portcullis_metadata::UnixTime;

use crate::{Broker, observer::EndReason};

/// The maximum number of grants that one call of [`Broker::grants`] or [`Broker::end_grants`]
/// examines.
pub(crate) const MAX_EXAMINED: usize = 500;

/// What grants must have. Names are compared exactly. A name that is not given matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// The identifier of the grant (`sid`).
    pub id: Option<Box<str>>,
    /// The user (`sub`).
    pub subject: Option<Box<str>>,
    /// The identifier of the client.
    pub client_id: Option<Box<str>>,
    /// The name of the provider.
    pub provider: Option<Box<str>>,
}

/// A grant, without any token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantSummary {
    /// The identifier of the grant (`sid`).
    pub id: Box<str>,
    /// The user (`sub`).
    pub subject: Box<str>,
    /// The identifier of the client.
    pub client_id: Box<str>,
    /// The name of the provider at which the user signed in. `None` if the sign-in has been
    /// removed, after which the grant cannot be used.
    pub provider: Option<Box<str>>,
    /// The scopes that the user approved, separated by spaces.
    pub scopes: Box<str>,
    /// The resource.
    pub resource: Option<Box<str>>,
    /// When the code was exchanged.
    pub begun: UnixTime,
    /// When a token was issued the last time.
    pub last_used: UnixTime,
}

/// Some of the grants that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantPage {
    /// The grants. There can be none, although a later page has some.
    pub grants: Vec<GrantSummary>,
    /// The number of examined grants that no key of the broker opens. Their owners are not known,
    /// so that they match no filter.
    pub unreadable: usize,
    /// After which grant the next page begins. `None` on the last page.
    pub next: Option<Box<str>>,
}

/// The result of [`Broker::end_grants`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedGrants {
    /// The number of grants that ended.
    pub ended: usize,
    /// As in [`GrantPage::unreadable`].
    pub unreadable: usize,
    /// After which grant the next call begins. `None` if all were examined.
    pub next: Option<Box<str>>,
}

/// The store failed while grants were ended.
#[derive(Debug, thiserror::Error)]
#[error("the store failed after {ended} grants had ended")]
pub struct EndGrantsError {
    /// The number of grants that had ended before, and do not begin again.
    pub ended: usize,
    /// The error of the store.
    #[source]
    pub error: StoreError,
}

impl Broker {
    /// Returns the grants that match a filter, at most `limit`, in an order of its own that does
    /// not change. Begins after the grant `after`, or with the first one. One call examines a
    /// bounded number of grants; continue with [`GrantPage::next`] until it is `None`.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    pub async fn grants(
        &self,
        filter: &GrantFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<GrantPage, StoreError> {
        let page = self.store.list_grants(filter, after, limit).await;
        page.inspect_err(|error| self.store_failed(error))
    }

    /// Ends the grants that match a filter, for the reason [`EndReason::Administrator`]. Their
    /// tokens are rejected from now on, and the sessions of their users end. Begins after the grant
    /// `after`, or with the first one. One call examines a bounded number of grants; continue with
    /// [`EndedGrants::next`] until it is `None`.
    ///
    /// A code that was issued before and is exchanged later begins a grant that this does not end.
    ///
    /// # Errors
    /// Fails when the store fails. The grants before that have ended.
    pub async fn end_grants(
        &self,
        filter: &GrantFilter,
        after: Option<&str>,
    ) -> Result<EndedGrants, EndGrantsError> {
        let store = self.store.ending_for(EndReason::Administrator);
        let ended = store.end_matching(filter, after).await;
        ended.inspect_err(|error| self.store_failed(&error.error))
    }
}

impl GrantFilter {
    pub(crate) fn matches(&self, grant: &GrantSummary) -> bool {
        let is = |wanted: &Option<Box<str>>, name: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == name
        };
        is(&self.id, Some(&grant.id))
            && is(&self.subject, Some(&grant.subject))
            && is(&self.client_id, Some(&grant.client_id))
            && is(&self.provider, grant.provider.as_deref())
    }
}
