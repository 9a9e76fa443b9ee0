//! Consent to resources that are broader than the start URL.

use super::{Authorizer, GrantContext, Mode};
use crate::{ClientError, ResourceToken, StartUrl};

impl Authorizer {
    /// Requires acceptance of a resource that is broader than the start URL, before the sign-in.
    /// MCP clients accept such resources, although RFC 9728 section 3.3 does not. Fails with
    /// [`ClientError::BroaderResource`] without acceptance.
    pub(super) async fn accept_resource(
        &self,
        start: &StartUrl,
        found: &GrantContext,
        before: Option<&ResourceToken>,
    ) -> Result<(), ClientError> {
        // It was accepted for the token that is being replaced.
        let is_known = |before: &ResourceToken| {
            (before.start_url(), before.resource(), before.issuer())
                == (Some(start), &found.resource, &found.metadata.issuer)
        };
        if !found.is_broader
            || self.settings.accept_broader_resource
            || before.is_some_and(is_known)
        {
            return Ok(());
        }
        let accepted = match &self.mode {
            Mode::Interactive(interaction) | Mode::Device(interaction) => {
                interaction
                    .accept_broader_resource(start, &found.resource)
                    .await?
            }
            Mode::NonInteractive(_) => false,
        };
        if accepted {
            return Ok(());
        }
        Err(ClientError::BroaderResource {
            start: start.clone(),
            resource: found.resource.clone(),
        })
    }
}
