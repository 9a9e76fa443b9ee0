//! GitHub, with an OAuth app or a GitHub App.

use super::{Identifier, OfflineAccess, Profile, Protocol, Quirk, UserApi};
use crate::ClientAuthentication;

pub(super) const PROFILE: Profile = Profile {
    protocol: Protocol::GitHub,
    scopes: &[],
    offline_access: OfflineAccess::NotRequested,
    client_authentication: Some(ClientAuthentication::Post),
    identifier: Identifier::AccountNumber,
    user_api: UserApi::Always,
    quirks: &[
        Quirk {
            summary: "has no ID tokens: the user comes from `GET /user`, and `id` is the stable identifier, because a login can be renamed and taken by another user",
            source: "https://docs.github.com/en/rest/users/users",
        },
        Quirk {
            summary: "supports PKCE with S256 since July 2025, for OAuth apps and GitHub Apps",
            source: "https://github.blog/changelog/2025-07-14-pkce-support-for-oauth-and-github-app-authentication/",
        },
        Quirk {
            summary: "answers errors of the token endpoint with status 200, with the error names `bad_verification_code` and `incorrect_client_credentials`",
            source: "https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors",
        },
        Quirk {
            summary: "gives tokens of an OAuth app that do not expire, and tokens of a GitHub App that expire after 8 hours with a refresh token that is used once (`bad_refresh_token`)",
            source: "https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens",
        },
        Quirk {
            summary: "lists the organizations of a user for the scope `read:org`, without those that restrict OAuth apps and have not approved this one",
            source: "https://docs.github.com/en/rest/orgs/orgs#list-organizations-for-the-authenticated-user",
        },
        Quirk {
            summary: "sends `iss` with the value `https://github.com/login/oauth` in authorization responses",
            source: "https://github.com/openiddict/openiddict-core/pull/2529",
        },
        Quirk {
            summary: "revokes one token by `DELETE /applications/CLIENT_ID/token` with HTTP Basic authentication",
            source: "https://docs.github.com/en/rest/apps/oauth-applications#delete-an-app-token",
        },
        Quirk {
            summary: "answers 403 or 429 with `x-ratelimit-remaining: 0` or `retry-after` when a limit is reached",
            source: "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api",
        },
    ],
    ..Profile::OPENID
};
