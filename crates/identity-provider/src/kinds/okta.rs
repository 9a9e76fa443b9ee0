//! Okta.

use super::{Profile, Quirk, UserApi};

pub(super) const PROFILE: Profile = Profile {
    user_api: UserApi::Always,
    quirks: &[Quirk {
        summary: "leaves out claims of the scopes `profile` and `email` in an ID token that comes with an access token; its user API has them",
        source: "https://support.okta.com/help/s/article/Okta-Groups-or-Attribute-Missing-from-Id-Token",
    }],
    ..Profile::OPENID
};
