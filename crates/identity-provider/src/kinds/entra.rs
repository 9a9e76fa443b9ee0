//! Microsoft Entra ID.

use super::{Identifier, Profile, Quirk, UserApi};

pub(super) const PROFILE: Profile = Profile {
    repeats_scope: true,
    identifier: Identifier::TenantAndObject,
    user_api: UserApi::Never,
    revokes_one_sign_in: false,
    quirks: &[
        Quirk {
            summary: "identifies a user by `tid` and `oid`; `sub` differs for each application, and `oid` needs the scope `profile`",
            source: "https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference",
        },
        Quirk {
            summary: "leaves out `groups` if there are more than 200, and names it in `_claim_names` or sends `hasgroups`",
            source: "https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference",
        },
        Quirk {
            summary: "supports PKCE, which its metadata does not list",
            source: "https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow",
        },
        Quirk {
            summary: "can require `scope` in a refresh request (AADSTS90023)",
            source: "https://learn.microsoft.com/en-us/answers/questions/1822191/how-to-fix-aadsts90023-the-request-is-not-valid-th",
        },
        Quirk {
            summary: "signs users of any organization in at `organizations`, with the issuer of their tenant in the ID token",
            source: "https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc",
        },
        Quirk {
            summary: "has a user API without `oid` and `tid`, and no revocation endpoint",
            source: "https://learn.microsoft.com/en-us/entra/identity-platform/userinfo",
        },
    ],
    ..Profile::OPENID
};
