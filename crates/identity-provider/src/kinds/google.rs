//! Google.

use super::{OfflineAccess, Profile, Quirk};

pub(super) const PROFILE: Profile = Profile {
    offline_access: OfflineAccess::NotRequested,
    parameters: &[("access_type", "offline"), ("prompt", "consent")],
    revokes_one_sign_in: false,
    quirks: &[
        Quirk {
            summary: "gives a refresh token only for `access_type=offline`, and after a user's first approval only with `prompt=consent`",
            source: "https://developers.google.com/identity/protocols/oauth2/web-server",
        },
        Quirk {
            summary: "identifies a user by `sub`; `hd` is the Workspace organization, and an e-mail address does not identify",
            source: "https://developers.google.com/identity/openid-connect/openid-connect",
        },
        Quirk {
            summary: "revokes, with one token, all tokens of the user for this project, so that tokens are not revoked here",
            source: "https://github.com/Significant-Gravitas/AutoGPT/pull/10493",
        },
    ],
    ..Profile::OPENID
};
