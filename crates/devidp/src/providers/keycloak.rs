//! The profile of Keycloak.

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, IdTokenContext, Profile, RefreshTokenRule, RegistrationRule,
    WellKnown,
};

const MEASURED: &str = "measured with Keycloak 26.7.3";

pub(super) const PROFILE: Profile = Profile {
    issuer_path: "/realms/mcp",
    well_known: &[
        WellKnown::OAuthInserted,
        WellKnown::OAuthAppended,
        WellKnown::OpenIdAppended,
    ],
    omitted_members: &["client_id_metadata_document_supported"],
    replaced_lists: &[
        (
            "token_endpoint_auth_methods_supported",
            &[
                "private_key_jwt",
                "client_secret_basic",
                "client_secret_post",
                "tls_client_auth",
                "client_secret_jwt",
            ],
        ),
        ("code_challenge_methods_supported", &["plain", "S256"]),
    ],
    sends_session_state: true,
    audience: AudienceRule::DefaultWithSingleResource,
    rewrite_claims: claims,
    id_token_claims: Some(id_token_claims),
    refresh_tokens: RefreshTokenRule::Always,
    registration: RegistrationRule::Strict,
    client_documents: false,
    differences: &[&[
        Difference {
            summary: "ignores `resource`, and rejects two of them (\"duplicated parameter\")",
            references: &[
                MEASURED,
                "https://github.com/keycloak/keycloak/issues/14355",
            ],
        },
        Difference {
            summary: "issues tokens without `aud` unless a mapper adds it (here `--default-resource`), with `azp` and `preferred_username`, without `client_id`",
            references: &[MEASURED],
        },
        Difference {
            summary: "issues ID tokens with `typ` \"ID\", `azp` and `acr`",
            references: &[
                "https://github.com/keycloak/keycloak/blob/main/core/src/main/java/org/keycloak/representations/IDToken.java",
            ],
        },
        Difference {
            summary: "does not list `none`, although public clients work, and lists the PKCE method `plain`",
            references: &[MEASURED],
        },
        Difference {
            summary: "serves no metadata at `/.well-known/openid-configuration` followed by the issuer's path",
            references: &[MEASURED],
        },
        Difference {
            summary: "gives a refresh token without `offline_access`",
            references: &[MEASURED],
        },
        Difference {
            summary: "adds `session_state` to authorization responses",
            references: &[MEASURED],
        },
        Difference {
            summary: "rejects a registration with an unknown member (400) or with an unknown scope, `openid` included (403, `insufficient_scope`)",
            references: &[MEASURED],
        },
        Difference {
            summary: "has no client metadata documents by default",
            references: &[MEASURED],
        },
    ]],
    ..Profile::STANDARD
};

fn claims(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    if let Some(subject) = claims.get("sub").cloned() {
        claims.insert("preferred_username".to_owned(), subject);
    }
}

fn id_token_claims(claims: &mut Map<String, Value>, context: &IdTokenContext<'_>) {
    claims.insert("typ".to_owned(), json!("ID"));
    claims.insert("azp".to_owned(), json!(context.client_id));
    claims.entry("acr").or_insert(json!("1"));
}
