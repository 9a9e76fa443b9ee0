//! Microsoft Entra ID.

use serde_json::{Map, Value, json};

use crate::providers::profile::{
    AudienceRule, Difference, OtherDocument, Profile, RegistrationRule, RotationRule, WellKnown,
};

/// The tenant. Microsoft's documentation uses it in examples.
macro_rules! tenant {
    () => {
        "aaaabbbb-0000-cccc-1111-dddd2222eeee"
    };
}

/// The application identifier of the API that tokens are issued for. Microsoft's documentation uses it in examples.
macro_rules! api {
    () => {
        "00001111-aaaa-2222-bbbb-3333cccc4444"
    };
}

const METADATA: &str = "https://login.microsoftonline.com/common/v2.0/.well-known/openid-configuration";
const CLAIMS: &str = "https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference";
const CODE_FLOW: &str = "https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow";

const fn difference(summary: &'static str, source: &'static str) -> Difference {
    Difference { summary, source }
}

const RESOURCE: Difference = difference(
    "rejects a `resource` that is not the prefix of the requested scopes (AADSTS9010010)",
    "https://github.com/microsoft/powerbi-modeling-mcp/issues/68, https://github.com/microsoft/azure-devops-mcp/issues/1511",
);
const SCOPES: Difference = difference(
    "requires `scope`, and names scopes `api://ID/NAME` or `api://ID/.default` in requests and responses (AADSTS650053)",
    "https://learn.microsoft.com/en-us/entra/identity-platform/scopes-oidc, https://github.com/anthropics/claude-code/issues/73460",
);
const REFRESH_SCOPE: Difference = difference(
    "rejects a refresh request without `scope` where the client and the API are one application (AADSTS90009); imitated for every client",
    "https://github.com/punkpeye/mcp-remote/pull/357, https://github.com/modelcontextprotocol/typescript-sdk/issues/2718",
);
const KEEPS_REFRESH_TOKENS: Difference =
    difference("answers a refresh with a new refresh token and keeps the old one valid", CODE_FLOW);
const NO_PKCE: Difference = difference(
    "supports PKCE without `code_challenge_methods_supported`",
    "https://github.com/modelcontextprotocol/typescript-sdk/issues/832",
);
const ONE_LOCATION: Difference = difference(
    "serves its metadata only at the issuer followed by `/.well-known/openid-configuration`",
    "https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc",
);
const FEWER_MEMBERS: Difference = difference(
    "has no registration, introspection and revocation endpoint, no client metadata documents and no `iss` in responses, and lists only OpenID scopes",
    METADATA,
);
const TEMPLATE: Difference = difference(
    "answers for the tenant `common` with an issuer that contains the placeholder `{tenantid}`, and without `v2.0` with the issuer of version 1.0",
    METADATA,
);

/// The differences of both versions, and those of one version.
macro_rules! differences {
    ($($own:expr),+ $(,)?) => {
        &[
            RESOURCE,
            SCOPES,
            REFRESH_SCOPE,
            KEEPS_REFRESH_TOKENS,
            NO_PKCE,
            ONE_LOCATION,
            FEWER_MEMBERS,
            TEMPLATE,
            $($own),+
        ]
    };
}

/// Tokens of version 2.0.
pub(super) const V2: Profile = Profile {
    issuer_path: concat!("/", tenant!(), "/v2.0"),
    well_known: &[WellKnown::OpenIdAppended],
    other_documents: &[
        OtherDocument { path: "/common/v2.0/.well-known/openid-configuration", issuer_path: "/{tenantid}/v2.0" },
        OtherDocument { path: "/common/.well-known/openid-configuration", issuer_path: "/sts.windows.net/{tenantid}/" },
        OtherDocument {
            path: concat!("/", tenant!(), "/.well-known/openid-configuration"),
            issuer_path: V1_ISSUER_PATH,
        },
        OtherDocument {
            path: concat!("/sts.windows.net/", tenant!(), "/.well-known/openid-configuration"),
            issuer_path: V1_ISSUER_PATH,
        },
    ],
    omitted_members: &[
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
        ("scopes_supported", &["openid", "profile", "email", "offline_access"]),
        ("token_endpoint_auth_methods_supported", &["client_secret_post", "private_key_jwt"]),
        ("subject_types_supported", &["pairwise"]),
    ],
    sends_issuer: false,
    audience: AudienceRule::Fixed(api!()),
    scope_prefix: Some(concat!("api://", api!())),
    rewrite_claims: claims_v2,
    rotation: RotationRule::KeepOld,
    refresh_requires_scope: true,
    registration: RegistrationRule::None,
    client_documents: false,
    differences: differences![difference(
        "issues tokens whose `aud` is the API's application identifier (a UUID), with `scp`, `azp`, `tid`, `uti` and `ver` \"2.0\", without `scope`, `client_id` and `jti`",
        CLAIMS,
    ),],
    ..Profile::STANDARD
};

/// Tokens of version 1.0.
pub(super) const V1: Profile = Profile {
    audience: AudienceRule::Fixed(concat!("api://", api!())),
    token_issuer_path: Some(V1_ISSUER_PATH),
    rewrite_claims: claims_v1,
    differences: differences![
        difference(
            "issues tokens whose `aud` is `api://ID`, with `scp`, `appid`, `tid`, `uti` and `ver` \"1.0\", without `scope`, `azp`, `client_id` and `jti`",
            CLAIMS,
        ),
        difference(
            "issues tokens of another issuer than that of the metadata: `https://sts.windows.net/TENANT/`, here `/sts.windows.net/TENANT/` on this server",
            "https://login.microsoftonline.com/common/.well-known/openid-configuration",
        ),
    ],
    ..V2
};

const V1_ISSUER_PATH: &str = concat!("/sts.windows.net/", tenant!(), "/");

fn claims_v2(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    claims.insert("azpacr".to_owned(), json!("0"));
    rewrite(claims, "2.0");
}

fn claims_v1(claims: &mut Map<String, Value>) {
    claims.remove("client_id");
    if let Some(client) = claims.remove("azp") {
        claims.insert("appid".to_owned(), client);
    }
    claims.insert("appidacr".to_owned(), json!("0"));
    rewrite(claims, "1.0");
}

fn rewrite(claims: &mut Map<String, Value>, version: &str) {
    for (name, renamed) in [("scope", "scp"), ("jti", "uti")] {
        if let Some(value) = claims.remove(name) {
            claims.insert(renamed.to_owned(), value);
        }
    }
    for removed in ["typ", "auth_time"] {
        claims.remove(removed);
    }
    claims.insert("tid".to_owned(), json!(tenant!()));
    claims.insert("ver".to_owned(), json!(version));
    if let Some(issued_at) = claims.get("iat").cloned() {
        claims.insert("nbf".to_owned(), issued_at);
    }
}
