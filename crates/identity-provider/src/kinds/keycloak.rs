//! Keycloak.

use super::{ALL_ALGORITHMS, Profile, Quirk};

pub(super) const PROFILE: Profile = Profile {
    algorithms: ALL_ALGORITHMS,
    revokes_one_sign_in: false,
    quirks: &[
        Quirk {
            summary: "gives an offline token for the scope `offline_access`, which the end of the user's session in the browser does not end",
            source: "https://www.keycloak.org/docs/latest/server_admin/#_offline-access",
        },
        Quirk {
            summary: "ends, with one token, the other sign-ins of the same browser session, and before version 26.1 all of the user at this client, so that tokens are not revoked here",
            source: "https://github.com/keycloak/keycloak/pull/35696",
        },
    ],
    ..Profile::OPENID
};
