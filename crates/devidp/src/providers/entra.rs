//! The profiles of Microsoft Entra ID, for tokens of version 2.0 and 1.0.

mod id_token;

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, OtherDocument, Profile, RegistrationRule, RotationRule, WellKnown,
};

/// The tenant, in the paths below too. Microsoft's documentation uses it in examples.
const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

/// The application identifier of the API that tokens are issued for. Microsoft's documentation uses
/// it in examples.
const API: &str = "00001111-aaaa-2222-bbbb-3333cccc4444";
/// The same as a URI, which is the prefix of the API's scopes.
const API_URI: &str = "api://00001111-aaaa-2222-bbbb-3333cccc4444";

const V1_ISSUER_PATH: &str = "/sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/";

/// Tokens of version 2.0.
pub(super) const V2: Profile = Profile {
    issuer_path: "/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
    well_known: &[WellKnown::OpenIdAppended],
    other_documents: &[
        OtherDocument {
            path: "/common/v2.0/.well-known/openid-configuration",
            issuer_path: "/{tenantid}/v2.0",
        },
        OtherDocument {
            path: "/common/.well-known/openid-configuration",
            issuer_path: "/sts.windows.net/{tenantid}/",
        },
        OtherDocument {
            path: "/aaaabbbb-0000-cccc-1111-dddd2222eeee/.well-known/openid-configuration",
            issuer_path: V1_ISSUER_PATH,
        },
        OtherDocument {
            path: "/sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/.well-known/openid-configuration",
            issuer_path: V1_ISSUER_PATH,
        },
    ],
    omitted_members: &[
        "backchannel_logout_session_supported",
        "backchannel_logout_supported",
        "authorization_response_iss_parameter_supported",
        "client_id_metadata_document_supported",
        "code_challenge_methods_supported",
        "introspection_endpoint",
        "introspection_endpoint_auth_methods_supported",
        "introspection_endpoint_auth_signing_alg_values_supported",
        "revocation_endpoint",
        "revocation_endpoint_auth_methods_supported",
        "revocation_endpoint_auth_signing_alg_values_supported",
        "dpop_signing_alg_values_supported",
    ],
    replaced_lists: &[
        (
            "scopes_supported",
            &["openid", "profile", "email", "offline_access"],
        ),
        (
            "token_endpoint_auth_methods_supported",
            &["client_secret_post", "private_key_jwt"],
        ),
        ("subject_types_supported", &["pairwise"]),
    ],
    sends_issuer: false,
    audience: AudienceRule::Fixed(API),
    scope_prefix: Some(API_URI),
    rewrite_claims: claims_v2,
    id_token_claims: Some(id_token::claims),
    user_info_claims: id_token::user_info,
    rotation: RotationRule::KeepOld,
    refresh_requires_scope: true,
    registration: RegistrationRule::None,
    client_documents: false,
    differences: &[BOTH_VERSIONS, TOKENS_OF_V2],
    ..Profile::STANDARD
};

/// Tokens of version 1.0.
pub(super) const V1: Profile = Profile {
    audience: AudienceRule::Fixed(API_URI),
    token_issuer_path: Some(V1_ISSUER_PATH),
    rewrite_claims: claims_v1,
    differences: &[BOTH_VERSIONS, TOKENS_OF_V1],
    ..V2
};

const METADATA_URL: &str =
    "https://login.microsoftonline.com/common/v2.0/.well-known/openid-configuration";
const CLAIMS_URL: &str =
    "https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference";

