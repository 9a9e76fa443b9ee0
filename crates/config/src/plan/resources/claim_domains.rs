use anyhow::bail;

use crate::shown_url;

/// Checks a value of `domain`, which is compared with what follows the `@` of an address. Fails
/// with the fix if it has a character that a domain cannot have: no address would match.
pub(super) fn check(domain: &str) -> anyhow::Result<()> {
    let is_strange = |c: char| c.is_whitespace() || c.is_control() || "@*/:".contains(c);
    if !domain.contains(is_strange) && !domain.starts_with('.') {
        return Ok(());
    }
    let after_scheme = domain.split_once("://").map_or(domain, |(_, rest)| rest);
    let host = after_scheme.rsplit('@').next().unwrap_or_default();
    let host = host.split(['/', ':']).next().unwrap_or_default();
    let meant = host.trim().trim_start_matches(['*', '.']);
    let fix = if meant.is_empty() || meant.contains(is_strange) {
        "write a domain such as \"example.com\"".to_owned()
    } else {
        format!("write {meant:?}")
    };
    let subdomains = if host.trim().starts_with(['*', '.']) {
        ", and each subdomain that addresses have"
    } else {
        ""
    };
    // A path or a user could be anything.
    let shown = if domain.contains("://") {
        shown_url(domain)
    } else {
        domain.to_owned()
    };
    bail!(
        "domain has {shown:?}, which is compared exactly with the part of an address after the @, so that no address matches; {fix}{subdomains}"
    )
}
