//! The profiles of GitHub, with an OAuth app and with a GitHub App.

pub(crate) mod token_response;

use crate::providers::profile::{
    AudienceRule, Difference, Profile, PublicClientRule, RefreshTokenRule, RegistrationRule,
    TokenFormat, TokenResponseFormat, WellKnown,
};

const APPS_URL: &str =
    "https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps";

/// An OAuth app.
pub(super) const OAUTH_APP: Profile = Profile {
    issuer_path: "/login/oauth",
    well_known: &[WellKnown::OAuthInserted],
    omitted_members: &[
        "client_id_metadata_document_supported",
        "dpop_signing_alg_values_supported",
        "introspection_endpoint",
        "introspection_endpoint_auth_methods_supported",
        "introspection_endpoint_auth_signing_alg_values_supported",
        "revocation_endpoint",
        "revocation_endpoint_auth_methods_supported",
        "revocation_endpoint_auth_signing_alg_values_supported",
    ],
    audience: AudienceRule::Default(None),
    token_format: TokenFormat::Opaque("gho_"),
    id_token_claims: None,
    user_scopes: &["read:user", "user:email", "read:org", "user"],
    refresh_tokens: RefreshTokenRule::Never,
    public_clients: PublicClientRule::InvalidClient,
    registration: RegistrationRule::None,
    client_documents: false,
    token_response: TokenResponseFormat::GitHub,
    differences: &[BOTH_APPS, TOKENS_OF_OAUTH_APP],
    ..Profile::STANDARD
};

/// A GitHub App whose user access tokens expire.
pub(super) const GITHUB_APP: Profile = Profile {
    token_format: TokenFormat::Opaque("ghu_"),
    has_scopes: false,
    refresh_token_prefix: "ghr_",
    refresh_tokens: RefreshTokenRule::Always,
    token_response: TokenResponseFormat::GitHubApp,
    differences: &[BOTH_APPS, TOKENS_OF_GITHUB_APP],
    ..OAUTH_APP
};

const BOTH_APPS: &[Difference] = &[
    Difference {
        summary: "answers token requests form-encoded, unless `Accept` has `application/json`, with `scope` separated by commas and `token_type` `bearer`",
        references: &[APPS_URL],
    },
    Difference {
        summary: "answers errors of the token endpoint with status 200",
        references: &["https://github.com/octokit/auth-oauth-app.js/issues/13"],
    },
    Difference {
        summary: "names the errors `bad_verification_code` and `incorrect_client_credentials`",
        references: &[
            "https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors",
        ],
    },
    Difference {
        summary: "requires a client secret, with PKCE as well",
        references: &[APPS_URL],
    },
    Difference {
        summary: "serves its metadata only at the RFC 8414 location, before the issuer's path",
        references: &["https://github.com/github/github-mcp-server/issues/2901"],
    },
    Difference {
        summary: "has no registration endpoint and no client metadata documents; introspection and revocation are not standard",
        references: &["https://github.com/github/github-mcp-server/issues/2977"],
    },
    Difference {
        summary: "has no ID tokens and no userinfo endpoint; `/user`, `/user/emails`, `/user/orgs` and `/user/teams`, also below `/api/v3`, say who the user is, with a numeric `id`",
        references: &["https://docs.github.com/en/rest/users/users"],
    },
    Difference {
        summary: "rejects requests to its API without `User-Agent` (403) and with an `Accept` other than JSON (415)",
        references: &[
            "https://docs.github.com/en/rest/using-the-rest-api/getting-started-with-the-rest-api",
        ],
    },
    Difference {
        summary: "revokes a token with `DELETE /applications/CLIENT_ID/token`, and the user's approval with `DELETE /applications/CLIENT_ID/grant`",
        references: &["https://docs.github.com/en/rest/apps/oauth-applications"],
    },
    Difference {
        summary: "needs neither `response_type` nor `grant_type` for a code, and exchanges it at `/login/oauth/access_token`, here also at `/login/oauth/token`",
        references: &[APPS_URL],
    },
];

const TOKENS_OF_OAUTH_APP: &[Difference] = &[
    Difference {
        summary: "issues opaque tokens without `expires_in` and refresh token, and has no parameter `resource`; it is ignored",
        references: &[APPS_URL],
    },
    Difference {
        summary: "answers `/user/orgs` and `/user/teams` only for the scope `read:org`, and `/user/emails` for `user:email` (403); `user` includes both",
        references: &[
            "https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps",
        ],
    },
];

const TOKENS_OF_GITHUB_APP: &[Difference] = &[
    Difference {
        summary: "issues opaque tokens (`ghu_`) without scopes, and refresh tokens (`ghr_`) with `refresh_token_expires_in`; each use replaces the refresh token",
        references: &[
            "https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens",
        ],
    },
    Difference {
        summary: "names the error of a wrong refresh token `bad_refresh_token`",
        references: &[
            "https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens",
        ],
    },
];
