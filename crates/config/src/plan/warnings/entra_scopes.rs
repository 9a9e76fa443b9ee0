//! Scopes as they are requested from Entra ID, in place of those in its tokens.
//!
//! Source: <https://learn.microsoft.com/en-us/entra/identity-platform/scopes-oidc>.

use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::Scopes;
use url::Url;

use crate::{
    file::Issuer,
    plan::{ResourcePlan, known_issuers},
};

/// What requests all scopes of an application.
const DEFAULT: &str = ".default";
/// The scopes that Entra ID expects without the name of an application.
const OPENID: &[&str] = &["openid", "profile", "email", "offline_access"];

/// Whether all tokens of a resource are those of Entra ID, and their scopes are only in `scp`.
pub(super) fn are_all(resource: &ResourcePlan, issuers: &[Issuer]) -> bool {
    let is_entra = |position: &usize| {
        issuers.get(*position).is_some_and(|issuer| {
            let url = Url::parse(&issuer.issuer);
            let of_host = url.ok().and_then(|url| known_issuers::provider(&url));
            of_host == Some(ProviderKind::Entra) && issuer.scope_claims.is_empty()
        })
    };
    let issuers = &resource.issuers;
    !resource.accepts_broker && !issuers.is_empty() && issuers.iter().all(is_entra)
}

/// Adds a warning about each required scope that no token has. `needed` are the lists of required
/// scopes with their keys.
pub(super) fn warn(needed: &[(String, &Scopes)], warnings: &mut Vec<String>) {
    for (key, scopes) in needed {
        let problems = scopes.iter().filter_map(|scope| {
            let problem = problem(scope)?;
            Some(format!("{key} has {scope:?}, {problem}"))
        });
        warnings.extend(problems);
    }
}

/// Adds a warning about each required scope that `scopes_supported` has in the short form.
///
/// Without the name of an application, Entra ID looks for a scope in Microsoft Graph. A scope that
/// nothing requires can be one of Microsoft Graph.
pub(super) fn warn_of_supported(
    supported: &[String],
    needed: &[(String, &Scopes)],
    key: &str,
    warnings: &mut Vec<String>,
) {
    let is_needed = |name: &str| {
        let mut all = needed.iter().flat_map(|(_, scopes)| scopes.iter());
        all.any(|scope| scope == name)
    };
    let is_short = |name: &str| {
        !name.contains(['/', ',']) && !OPENID.contains(&name) && problem(name).is_none()
    };
    for name in supported
        .iter()
        .filter(|name| is_short(name) && is_needed(name))
    {
        warnings.push(format!(
            "{key}.scopes_supported has {name:?}, which Entra ID takes for a scope of Microsoft Graph in requests, because it \
             names no application; write \"api://<application ID>/{name}\" there, and {name:?} only where it is required"
        ));
    }
}

/// Returns the problem of a scope that is only in requests, and the fix.
pub(super) fn problem(scope: &str) -> Option<String> {
    let name = match scope.split_once("://") {
        Some((_, long)) => long.rsplit_once('/')?.1,
        None => scope,
    };
    if name == DEFAULT {
        return Some(
            "which requests all scopes of an application at Entra ID and is in no token; write the names of the scopes that the \
             application exposes, such as \"mcp.tools\""
                .to_owned(),
        );
    }
    (name != scope && !name.is_empty()).then(|| {
        format!(
            "which is the long form that Entra ID expects in requests and no token has; write {name:?} here, and the long form \
             in scopes_supported"
        )
    })
}
