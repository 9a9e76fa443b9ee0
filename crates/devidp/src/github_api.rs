//! The API of GitHub about users, with the imitation of GitHub.

mod application;
mod reply;
mod resource;
mod user;

use http::{HeaderMap, Method, StatusCode};
use portcullis_metadata::Secret;

use crate::{
    app::App,
    authentication::bearer::authorization,
    github_api::{
        reply::{ApiError, accepts_json, list, object},
        resource::Resource,
        user::GitHubUser,
    },
    providers::profile::Profile,
    server::{endpoint::Endpoint, respond::Reply},
    token::user_access,
};

/// Returns the endpoint of a path that only the imitation of GitHub has.
pub(crate) fn endpoint(path: &str, issuer_path: &str) -> Option<Endpoint> {
    if path.strip_prefix(issuer_path) == Some("/access_token") {
        return Some(Endpoint::Token);
    }
    Resource::parse(path).map(|_| Endpoint::GitHubApi)
}

/// A request to the API.
pub(crate) struct ApiRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// Handles a request to the API.
pub(crate) async fn handle(app: &App, request: &ApiRequest<'_>) -> Reply {
    respond(app, request).await.unwrap_or_else(|error| {
        tracing::info!(
            api.status = error.status().as_u16(),
            "rejected a request to the user API"
        );
        error.reply()
    })
}

async fn respond(app: &App, request: &ApiRequest<'_>) -> Result<Reply, ApiError> {
    if !request.headers.contains_key(http::header::USER_AGENT) {
        return Err(ApiError::NoUserAgent);
    }
    if !accepts_json(request.headers) {
        return Err(ApiError::NotAcceptable);
    }
    let resource = Resource::parse(request.path).ok_or(ApiError::NotFound)?;
    match (resource, request.method) {
        (Resource::ApplicationToken(client), &Method::DELETE) => {
            application::delete_token(app, client, request).await
        }
        (Resource::ApplicationGrant(client), &Method::DELETE) => {
            application::delete_grant(app, client, request).await
        }
        (resource, &Method::GET) => read(app, resource, request).await,
        _ => Err(ApiError::NotFound),
    }
}

/// Responds with what the user of the token is or has.
async fn read(
    app: &App,
    resource: Resource<'_>,
    request: &ApiRequest<'_>,
) -> Result<Reply, ApiError> {
    let token = api_token(request.headers).ok_or(ApiError::NoToken)?;
    let access = user_access::find(app, token.secret()).await;
    let access = access.map_err(|_| ApiError::Failed)?;
    let access = access.ok_or(ApiError::BadCredentials)?;
    let profile = app.config.profile;
    let scopes = &access.token.claims.scope;
    let needed = needed_scopes(profile, resource);
    if !needed.is_empty() && !needed.iter().any(|scope| scopes.contains(scope)) {
        return Err(ApiError::NeedsScope(needed));
    }
    let user = GitHubUser::new(&app.config.settings, &access.subject);
    let mut reply = match resource {
        Resource::User => object(StatusCode::OK, &user.account()),
        Resource::Emails => list(&user.emails(), request),
        Resource::Orgs => list(&user.orgs(), request),
        Resource::Teams => list(&user.teams(), request),
        Resource::ApplicationToken(_) | Resource::ApplicationGrant(_) => {
            return Err(ApiError::NotFound);
        }
    };
    if profile.has_scopes {
        reply::add_scopes(&mut reply, scopes, needed);
    }
    Ok(reply)
}

/// Returns the scopes of which the token of an OAuth app must have one. Those of a GitHub App have
/// no scopes.
fn needed_scopes(profile: &Profile, resource: Resource<'_>) -> &'static [&'static str] {
    match resource {
        _ if !profile.has_scopes => &[],
        Resource::Emails => &["user:email", "user"],
        Resource::Orgs | Resource::Teams => &["read:org", "user"],
        _ => &[],
    }
}

/// Returns the token of a request, which may have either scheme.
fn api_token(headers: &HeaderMap) -> Option<Secret> {
    let (scheme, token) = authorization(headers)?;
    ["bearer", "token"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        .then(|| Secret::new(token))
}
