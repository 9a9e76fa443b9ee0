//! [`EndedSignIn`]: why an earlier sign-in has ended.

use std::fmt;

use portcullis_metadata::{Issuer, authorization::OAuthError};

use crate::{ClientError, ResourceToken, StartUrl};

/// A stored sign-in that has ended, because its token cannot be refreshed any more. The user must
/// sign in again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedSignIn {
    /// The URL of the sign-in.
    pub start: StartUrl,
    /// The authorization server.
    pub issuer: Issuer,
    /// How the authorization server rejected the refresh. None if nothing was sent, because the
    /// client that signed in is no longer stored.
    pub error: Option<OAuthError>,
}

impl EndedSignIn {
    /// The end of a sign-in whose refresh token is permanently invalid for this client. `None` for
    /// any other error of a refresh.
    pub(crate) fn of_refresh(
        start: &StartUrl,
        token: &ResourceToken,
        error: &ClientError,
    ) -> Option<Self> {
        let error = match error {
            ClientError::TokenRequest(error) if is_permanent(error) => Some(error.clone()),
            ClientError::NoRegistration { .. } => None,
            _ => return None,
        };
        Some(Self {
            start: start.clone(),
            issuer: token.issuer().clone(),
            error,
        })
    }
}

/// Whether another refresh with the same refresh token and client would fail, too.
fn is_permanent(error: &OAuthError) -> bool {
    matches!(
        error.error.as_str(),
        "invalid_grant" | "invalid_client" | "unauthorized_client"
    )
}

impl fmt::Display for EndedSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            start,
            issuer,
            error,
        } = self;
        write!(f, "the sign-in to {start} has ended: ")?;
        match error {
            Some(error) => write!(f, "{issuer} rejected the refresh of its token: {error}"),
            None => write!(f, "its client at {issuer} is no longer stored"),
        }
    }
}