const BOTH_VERSIONS: &[Difference] = &[
    Difference {
        summary: "rejects a `resource` that is not the prefix of the requested scopes (AADSTS9010010)",
        references: &[
            "https://github.com/microsoft/powerbi-modeling-mcp/issues/68",
            "https://github.com/microsoft/azure-devops-mcp/issues/1511",
        ],
    },
    Difference {
        summary: "requires `scope`, and names scopes `api://ID/NAME` or `api://ID/.default` in requests and responses (AADSTS650053)",
        references: &[
            "https://learn.microsoft.com/en-us/entra/identity-platform/scopes-oidc",
            "https://github.com/anthropics/claude-code/issues/73460",
        ],
    },
    Difference {
        summary: "rejects a refresh request without `scope` where the client and the API are one application (AADSTS90009); imitated for every client",
        references: &[
            "https://github.com/punkpeye/mcp-remote/pull/357",
            "https://github.com/modelcontextprotocol/typescript-sdk/issues/2718",
        ],
    },
    Difference {
        summary: "answers a refresh with a new refresh token and keeps the old one valid",
        references: &[
            "https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow",
        ],
    },
    Difference {
        summary: "supports PKCE without `code_challenge_methods_supported`",
        references: &["https://github.com/modelcontextprotocol/typescript-sdk/issues/832"],
    },
    Difference {
        summary: "serves its metadata only at the issuer followed by `/.well-known/openid-configuration`",
        references: &[
            "https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc",
        ],
    },
    Difference {
        summary: "has no registration, introspection and revocation endpoint, no client metadata documents and no `iss` in responses, and lists only OpenID scopes",
        references: &[METADATA_URL],
    },
    Difference {
        summary: "answers for the tenant `common` with an issuer that contains the placeholder `{tenantid}`, and without `v2.0` with the issuer of version 1.0",
        references: &[METADATA_URL],
    },
    Difference {
        summary: "issues ID tokens of version 2.0 with `tid` and `ver`, with `oid` for the scope `profile`, and with identifiers (UUIDs) in `groups`, without `auth_time`, `at_hash` and `email_verified`",
        references: &[
            "https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference",
        ],
    },
    Difference {
        summary: "has no `groups`, `oid` and `tid` at the userinfo endpoint",
        references: &["https://learn.microsoft.com/en-us/entra/identity-platform/userinfo"],
    },
];

const TOKENS_OF_V2: &[Difference] = &[Difference {
    summary: "issues tokens whose `aud` is the API's application identifier (a UUID), with `scp`, `azp`, `tid`, `uti` and `ver` \"2.0\", without `scope`, `client_id` and `jti`",
    references: &[CLAIMS_URL],
}];

const TOKENS_OF_V1: &[Difference] = &[
    Difference {
        summary: "issues tokens whose `aud` is `api://ID`, with `scp`, `appid`, `tid`, `uti` and `ver` \"1.0\", without `scope`, `azp`, `client_id` and `jti`",
        references: &[CLAIMS_URL],
    },
    Difference {
        summary: "issues tokens of another issuer than that of the metadata: `https://sts.windows.net/TENANT/`, here `/sts.windows.net/TENANT/` on this server",
        references: &["https://login.microsoftonline.com/common/.well-known/openid-configuration"],
    },
];

fn claims_v2(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    claims.insert("azpacr".to_owned(), json!("0"));
    claims_of_both(claims, "2.0");
}

fn claims_v1(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    if let Some(client) = claims.remove("azp") {
        claims.insert("appid".to_owned(), client);
    }
    claims.insert("appidacr".to_owned(), json!("0"));
    claims_of_both(claims, "1.0");
}

/// Renames and removes the claims in which both versions differ from a JWT access token (RFC 9068),
/// and adds their own.
fn claims_of_both(claims: &mut Map<String, Value>, version: &str) {
    for (name, renamed) in [("scope", "scp"), ("jti", "uti")] {
        if let Some(value) = claims.remove(name) {
            claims.insert(renamed.to_owned(), value);
        }
    }
    for removed in ["typ", "auth_time"] {
        claims.remove(removed);
    }
    claims.insert("tid".to_owned(), json!(TENANT));
    claims.insert("ver".to_owned(), json!(version));
    if let Some(issued_at) = claims.get("iat").cloned() {
        claims.insert("nbf".to_owned(), issued_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_identifiers_have_the_same_tenant_and_api() {
        assert_eq!(V2.issuer_path, format!("/{TENANT}/v2.0"));
        assert_eq!(V1_ISSUER_PATH, format!("/sts.windows.net/{TENANT}/"));
        assert_eq!(API_URI, format!("api://{API}"));
        for OtherDocument { path, .. } in V2.other_documents {
            assert!(
                path.starts_with("/common/") || path.contains(&format!("/{TENANT}/")),
                "{path}"
            );
        }
    }

    /// K1: claims are renamed as in tokens of each version.
    #[test]
    fn claims_have_the_names_of_their_version() {
        let issued = json!({ "azp": "c", "client_id": "c", "scope": "a", "jti": "j", "typ": "t", "auth_time": 1, "iat": 5 });
        let common = json!({ "scp": "a", "uti": "j", "iat": 5, "nbf": 5, "tid": TENANT });
        for (rewrite, own) in [
            (
                V2.rewrite_claims,
                json!({ "azp": "c", "azpacr": "0", "ver": "2.0" }),
            ),
            (
                V1.rewrite_claims,
                json!({ "appid": "c", "appidacr": "0", "ver": "1.0" }),
            ),
        ] {
            let mut claims = issued.as_object().unwrap().clone();
            rewrite(&mut claims);
            let mut expected = common.as_object().unwrap().clone();
            expected.extend(own.as_object().unwrap().clone());
            assert_eq!(claims, expected);
        }
    }
}
