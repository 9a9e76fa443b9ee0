//! The audience of a token, as the imitated provider chooses it.

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params,
    resource::{check_resource, parse_resource, single_resource},
    scopes::parse_scopes,
};
use portcullis_metadata::ResourceUri;

use crate::{config::Config, providers::profile::AudienceRule, token::id_tokens::OPENID};

/// The maximum length of the parameter `audience` in bytes.
const MAX_AUDIENCE: usize = 600;

/// Returns the audience of the tokens for a request: its `resource` (RFC 8707 section 2), of which
/// only one is supported, or the value that the imitated provider uses instead. Fails when
/// `resource` is invalid, repeated, or missing without a default, if the imitated provider reads
/// it, and when `audience` is too long, if the imitated provider reads that.
pub(super) fn parse_audience(
    config: &Config,
    params: &Params,
) -> Result<Option<Box<str>>, ErrorResponse> {
    let default = config
        .settings
        .default_resource
        .as_ref()
        .map(ResourceUri::as_str);
    let audience = match config.profile.audience {
        AudienceRule::Resource => {
            let default = default.or(user_info_audience(config, params)?);
            return parse_resource(params, default).map(Some);
        }
        AudienceRule::Default(audience) => default.or(audience),
        AudienceRule::DefaultWithSingleResource => {
            let duplicated = ErrorResponse::new(ErrorCode::InvalidRequest, "duplicated parameter");
            params.get("resource").map_err(|_| duplicated)?;
            default
        }
        AudienceRule::AudienceParameter => {
            let audience = params.get("audience")?;
            if audience.is_some_and(|audience| audience.len() > MAX_AUDIENCE) {
                return Err(invalid("audience is longer than 600 bytes"));
            }
            audience.or(default)
        }
        AudienceRule::Fixed(audience) => {
            check_scope_prefix(config, params)?;
            Some(audience)
        }
    };
    Ok(audience.map(Box::from))
}

/// Returns the audience of a request that only signs the user in, which names no resource: this
/// server, whose userinfo endpoint reads the access token.
fn user_info_audience<'a>(
    config: &'a Config,
    params: &Params,
) -> Result<Option<&'a str>, ErrorResponse> {
    let requested = parse_scopes(params)?;
    let signs_in = requested.is_some_and(|scopes| scopes.contains(OPENID));
    Ok(signs_in.then(|| config.issuer.as_str()))
}

/// Rejects a request with several resources, unless the imitated provider ignores them.
pub(super) fn check_single_resource(config: &Config, params: &Params) -> Result<(), ErrorResponse> {
    if matches!(config.profile.audience, AudienceRule::Resource) {
        single_resource(params)?;
    }
    Ok(())
}

/// Checks the `resource` of a token request against the audience of the authorization request (RFC
/// 8707 section 2.2).
pub(super) fn check_audience(
    config: &Config,
    params: &Params,
    audience: Option<&str>,
) -> Result<(), ErrorResponse> {
    match config.profile.audience {
        AudienceRule::Resource => check_resource(params, audience),
        AudienceRule::Fixed(_) => check_scope_prefix(config, params),
        AudienceRule::Default(_)
        | AudienceRule::DefaultWithSingleResource
        | AudienceRule::AudienceParameter => Ok(()),
    }
}

/// Checks that `resource`, if present, is the prefix of the requested scopes.
fn check_scope_prefix(config: &Config, params: &Params) -> Result<(), ErrorResponse> {
    match params.get("resource") {
        Ok(None) => Ok(()),
        Ok(resource) if resource == config.profile.scope_prefix => Ok(()),
        _ => Err(invalid(
            "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes.",
        )),
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidTarget, description)
}
