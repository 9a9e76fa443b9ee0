//! The scopes of a request, as the imitated provider names them.

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params,
    client::Client,
    scopes::{self, OFFLINE_ACCESS},
};
use portcullis_metadata::Scopes;

use crate::config::Config;

/// Returns the scopes to grant: the requested scopes that the server has and the client may have,
/// and those about the user. If the request has no `scope`, these are all scopes that the client
/// may have (RFC 6749 section 3.3).
///
/// Fails when `scope` is invalid, no scope can be granted, or the imitated provider requires
/// `scope`.
pub(super) fn grant_scopes(
    config: &Config,
    client: &Client,
    params: &Params,
) -> Result<Scopes, ErrorResponse> {
    let supported = &config.settings.scopes;
    let requested = match parse_scopes(config, params)? {
        None if config.profile.scope_prefix.is_some() => {
            let description =
                "AADSTS900144: The request body must contain the following parameter: 'scope'.";
            return Err(ErrorResponse::new(ErrorCode::InvalidRequest, description));
        }
        None => None,
        Some(RequestedScopes { all: true, names }) => {
            Some(names.union(&scopes::available_scopes(supported, client)))
        }
        Some(RequestedScopes { all: false, names }) => Some(names),
    };
    let of_user = requested
        .as_ref()
        .map(|requested| user_scopes(config, requested))
        .unwrap_or_default();
    match scopes::grant_scopes(supported, client, requested.as_ref()) {
        Ok(granted) => Ok(granted.union(&of_user)),
        Err(_) if !of_user.is_empty() => Ok(of_user),
        Err(error) => Err(error),
    }
}

/// Returns those of the scopes that are about the user. A client without a user cannot have them.
pub(crate) fn user_scopes(config: &Config, scopes: &Scopes) -> Scopes {
    scopes.filter(|scope| config.profile.user_scopes.contains(&scope))
}

/// Returns the scopes of a refresh request. `None` means all that were granted.
pub(super) fn refresh_scopes(
    config: &Config,
    params: &Params,
) -> Result<Option<Scopes>, ErrorResponse> {
    let requested = parse_scopes(config, params)?;
    if requested.is_none() && config.profile.refresh_requires_scope {
        let description = "AADSTS90009: Application is requesting a token for itself. This scenario is supported only if resource is specified using the GUID based App Identifier.";
        return Err(ErrorResponse::new(ErrorCode::InvalidRequest, description));
    }
    Ok(requested
        .filter(|requested| !requested.all)
        .map(|requested| requested.names))
}

/// The scopes in a request, without the prefix of the imitated provider.
struct RequestedScopes {
    /// Whether all scopes of the API are requested.
    all: bool,
    /// The scopes that are requested by name.
    names: Scopes,
}

/// Parses the parameter `scope`, if present.
fn parse_scopes(
    config: &Config,
    params: &Params,
) -> Result<Option<RequestedScopes>, ErrorResponse> {
    let Some(requested) = scopes::parse_scopes(params)? else {
        return Ok(None);
    };
    let Some(prefix) = config.profile.scope_prefix else {
        return Ok(Some(RequestedScopes {
            all: false,
            names: requested,
        }));
    };
    let mut all = false;
    let mut names = Vec::new();
    for scope in requested.iter() {
        match scope
            .strip_prefix(prefix)
            .and_then(|rest| rest.strip_prefix('/'))
        {
            Some(".default") => all = true,
            Some(name) => names.push(name),
            None if has_no_prefix(config, scope) => names.push(scope),
            None => {
                return Err(invalid(
                    "AADSTS650053: The application asked for a scope that does not exist on the resource '00000003-0000-0000-c000-000000000000'.",
                ));
            }
        }
    }
    let names = Scopes::from_names(names).map_err(|_| invalid("scope has an empty scope name"))?;
    Ok(Some(RequestedScopes { all, names }))
}

/// Returns the value of `scope` in a token response.
pub(crate) fn response_scope(config: &Config, scopes: &Scopes) -> String {
    match config.profile.scope_prefix {
        None => scopes.to_string(),
        Some(prefix) => {
            let named = |scope: &str| {
                if config.profile.user_scopes.contains(&scope) {
                    scope.to_owned()
                } else {
                    format!("{prefix}/{scope}")
                }
            };
            let names = scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS);
            names.map(named).collect::<Vec<_>>().join(" ")
        }
    }
}

fn has_no_prefix(config: &Config, scope: &str) -> bool {
    scope == OFFLINE_ACCESS || config.profile.user_scopes.contains(&scope)
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
