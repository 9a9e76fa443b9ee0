//! GitHub, with an OAuth app, and the format of its token responses.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::{
    providers::profile::{
        AudienceRule, Difference, Profile, PublicClientRule, RefreshTokenRule, RegistrationRule, TokenFormat,
        TokenResponseFormat, WellKnown,
    },
    server::respond::Reply,
};

const APPS: &str = "https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps";

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
    refresh_tokens: RefreshTokenRule::Never,
    public_clients: PublicClientRule::InvalidClient,
    registration: RegistrationRule::None,
    client_documents: false,
    token_response: TokenResponseFormat::GitHub,
    differences: &[
        Difference {
            summary: "answers token requests form-encoded, unless `Accept` has `application/json`, with `scope` separated by commas and `token_type` `bearer`",
            source: APPS,
        },
        Difference {
            summary: "answers errors of the token endpoint with status 200",
            source: "https://github.com/octokit/auth-oauth-app.js/issues/13",
        },
        Difference {
            summary: "names the errors `bad_verification_code` and `incorrect_client_credentials`",
            source: "https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors",
        },
        Difference {
            summary: "issues opaque tokens without `expires_in` and refresh token, and has no parameter `resource`; it is ignored",
            source: APPS,
        },
        Difference { summary: "requires a client secret, with PKCE as well", source: APPS },
        Difference {
            summary: "serves its metadata only at the RFC 8414 location, before the issuer's path",
            source: "https://github.com/github/github-mcp-server/issues/2901",
        },
        Difference {
            summary: "has no registration endpoint and no client metadata documents; introspection and revocation are not standard",
            source: "https://github.com/github/github-mcp-server/issues/2977",
        },
    ],
    ..Profile::STANDARD
};

/// Converts a response of the token endpoint to GitHub's format.
pub(crate) async fn convert_token_response(headers: &HeaderMap, reply: Reply) -> Reply {
    let (mut head, body) = reply.into_parts();
    // The body is already complete.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut members: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(code) = members.get("error").and_then(Value::as_str) {
        let renamed = match code {
            "invalid_grant" => "bad_verification_code",
            "invalid_client" => "incorrect_client_credentials",
            other => other,
        };
        let renamed = Value::from(renamed);
        members.insert("error".to_owned(), renamed);
        head.status = StatusCode::OK;
        head.headers.remove(WWW_AUTHENTICATE);
    } else {
        members.remove("expires_in");
        members.insert("token_type".to_owned(), Value::from("bearer"));
        let scope = members.get("scope").and_then(Value::as_str).unwrap_or_default().replace(' ', ",");
        members.insert("scope".to_owned(), Value::from(scope));
    }
    head.headers.remove(CONTENT_LENGTH);
    let (body, content_type) = if accepts_json(headers) {
        (Value::Object(members).to_string(), "application/json; charset=utf-8")
    } else {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = members.iter().map(|(name, value)| (name, text(value)));
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        (form, "application/x-www-form-urlencoded; charset=utf-8")
    };
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Reply::from_parts(head, Full::new(Bytes::from(body)))
}

/// Returns whether `Accept` names JSON.
fn accepts_json(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).map(|range| range.split(';').next().unwrap_or_default());
    types.any(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}
