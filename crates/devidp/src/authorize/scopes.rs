//! The scopes of a request.

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params,
    client::{Client, GrantType},
};
use portcullis_metadata::Scopes;

use crate::config::Config;

/// The scope with which a client requests a refresh token (OpenID Connect Core section 11). It is
/// granted only if it is requested, and only to clients that may use refresh tokens.
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";
/// The scopes of OpenID Connect (OpenID Connect Core sections 5.4 and 11). They have no prefix.
const OPENID_SCOPES: [&str; 6] = [
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    OFFLINE_ACCESS,
];

/// Returns the scopes to grant: the requested scopes that the server has and the client may have.
/// If the request has no `scope`, these are all scopes that the client may have (RFC 6749 section
/// 3.3).
///
/// Fails when `scope` is invalid, no scope can be granted, or the imitated provider requires
/// `scope`.
pub(crate) fn grant_scopes(
    config: &Config,
    client: &Client,
    params: &Params,
) -> Result<Scopes, ErrorResponse> {
    let supported = &config.settings.scopes;
    let available = client.scopes.as_ref().map_or_else(
        || supported.clone(),
        |scopes| scopes.intersection(supported),
    );
    let granted = match parse_scopes(config, params)? {
        None if config.profile.scope_prefix.is_some() => {
            let description =
                "AADSTS900144: The request body must contain the following parameter: 'scope'.";
            return Err(ErrorResponse::new(ErrorCode::InvalidRequest, description));
        }
        None => available,
        Some(RequestedScopes { all, names }) => {
            let granted = if all {
                available
            } else {
                names.intersection(&available)
            };
            if names.contains(OFFLINE_ACCESS) && client.may_use(GrantType::RefreshToken) {
                granted.union(&Scopes::from_names([OFFLINE_ACCESS]).unwrap_or_default())
            } else {
                granted
            }
        }
    };
    if granted.is_empty() {
        Err(invalid("none of the requested scopes can be granted"))
    } else {
        Ok(granted)
    }
}

/// The scopes in a request, without the prefix of the imitated provider.
pub(crate) struct RequestedScopes {
    /// Whether all scopes of the API are requested.
    pub(crate) all: bool,
    /// The scopes that are requested by name.
    pub(crate) names: Scopes,
}

/// Parses the parameter `scope`, if present.
pub(crate) fn parse_scopes(
    config: &Config,
    params: &Params,
) -> Result<Option<RequestedScopes>, ErrorResponse> {
    let Some(requested) = params.get("scope")? else {
        return Ok(None);
    };
    let requested = Scopes::parse(requested)
        .map_err(|_| invalid("scope has a character that is not allowed in scope names"))?;
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
            None if OPENID_SCOPES.contains(&scope) => names.push(scope),
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
            let names = scopes.iter().filter(|scope| !OPENID_SCOPES.contains(scope));
            names
                .map(|scope| format!("{prefix}/{scope}"))
                .collect::<Vec<_>>()
                .join(" ")
        }
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
