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
