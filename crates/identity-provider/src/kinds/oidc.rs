//! Any other OpenID provider.

use super::{ALL_ALGORITHMS, OfflineAccess, Profile, Quirk, UserApi};

pub(super) const PROFILE: Profile = Profile {
    offline_access: OfflineAccess::IfListed,
    prompts_consent: true,
    has_unlisted_pkce: false,
    user_api: UserApi::Always,
    algorithms: ALL_ALGORITHMS,
    quirks: &[
        Quirk {
            summary: "may leave claims of scopes out of an ID token that comes with an access token; the user API has them",
            source: "https://openid.net/specs/openid-connect-core-1_0.html#ScopeClaims",
        },
        Quirk {
            summary: "may ignore the scope `offline_access` without `prompt=consent`, and then gives no refresh token",
            source: "https://openid.net/specs/openid-connect-core-1_0.html#OfflineAccess",
        },
    ],
    ..Profile::OPENID
};
