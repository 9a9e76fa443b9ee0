//! The profile of Google.

use crate::providers::profile::{
    AudienceRule, Difference, Profile, PublicClientRule, RefreshTokenRule, RegistrationRule,
    RotationRule, TokenFormat,
};

pub(super) const PROFILE: Profile = Profile {
    omitted_members: &[
        "client_id_metadata_document_supported",
        "dpop_signing_alg_values_supported",
        "introspection_endpoint",
        "introspection_endpoint_auth_methods_supported",
        "introspection_endpoint_auth_signing_alg_values_supported",
    ],
    replaced_lists: &[
        ("scopes_supported", &["openid", "email", "profile"]),
        (
            "token_endpoint_auth_methods_supported",
            &["client_secret_post", "client_secret_basic"],
        ),
        ("code_challenge_methods_supported", &["plain", "S256"]),
    ],
    audience: AudienceRule::Default(None),
    token_format: TokenFormat::Opaque("ya29."),
    refresh_tokens: RefreshTokenRule::AccessType,
    rotation: RotationRule::Keep,
    public_clients: PublicClientRule::MissingSecret,
    registration: RegistrationRule::None,
    client_documents: false,
    differences: &[&[
        Difference {
            summary: "gives a refresh token only for `access_type=offline`, and after a user's first approval only with `prompt=consent`",
            references: &["https://developers.google.com/identity/protocols/oauth2/web-server"],
        },
        Difference {
            summary: "answers a refresh without a refresh token; the old one stays valid",
            references: &["https://developers.google.com/identity/protocols/oauth2/web-server"],
        },
        Difference {
            summary: "refuses a token request without a client secret, with PKCE as well (`invalid_request`, \"client_secret is missing.\")",
            references: &[
                "https://github.com/taylorwilsdon/google_workspace_mcp/issues/1008",
                "https://github.com/googleapis/google-api-dotnet-client/issues/1827",
            ],
        },
        Difference {
            summary: "issues opaque access tokens",
            references: &["https://docs.cloud.google.com/docs/authentication/token-types"],
        },
        Difference {
            summary: "has no parameter `resource`; it is ignored",
            references: &["https://developers.google.com/identity/protocols/oauth2/web-server"],
        },
        Difference {
            summary: "has no registration and introspection endpoint and no client metadata documents, and lists only OpenID scopes, `client_secret_post` and `client_secret_basic`",
            references: &["https://accounts.google.com/.well-known/openid-configuration"],
        },
    ]],
    ..Profile::STANDARD
};
