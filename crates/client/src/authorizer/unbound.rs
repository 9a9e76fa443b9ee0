//! Consent to sign-ins without `resource`.

use super::{Authorizer, GrantContext, Mode};
use crate::{ClientError, ResourceToken, StartUrl, UnboundSignIn};

impl Authorizer {
    /// Requires consent to a sign-in without `resource`, before it starts, and rejects scopes of
    /// other APIs. Otherwise a server could name a provider that ignores or rejects `resource`,
    /// with the scopes of that provider's own APIs.
    pub(super) async fn accept_unbound(
        &self,
        start: &StartUrl,
        found: &GrantContext,
        before: Option<&ResourceToken>,
    ) -> Result<(), ClientError> {
        let profile = &found.profile;
        let issuer = &found.metadata.issuer;
        if let (Some(known), Mode::Interactive(interaction) | Mode::Device(interaction)) =
            (profile.known, &self.mode)
        {
            interaction.provider_recognized(known);
        }
        profile.check_scopes(&found.scopes, start, issuer)?;
        // It was accepted for the token that is being replaced, with these scopes.
        let is_known = |before: &ResourceToken| {
            before.is_unbound()
                && (before.start_url(), before.resource(), before.issuer())
                    == (Some(start), &found.resource, issuer)
                && before.asked().covers(&found.scopes)
        };
        let is_accepted =
            self.settings.provider.accept_unbound_token || before.is_some_and(is_known);
        if !profile.is_unbound() || is_accepted {
            return Ok(());
        }
        let sign_in = UnboundSignIn {
            start: start.clone(),
            issuer: issuer.clone(),
            scopes: found.scopes.clone(),
        };
        let accepted = match &self.mode {
            Mode::Interactive(interaction) | Mode::Device(interaction) => {
                interaction.accept_unbound_token(&sign_in).await?
            }
            // The caller chose the authorization server with its credentials, and no user signs in.
            Mode::NonInteractive(_) => !self.settings.credentials.is_empty(),
        };
        let UnboundSignIn {
            start,
            issuer,
            scopes,
        } = sign_in;
        if accepted {
            Ok(())
        } else {
            Err(ClientError::UnboundToken {
                start,
                issuer,
                scopes,
            })
        }
    }
}
