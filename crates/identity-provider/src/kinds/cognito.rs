//! Amazon Cognito.

use super::{OfflineAccess, Profile, Quirk};

pub(super) const PROFILE: Profile = Profile {
    offline_access: OfflineAccess::NotRequested,
    quirks: &[Quirk {
        summary: "gives a refresh token with each code, without a scope for it, and keeps it in a refresh",
        source: "https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html",
    }],
    ..Profile::OPENID
};
