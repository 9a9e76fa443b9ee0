//! Requests to the provider's user API.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use portcullis_discovery::{FetchRequest, FetchResponse};
use portcullis_metadata::{Secret, UnverifiedClaims};
use serde_json::{Map, Value, json};
use url::Url;

use super::IdentityProvider;
use crate::{ProviderError, endpoints::Endpoint, kinds::Protocol, token_error::check_status};

/// The scope with which GitHub lists the organizations of a user.
const ORGANIZATIONS_SCOPE: &str = "read:org";
/// The organizations of a page. A page must fit into a response.
const ORGANIZATIONS_OF_PAGE: usize = 30;
/// The maximum number of pages. If there are more, the organizations count as left out.
const MAX_PAGES: usize = 10;

/// The answer of the user API.
pub(super) struct UserInfo {
    pub(super) claims: Map<String, Value>,
    /// The names of claims that are left out because there are too many values.
    pub(super) omitted: Vec<Box<str>>,
}

impl IdentityProvider {
    /// Asks the user API who the user of an access token is. Fails with
    /// [`ProviderError::SignInEnded`] if the API rejects the token.
    pub(super) async fn user_info(
        &self,
        endpoint: &Endpoint,
        access_token: &Secret,
    ) -> Result<UserInfo, ProviderError> {
        let response = self
            .get_from_user_api(endpoint.url.clone(), endpoint, access_token)
            .await?;
        let mut info = UserInfo {
            claims: parse_object(&response.body)?,
            omitted: Vec::new(),
        };
        if self.profile.protocol == Protocol::GitHub {
            info.claims = github_claims(&info.claims)?;
            if self.requests_organizations() {
                self.add_organizations(endpoint, access_token, &mut info)
                    .await?;
            }
        }
        Ok(info)
    }

    /// Adds `orgs` and `org_ids`: the organizations of a GitHub user.
    async fn add_organizations(
        &self,
        endpoint: &Endpoint,
        access_token: &Secret,
        info: &mut UserInfo,
    ) -> Result<(), ProviderError> {
        let (mut logins, mut ids) = (Vec::new(), Vec::new());
        for page in 1..=MAX_PAGES {
            let mut url = endpoint.url.clone();
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.push("orgs");
            }
            url.query_pairs_mut()
                .append_pair("per_page", &ORGANIZATIONS_OF_PAGE.to_string())
                .append_pair("page", &page.to_string());
            let response = self.get_from_user_api(url, endpoint, access_token).await?;
            let organizations: Vec<Map<String, Value>> = serde_json::from_slice(&response.body)
                .map_err(|_| ProviderError::ResponseInvalid("user_api.organizations"))?;
            let is_last = organizations.len() < ORGANIZATIONS_OF_PAGE;
            for organization in organizations {
                match (organization.get("login"), organization.get("id")) {
                    (Some(login @ Value::String(_)), Some(id)) if id.is_u64() => {
                        logins.push(login.clone());
                        ids.push(id.clone());
                    }
                    _ => return Err(ProviderError::ResponseInvalid("user_api.organizations")),
                }
            }
            if is_last {
                info.claims.insert("orgs".to_owned(), logins.into());
                info.claims.insert("org_ids".to_owned(), ids.into());
                return Ok(());
            }
        }
        info.omitted = vec!["orgs".into(), "org_ids".into()];
        Ok(())
    }

    fn requests_organizations(&self) -> bool {
        self.settings
            .scopes
            .iter()
            .any(|scope| &**scope == ORGANIZATIONS_SCOPE)
    }

    async fn get_from_user_api(
        &self,
        url: Url,
        endpoint: &Endpoint,
        access_token: &Secret,
    ) -> Result<FetchResponse, ProviderError> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", access_token.secret()))
            .map_err(|_| ProviderError::ResponseInvalid("access_token"))?;
        authorization.set_sensitive(true);
        let mut request =
            FetchRequest::get(url, endpoint.policy).header(header::AUTHORIZATION, authorization);
        if self.profile.protocol == Protocol::GitHub {
            add_github_headers(&mut request.headers);
        }
        let response = self.fetch.fetch(request).await?;
        check_user_status(&response)?;
        Ok(response)
    }
}

/// Adds the headers with which GitHub answers in a known format. It rejects requests without
/// `User-Agent`.
pub(super) fn add_github_headers(headers: &mut HeaderMap) {
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/vnd.github+json"),
    );
    headers.insert(
        HeaderName::from_static("x-github-api-version"),
        HeaderValue::from_static("2022-11-28"),
    );
    headers.insert(header::USER_AGENT, HeaderValue::from_static("portcullis"));
}

/// Checks the status of the user API. A limit on requests does not end the sign-in.
fn check_user_status(response: &FetchResponse) -> Result<(), ProviderError> {
    check_status(response)?;
    match response.status {
        StatusCode::OK => Ok(()),
        StatusCode::FORBIDDEN if is_rate_limited(&response.headers) => {
            Err(ProviderError::Unreachable("status.rate_limited".into()))
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
            Err(ProviderError::SignInEnded)
        }
        _ => Err(ProviderError::ResponseInvalid("user_api.status")),
    }
}

fn is_rate_limited(headers: &HeaderMap) -> bool {
    headers.contains_key(header::RETRY_AFTER)
        || headers
            .get("x-ratelimit-remaining")
            .is_some_and(|remaining| remaining == "0")
}

/// Parses a JSON object without duplicate members whose registered claims have the right types.
fn parse_object(body: &[u8]) -> Result<Map<String, Value>, ProviderError> {
    UnverifiedClaims::parse(body)
        .ok()
        .and_then(|_| serde_json::from_slice(body).ok())
        .ok_or(ProviderError::ResponseInvalid("user_api.response"))
}

/// Returns the claims of a GitHub user. `id` and `sub` are the number of the account, and `null` is
/// left out.
fn github_claims(user: &Map<String, Value>) -> Result<Map<String, Value>, ProviderError> {
    let invalid = ProviderError::ResponseInvalid("user_api.user");
    let id = user.get("id").and_then(Value::as_u64).filter(|id| *id > 0);
    let id = id.ok_or_else(|| invalid.clone())?;
    let mut claims = Map::from_iter([
        ("id".to_owned(), json!(id)),
        ("sub".to_owned(), json!(id.to_string())),
    ]);
    for (name, is_required) in [("login", true), ("name", false), ("email", false)] {
        match user.get(name) {
            Some(Value::String(text)) => {
                claims.insert(name.to_owned(), json!(text));
            }
            None | Some(Value::Null) if !is_required => {}
            _ => return Err(invalid),
        }
    }
    Ok(claims)
}
