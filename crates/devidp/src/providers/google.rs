//! The profile of Google.

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, IdTokenContext, Profile, PublicClientRule, RefreshTokenRule,
    RegistrationRule, RotationRule, TokenFormat,
};

pub(super) const PROFILE: Profile = Profile {
    omitted_members: &[
        "backchannel_logout_session_supported",
        "backchannel_logout_supported",
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
    id_token_claims: Some(id_token_claims),
    user_info_claims,
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
            summary: "issues ID tokens with `azp` and, for users of a domain other than gmail.com, `hd`, without `auth_time`, `sid`, `preferred_username` and `groups`",
            references: &["https://developers.google.com/identity/openid-connect/openid-connect"],
        },
        Difference {
            summary: "has no registration and introspection endpoint and no client metadata documents, and lists only OpenID scopes, `client_secret_post` and `client_secret_basic`",
            references: &["https://accounts.google.com/.well-known/openid-configuration"],
        },
    ]],
    ..Profile::STANDARD
};

fn id_token_claims(claims: &mut Map<String, Value>, context: &IdTokenContext<'_>) {
    user_info_claims(claims);
    for removed in ["auth_time", "sid"] {
        claims.remove(removed);
    }
    claims.insert("azp".to_owned(), json!(context.client_id));
}

/// Removes what Google does not say about a user, and adds the domain of a user of Google
/// Workspace.
fn user_info_claims(claims: &mut Map<String, Value>) {
    for removed in ["preferred_username", "groups"] {
        claims.remove(removed);
    }
    let address = claims.get("email").and_then(Value::as_str);
    let domain = address.and_then(|address| address.rsplit_once('@'));
    if let Some(domain) = domain.map(|(_, domain)| domain.to_owned())
        && domain != "gmail.com"
    {
        claims.entry("hd").or_insert_with(|| json!(domain));
    }
}
