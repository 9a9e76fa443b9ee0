//! Issuers of identity providers with rules of their own.

use portcullis_metadata::syntax::is_loopback;
use url::Url;

use super::entra;

/// Returns the kind of the broker's provider that this issuer needs: one with rules of its own.
pub(super) fn broker_kind(issuer: &Url) -> Option<&'static str> {
    if is_loopback(issuer) {
        return None;
    }
    match issuer.host_str()?.trim_end_matches('.') {
        "github.com" | "www.github.com" | "api.github.com" => Some("github"),
        "accounts.google.com" | "www.googleapis.com" | "oauth2.googleapis.com" => Some("google"),
        _ if entra::is_entra(issuer) => Some("entra"),
        _ => None,
    }
}
