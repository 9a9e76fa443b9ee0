//! The profile of Authentik.

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, FinalSlash, Profile, RegistrationRule, WellKnown,
};

const METADATA_URL: &str = "https://github.com/goauthentik/authentik/blob/main/authentik/providers/oauth2/views/provider.py";
const TOKEN_URL: &str =
    "https://github.com/goauthentik/authentik/blob/main/authentik/providers/oauth2/id_token.py";

/// The authentication context of a sign-in.
const ACR: &str = "goauthentik.io/providers/oauth2/default";

pub(super) const PROFILE: Profile = Profile {
    issuer_path: "/application/o/mcp",
    final_slash: FinalSlash::Always,
    well_known: &[WellKnown::OpenIdAppended],
    omitted_members: &[
        "authorization_response_iss_parameter_supported",
        "client_id_metadata_document_supported",
    ],
    replaced_lists: &[
        (
            "token_endpoint_auth_methods_supported",
            &["client_secret_post", "client_secret_basic"],
        ),
        ("code_challenge_methods_supported", &["plain", "S256"]),
    ],
    sends_issuer: false,
    audience: AudienceRule::Default(None),
    rewrite_claims: claims,
    id_token_claims: Some(|claims, _| id_token_claims(claims)),
    registration: RegistrationRule::None,
    client_documents: false,
    differences: &[&[
        Difference {
            summary: "issues tokens whose `aud` is the client's identifier, unless a scope mapping sets another (here `--default-resource`), and has no parameter `resource`; it is ignored",
            references: &[
                TOKEN_URL,
                "https://github.com/goauthentik/authentik/issues/4021",
            ],
        },
        Difference {
            summary: "issues tokens with `azp`, `acr` and `uid`, without `client_id`, `jti` and `typ`",
            references: &[TOKEN_URL],
        },
        Difference {
            summary: "issues ID tokens with `acr` and `amr`, without `azp`",
            references: &[TOKEN_URL],
        },
        Difference {
            summary: "has an issuer with a path that ends with a slash, and serves its metadata only at the issuer followed by `.well-known/openid-configuration`",
            references: &[
                "https://docs.goauthentik.io/add-secure-apps/providers/oauth2/",
                METADATA_URL,
            ],
        },
        Difference {
            summary: "has no registration endpoint; since 2026.8, an administrator can enable one that needs an access token",
            references: &[
                "https://docs.goauthentik.io/add-secure-apps/providers/oauth2/dynamic-client-registration/",
            ],
        },
        Difference {
            summary: "does not list `none`, although public clients work, lists the PKCE method `plain`, has no client metadata documents and sends no `iss` in responses",
            references: &[METADATA_URL],
        },
    ]],
    ..Profile::STANDARD
};

fn claims(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    claims.remove("typ");
    if let Some(identifier) = claims.remove("jti") {
        claims.insert("uid".to_owned(), identifier);
    }
    claims.insert("acr".to_owned(), json!(ACR));
    if let Some(client) = claims.get("azp").cloned() {
        claims.entry("aud").or_insert(client);
    }
}

fn id_token_claims(claims: &mut Map<String, Value>) {
    claims.entry("acr").or_insert(json!(ACR));
    claims.entry("amr").or_insert(json!(["pwd"]));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K1: the audience is the client's identifier, unless there is another one.
    #[test]
    fn the_audience_is_the_client() {
        let issued =
            json!({ "azp": "c", "client_id": "c", "jti": "j", "typ": "Bearer", "scope": "a" });
        let acr = "goauthentik.io/providers/oauth2/default";
        for (audience, expected) in [
            (None, "c"),
            (
                Some("https://mcp.example.com/mcp"),
                "https://mcp.example.com/mcp",
            ),
        ] {
            let mut issued = issued.as_object().unwrap().clone();
            issued.extend(audience.map(|audience| ("aud".to_owned(), json!(audience))));
            claims(&mut issued);
            let rewritten =
                json!({ "azp": "c", "uid": "j", "scope": "a", "acr": acr, "aud": expected });
            assert_eq!(Value::Object(issued), rewritten);
        }
    }
}
