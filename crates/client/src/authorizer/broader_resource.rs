//! [`BroaderResource`]: acceptance of resources that are broader than the start URL.

use super::{Authorizer, GrantContext, Mode};
use crate::{ClientError, ResourceToken, StartUrl};

/// Which resources to accept whose path is only a prefix of the start URL's path.
///
/// A token for such a resource is also valid for the other paths below it, and the server at the
/// start URL could use it there. MCP clients accept such resources, although RFC 9728 section 3.3
/// does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BroaderResource {
    /// Accept those of the host's own metadata
    /// ([`DiscoveredResource::is_of_whole_host`](portcullis_discovery::DiscoveredResource::is_of_whole_host)),
    /// and ask the user about the others
    /// ([`Interaction::accept_broader_resource`](crate::Interaction::accept_broader_resource)).
    /// Without a user, the others fail with
    /// [`ClientError::BroaderResource`](crate::ClientError::BroaderResource).
    #[default]
    OfWholeHost,
    /// Accept every one, without a question to the user.
    Accepted,
    /// Accept none, without a question to the user, as RFC 9728 section 3.3 requires.
    Rejected,
}

/// Who publishes a resource that is broader than the start URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publisher {
    /// Whoever controls the whole host.
    WholeHost,
    /// Possibly the party at one path of a shared host.
    AnyPath,
}

impl Authorizer {
    /// Requires acceptance of a resource that is broader than the start URL, before the sign-in.
    /// Fails with [`ClientError::BroaderResource`] without acceptance.
    pub(super) async fn accept_resource(
        &self,
        start: &StartUrl,
        found: &GrantContext,
        before: Option<&ResourceToken>,
    ) -> Result<(), ClientError> {
        let Some(publisher) = found.broader_resource_of else {
            return Ok(());
        };
        let is_accepted = match self.settings.broader_resource {
            BroaderResource::Accepted => true,
            BroaderResource::Rejected => false,
            BroaderResource::OfWholeHost => {
                publisher == Publisher::WholeHost
                    || before.is_some_and(|before| was_accepted(before, start, found))
                    || self.is_accepted_by_user(start, found).await?
            }
        };
        if is_accepted {
            return Ok(());
        }
        Err(ClientError::BroaderResource {
            start: start.clone(),
            resource: found.resource.clone(),
        })
    }

    async fn is_accepted_by_user(
        &self,
        start: &StartUrl,
        found: &GrantContext,
    ) -> Result<bool, ClientError> {
        match &self.mode {
            Mode::Interactive(interaction) | Mode::Device(interaction) => Ok(interaction
                .accept_broader_resource(start, &found.resource)
                .await?),
            Mode::NonInteractive(_) => Ok(false),
        }
    }
}

/// Whether the resource was accepted for the token that is replaced.
fn was_accepted(before: &ResourceToken, start: &StartUrl, found: &GrantContext) -> bool {
    (before.start_url(), before.resource(), before.issuer())
        == (Some(start), &found.resource, &found.metadata.issuer)
}
