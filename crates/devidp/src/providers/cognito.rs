//! The profile of Amazon Cognito, with a user pool.

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, Profile, RefreshTokenRule, RegistrationRule, RotationRule, WellKnown,
};

pub(super) const PROFILE: Profile = Profile {
    // The documentation of Cognito uses this user pool in examples.
    issuer_path: "/us-west-2_example",
    well_known: &[WellKnown::OpenIdAppended],
    omitted_members: &[
        "backchannel_logout_session_supported",
        "backchannel_logout_supported",
        "authorization_response_iss_parameter_supported",
        "client_id_metadata_document_supported",
        "code_challenge_methods_supported",
        "device_authorization_endpoint",
        "dpop_signing_alg_values_supported",
        "introspection_endpoint",
        "introspection_endpoint_auth_methods_supported",
        "introspection_endpoint_auth_signing_alg_values_supported",
    ],
    replaced_lists: &[
        ("scopes_supported", &["openid", "email", "phone", "profile"]),
        (
            "token_endpoint_auth_methods_supported",
            &["client_secret_basic", "client_secret_post"],
        ),
    ],
    sends_issuer: false,
    audience: AudienceRule::Default(None),
    rewrite_claims: claims,
    id_token_claims: Some(|claims, _| id_token_claims(claims)),
    user_info_claims,
    user_scopes: &[
        "openid",
        "profile",
        "email",
        "phone",
        "aws.cognito.signin.user.admin",
    ],
    refresh_tokens: RefreshTokenRule::Always,
    rotation: RotationRule::Keep,
    registration: RegistrationRule::None,
    client_documents: false,
    differences: &[&[
        Difference {
            summary: "issues access tokens with `token_use` \"access\", `client_id`, `username` and `version`, without `azp`, and without `aud` unless the request names a resource (here `--default-resource`)",
            references: &[
                "https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html",
            ],
        },
        Difference {
            summary: "issues ID tokens with `token_use` \"id\", `cognito:username` and `cognito:groups`, without `sid`, `groups` and `preferred_username`",
            references: &[
                "https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-id-token.html",
            ],
        },
        Difference {
            summary: "answers at the userinfo endpoint with `username`, without groups, and with strings in place of `true` and `false`",
            references: &[
                "https://docs.aws.amazon.com/cognito/latest/developerguide/userinfo-endpoint.html",
            ],
        },
        Difference {
            summary: "gives a refresh token without `offline_access`; a refresh is answered without one, and the old one stays valid",
            references: &[
                "https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-refresh-token.html",
            ],
        },
        Difference {
            summary: "has no registration and introspection endpoint and no client metadata documents, sends no `iss` in responses, lists only OpenID scopes, and supports PKCE without `code_challenge_methods_supported`",
            references: &[
                "https://docs.aws.amazon.com/cognito/latest/developerguide/federation-endpoints.html",
            ],
        },
    ]],
    ..Profile::STANDARD
};

fn claims(claims: &mut Map<String, Value>) {
    for removed in ["azp", "typ"] {
        claims.remove(removed);
    }
    copy(claims, "sub", "username");
    claims.insert("token_use".to_owned(), json!("access"));
    claims.insert("version".to_owned(), json!(2));
}

fn id_token_claims(claims: &mut Map<String, Value>) {
    for removed in ["sid", "preferred_username"] {
        claims.remove(removed);
    }
    copy(claims, "sub", "cognito:username");
    if let Some(groups) = claims.remove("groups") {
        claims.insert("cognito:groups".to_owned(), groups);
    }
    claims.insert("token_use".to_owned(), json!("id"));
}

fn user_info_claims(claims: &mut Map<String, Value>) {
    for removed in ["groups", "preferred_username"] {
        claims.remove(removed);
    }
    copy(claims, "sub", "username");
    for value in claims.values_mut() {
        if let Value::Bool(flag) = value {
            *value = json!(flag.to_string());
        }
    }
}

fn copy(claims: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = claims.get(from).cloned() {
        claims.insert(to.to_owned(), value);
    }
}
