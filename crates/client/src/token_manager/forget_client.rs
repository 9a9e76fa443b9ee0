//! Sign-out that also forgets the client's registration.

use super::{SignOut, Source, TokenManager, renewal::all_stored};
use crate::ClientError;

impl TokenManager {
    /// Signs out as [`sign_out`](Self::sign_out), then removes every registration that is stored
    /// for the authorization servers of the tokens, so that the next sign-in registers again.
    /// Without a token, these are the servers that the resource lists. Returns the result of the
    /// sign-out and the number of registrations. The authorization servers are not notified.
    ///
    /// # Errors
    /// As [`sign_out`](Self::sign_out), after the registrations are removed; without a token, as
    /// the discovery of the authorization servers.
    pub async fn sign_out_and_forget_client(&self) -> Result<(SignOut, usize), ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Ok((SignOut::NotSignedIn, 0));
        };
        let tokens = all_stored(authorizer, &self.start)?;
        let mut issuers: Vec<_> = tokens.iter().map(|token| token.issuer().clone()).collect();
        if issuers.is_empty() {
            issuers = authorizer.listed_issuers(&self.start).await?;
        }
        // The revocation needs the registration.
        let signed_out = self.sign_out().await;
        let mut removed = 0;
        for issuer in issuers {
            removed += authorizer.store().forget_clients(&issuer).await?;
        }
        Ok((signed_out?, removed))
    }
}
