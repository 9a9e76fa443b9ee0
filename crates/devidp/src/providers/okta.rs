//! The profile of Okta, with a custom authorization server.

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, IdTokenContext, Profile, RegistrationRule, WellKnown,
};

const REFERENCE_URL: &str = "https://developer.okta.com/docs/reference/api/oidc/";

pub(super) const PROFILE: Profile = Profile {
    issuer_path: "/oauth2/default",
    well_known: &[WellKnown::OAuthAppended, WellKnown::OpenIdAppended],
    omitted_members: &[
        "backchannel_logout_session_supported",
        "backchannel_logout_supported",
        "authorization_response_iss_parameter_supported",
        "client_id_metadata_document_supported",
    ],
    replaced_lists: &[(
        "scopes_supported",
        &[
            "openid",
            "profile",
            "email",
            "address",
            "phone",
            "offline_access",
        ],
    )],
    sends_issuer: false,
    audience: AudienceRule::Default(Some("api://default")),
    rewrite_claims: claims,
    id_token_claims: Some(id_token_claims),
    registration: RegistrationRule::ApiToken,
    client_documents: false,
    differences: &[&[
        Difference {
            summary: "issues tokens with the audience of the authorization server (`api://default`, or `--default-resource`); it does not support `resource` (RFC 8707), which this server ignores",
            references: &[
                "https://developer.okta.com/docs/concepts/auth-servers/",
                "https://support.okta.com/help/s/article/oidc-does-okta-support-the-resource-parameter-and-audience-switching",
            ],
        },
        Difference {
            summary: "issues tokens with `scp` (an array), `cid`, `uid` and `ver` 1, without `scope`, `azp` and `client_id`",
            references: &[REFERENCE_URL],
        },
        Difference {
            summary: "issues ID tokens with `ver` 1, `amr` and `idp`, without `email_verified`, which the userinfo endpoint has",
            references: &[REFERENCE_URL],
        },
        Difference {
            summary: "announces a registration endpoint that needs an API token (401, E0000011)",
            references: &[
                "https://github.com/modelcontextprotocol/modelcontextprotocol/issues/695",
            ],
        },
        Difference {
            summary: "serves its metadata only at the issuer followed by the well-known path",
            references: &[REFERENCE_URL],
        },
        Difference {
            summary: "does not list custom scopes, has no client metadata documents and sends no `iss` in responses",
            references: &[REFERENCE_URL],
        },
    ]],
    ..Profile::STANDARD
};

/// Renames claims as Okta does, and adds `uid` and `ver`.
fn claims(claims: &mut Map<String, Value>) {
    claims.remove("azp");
    claims.remove("typ");
    if let Some(client) = claims.remove("client_id") {
        claims.insert("cid".to_owned(), client);
    }
    if let Some(subject) = claims.get("sub").cloned() {
        claims.insert("uid".to_owned(), subject);
    }
    if let Some(scope) = claims.remove("scope") {
        let names: Vec<_> = scope
            .as_str()
            .unwrap_or_default()
            .split(' ')
            .filter(|name| !name.is_empty())
            .collect();
        claims.insert("scp".to_owned(), json!(names));
    }
    claims.insert("ver".to_owned(), json!(1));
}

fn id_token_claims(claims: &mut Map<String, Value>, _: &IdTokenContext<'_>) {
    claims.remove("email_verified");
    for (name, value) in [
        ("ver", json!(1)),
        ("amr", json!(["pwd"])),
        ("idp", json!("00o1dev0local0idp0h7")),
    ] {
        claims.entry(name).or_insert(value);
    }
}
