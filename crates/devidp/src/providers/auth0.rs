//! The profile of Auth0.

use serde_json::{Map, Value, json};

use crate::providers::profile::{AudienceRule, Difference, FinalSlash, Profile, TokenFormat};

const METADATA_URL: &str = "https://samples.auth0.com/.well-known/openid-configuration";

pub(super) const PROFILE: Profile = Profile {
    final_slash: FinalSlash::WithoutPath,
    omitted_members: &[
        "authorization_response_iss_parameter_supported",
        "client_id_metadata_document_supported",
    ],
    replaced_lists: &[
        (
            "scopes_supported",
            &["openid", "profile", "offline_access", "email"],
        ),
        (
            "token_endpoint_auth_methods_supported",
            &[
                "client_secret_basic",
                "client_secret_post",
                "private_key_jwt",
            ],
        ),
        ("code_challenge_methods_supported", &["S256", "plain"]),
    ],
    sends_issuer: false,
    audience: AudienceRule::AudienceParameter,
    token_format: TokenFormat::OpaqueWithoutAudience,
    rewrite_claims: claims,
    id_token_claims: Some(|claims, _| id_token_claims(claims)),
    user_info_claims,
    client_documents: false,
    differences: &[&[
        Difference {
            summary: "takes the audience from the parameter `audience` and ignores `resource`",
            references: &[
                "https://support.auth0.com/center/s/article/mcp-audience-error-with-auth0",
                "https://community.auth0.com/t/rfc-8707-implementation-audience-vs-resource/188990",
            ],
        },
        Difference {
            summary: "issues an opaque token without `audience`, unless the tenant has a default (`--default-resource`)",
            references: &["https://auth0.com/blog/five-reasons-permissions-not-in-access-token/"],
        },
        Difference {
            summary: "issues tokens with `permissions` and `azp`, without `client_id`",
            references: &[
                "https://auth0.com/docs/get-started/apis/enable-role-based-access-control-for-apis",
            ],
        },
        Difference {
            summary: "issues ID tokens with `nickname`, without `preferred_username`, `auth_time` and `at_hash`",
            references: &["https://auth0.com/docs/secure/tokens/id-tokens/id-token-structure"],
        },
        Difference {
            summary: "has an issuer that ends with a slash",
            references: &[METADATA_URL],
        },
        Difference {
            summary: "does not list `none`, lists only OpenID scopes, has no client metadata documents and sends no `iss` in responses",
            references: &[METADATA_URL],
        },
    ]],
    ..Profile::STANDARD
};

fn claims(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    claims.remove("typ");
    let scope = claims
        .get("scope")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let permissions: Vec<_> = scope
        .split(' ')
        .filter(|name| !name.is_empty() && *name != "offline_access")
        .map(str::to_owned)
        .collect();
    claims.insert("permissions".to_owned(), json!(permissions));
}

fn id_token_claims(claims: &mut Map<String, Value>) {
    user_info_claims(claims);
    for removed in ["auth_time", "at_hash"] {
        claims.remove(removed);
    }
}

fn user_info_claims(claims: &mut Map<String, Value>) {
    if let Some(name) = claims.remove("preferred_username") {
        claims.entry("nickname").or_insert(name);
    }
}
