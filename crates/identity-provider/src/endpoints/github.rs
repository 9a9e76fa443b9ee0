//! The endpoints of GitHub, which are known from the address of the server.

use url::{Host, Url};

use super::{Endpoint, Endpoints};
use crate::{ClientAuthentication, ProviderSettings, ProviderSettingsError};

/// Returns the endpoints of `github.com`, of a subdomain of `ghe.com` (GitHub Enterprise Cloud with
/// data residency), or of a GitHub Enterprise Server.
pub(crate) fn github(settings: &ProviderSettings) -> Result<Endpoints, ProviderSettingsError> {
    let origin = settings.issuer.url();
    if origin.path() != "/" || settings.url_policy.check(origin).is_err() {
        return Err(ProviderSettingsError::GitHubIssuer);
    }
    let api = match &settings.api_url {
        Some(url) => url.clone(),
        None => api_of(origin).ok_or(ProviderSettingsError::GitHubIssuer)?,
    };
    if settings.url_policy.check(&api).is_err() || api.query().is_some() {
        return Err(ProviderSettingsError::ApiUrl);
    }
    let endpoint = |url| Endpoint {
        url,
        policy: settings.url_policy,
    };
    let below = |base: &Url, path: &[&str]| {
        let mut url = base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    };
    Ok(Endpoints {
        authorization: below(origin, &["login", "oauth", "authorize"]),
        token: endpoint(below(origin, &["login", "oauth", "access_token"])),
        user_api: Some(endpoint(below(&api, &["user"]))),
        revocation: Some(endpoint(below(
            &api,
            &["applications", &settings.client_id, "token"],
        ))),
        client_authentication: settings
            .client_authentication
            .unwrap_or(ClientAuthentication::Post),
        other_authentication: None,
        sends_issuer: false,
        has_pkce: true,
        has_offline_access: false,
    })
}

/// Returns the URL of the API that belongs to a server.
fn api_of(origin: &Url) -> Option<Url> {
    let host = match origin.host() {
        Some(Host::Domain(host)) => host,
        _ => "",
    };
    if host == "github.com" || host.ends_with(".ghe.com") {
        let mut api = origin.clone();
        api.set_host(Some(&format!("api.{host}"))).ok()?;
        Some(api)
    } else {
        origin.join("/api/v3").ok()
    }
}
