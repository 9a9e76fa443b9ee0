//! Auth0.

use super::{Profile, Quirk};

pub(super) const PROFILE: Profile = Profile {
    revokes_one_sign_in: false,
    quirks: &[
        Quirk {
            summary: "has an issuer that ends with a slash",
            source: "https://auth0.com/docs/secure/tokens/json-web-tokens/validate-json-web-tokens",
        },
        Quirk {
            summary: "can revoke, with one refresh token, all refresh tokens of the user at this application (a setting of the tenant), so that tokens are not revoked here",
            source: "https://auth0.com/docs/secure/tokens/refresh-tokens/revoke-refresh-tokens",
        },
    ],
    ..Profile::OPENID
};
