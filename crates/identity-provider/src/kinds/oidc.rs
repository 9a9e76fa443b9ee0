//! Any other OpenID provider.

use super::{ALL_ALGORITHMS, OfflineAccess, Profile, Quirk, UserApi};

pub(super) const PROFILE: Profile = Profile {
    offline_access: OfflineAccess::IfListed,
    has_unlisted_pkce: false,
    user_api: UserApi::Always,
    algorithms: ALL_ALGORITHMS,
    quirks: &[Quirk {
        summary: "may leave claims of scopes out of an ID token that comes with an access token; the user API has them",
        source: "https://openid.net/specs/openid-connect-core-1_0.html#ScopeClaims",
    }],
    ..Profile::OPENID
};
