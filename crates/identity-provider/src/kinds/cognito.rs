//! Amazon Cognito.

use super::{OfflineAccess, Profile, Quirk};
use crate::ClientAuthentication;

pub(super) const PROFILE: Profile = Profile {
    offline_access: OfflineAccess::NotRequested,
    client_authentication: Some(ClientAuthentication::Basic),
    quirks: &[
        Quirk {
            summary: "gives a refresh token with each code, without a scope for it, and keeps it in a refresh",
            source: "https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html",
        },
        Quirk {
            summary: "requires HTTP Basic authentication at the revocation endpoint, which accepts refresh tokens only and ends no other sign-in",
            source: "https://docs.aws.amazon.com/cognito/latest/developerguide/revocation-endpoint.html",
        },
    ],
    ..Profile::OPENID
};
