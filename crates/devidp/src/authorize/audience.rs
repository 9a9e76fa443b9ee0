//! The audience of a token.

use portcullis_authorization_server::{ErrorCode, ErrorResponse, Params};
use portcullis_metadata::ResourceUri;

use crate::{config::Config, providers::profile::AudienceRule};

/// The maximum length of the parameter `audience` in bytes.
const MAX_AUDIENCE: usize = 600;

/// Returns the audience of the tokens for a request: its `resource` (RFC 8707 section 2), of which
/// only one is supported, or the value that the imitated provider uses instead. Fails when
/// `resource` is invalid, repeated, or missing without a default, if the imitated provider reads
/// it, and when `audience` is too long, if the imitated provider reads that.
pub(crate) fn parse_audience(
    config: &Config,
    params: &Params,
) -> Result<Option<Box<str>>, ErrorResponse> {
    let default = config
        .settings
        .default_resource
        .as_ref()
        .map(ResourceUri::as_str);
    let audience = match config.profile.audience {
        AudienceRule::Resource => return parse_resource(params, default).map(Some),
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

/// Rejects a request with several resources, unless the imitated provider ignores them.
pub(crate) fn check_single_resource(config: &Config, params: &Params) -> Result<(), ErrorResponse> {
    let is_single = !matches!(config.profile.audience, AudienceRule::Resource)
        || params.get("resource").is_ok();
    if is_single {
        Ok(())
    } else {
        Err(invalid("only one resource is supported"))
    }
}

/// Checks the `resource` of a token request against the audience of the authorization request (RFC
/// 8707 section 2.2).
pub(crate) fn check_audience(
    config: &Config,
    params: &Params,
    audience: Option<&str>,
) -> Result<(), ErrorResponse> {
    match config.profile.audience {
        AudienceRule::Resource => match params.get("resource") {
            Ok(None) => Ok(()),
            Ok(resource) if resource == audience => Ok(()),
            _ => Err(invalid("resource is not that of the authorization request")),
        },
        AudienceRule::Fixed(_) => check_scope_prefix(config, params),
        AudienceRule::Default(_)
        | AudienceRule::DefaultWithSingleResource
        | AudienceRule::AudienceParameter => Ok(()),
    }
}

/// Returns the requested resource, or the default one.
fn parse_resource(params: &Params, default: Option<&str>) -> Result<Box<str>, ErrorResponse> {
    match (
        params
            .get("resource")
            .map_err(|_| invalid("only one resource is supported"))?,
        default,
    ) {
        (Some(resource), _) => match ResourceUri::parse(resource) {
            Ok(resource) => Ok(resource.as_str().into()),
            Err(_) => Err(invalid(
                "resource must be an absolute http or https URL without fragment and user information",
            )),
        },
        (None, Some(default)) => Ok(default.into()),
        (None, None) => Err(invalid(
            "resource is missing: it is the audience of the token",
        )),
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
