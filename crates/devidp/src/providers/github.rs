//! The profile of GitHub, with an OAuth app.

pub(crate) mod token_response;

use crate::providers::profile::{
    AudienceRule, Difference, Profile, PublicClientRule, RefreshTokenRule, RegistrationRule,
    TokenFormat, TokenResponseFormat, WellKnown,
};

const APPS_URL: &str =
    "https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps";

pub(super) const PROFILE: Profile = Profile {
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
    differences: &[&[
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
            summary: "issues opaque tokens without `expires_in` and refresh token, and has no parameter `resource`; it is ignored",
            references: &[APPS_URL],
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
    ]],
    ..Profile::STANDARD
};
