//! Other spellings of a URI's host: without its port, without its final dot, and in its other
//! internationalized form.

use url::{Host, quirks::domain_to_unicode};

/// The maximum length of an internationalized host in characters: that of a DNS name with its final
/// dot (RFC 1035 section 3.1), which is never shorter in Unicode. The time of a conversion is
/// quadratic in the length.
const MAX_HOST: usize = 254;

/// A URI, split around its host.
struct Parts<'a> {
    /// Scheme, `://` and user information.
    before: &'a str,
    host: &'a str,
    /// Empty, or a colon and what follows it in the authority.
    port: &'a str,
    /// Path, query and fragment.
    after: &'a str,
}

/// Returns the spellings in which one part of the host differs. A URI without `://` has no host.
///
/// The scheme does not matter: any port is removed, also one that is not a number, because servers
/// that select a resource by host and path do not read it.
pub(super) fn other_hosts(uri: &str) -> impl Iterator<Item = String> {
    let parts = Parts::split(uri);
    [
        Parts::without_port,
        Parts::without_final_dot,
        Parts::in_ascii,
        Parts::in_unicode,
    ]
    .into_iter()
    .filter_map(move |other| parts.as_ref().and_then(other))
}

/// Returns whether a URI has an internationalized host that is too long to convert it.
pub(super) fn has_long_host(uri: &str) -> bool {
    uri.len() > MAX_HOST
        && Parts::split(uri)
            .is_some_and(|parts| parts.is_international() && parts.host.chars().count() > MAX_HOST)
}

impl<'a> Parts<'a> {
    fn split(uri: &'a str) -> Option<Self> {
        let start = uri.find("://")? + "://".len();
        let end = uri[start..]
            .find(['/', '?', '#', '\\'])
            .map_or(uri.len(), |length| start + length);
        let host_start = uri[start..end]
            .rfind('@')
            .map_or(start, |at| start + at + 1);
        let authority = &uri[host_start..end];
        // The colons in brackets belong to an IPv6 address.
        let bracket = authority
            .starts_with('[')
            .then(|| authority.find(']'))
            .flatten()
            .unwrap_or_default();
        let host_end = authority[bracket..]
            .find(':')
            .map_or(end, |colon| host_start + bracket + colon);
        Some(Self {
            before: &uri[..host_start],
            host: &uri[host_start..host_end],
            port: &uri[host_end..end],
            after: &uri[end..],
        })
    }

    fn without_port(&self) -> Option<String> {
        (!self.port.is_empty()).then(|| [self.before, self.host, self.after].concat())
    }

    fn without_final_dot(&self) -> Option<String> {
        let host = self.host.trim_end_matches('.');
        (host.len() < self.host.len()).then(|| self.with_host(host))
    }

    /// Converts an internationalized host to A-labels (RFC 5890), as URL parsers do for `https`.
    fn in_ascii(&self) -> Option<String> {
        let host = self
            .is_international()
            .then(|| Host::parse(self.host).ok())
            .flatten()?;
        Some(self.with_host(&host.to_string()))
    }

    /// Converts an internationalized host to U-labels (RFC 5890), which are in lower case and
    /// composed form.
    fn in_unicode(&self) -> Option<String> {
        let host = self
            .is_international()
            .then(|| domain_to_unicode(self.host))?;
        (!host.is_empty()).then(|| self.with_host(&host))
    }

    fn is_international(&self) -> bool {
        let is_a_label = |label: &str| {
            label
                .get(..4)
                .is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
        };
        !self.host.is_ascii() || self.host.split('.').any(is_a_label)
    }

    fn with_host(&self, host: &str) -> String {
        [self.before, host, self.port, self.after].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_part_differs() {
        for (uri, expected) in [
            ("note://vault/x", &[][..]),
            ("note:vault:80/x", &[]),
            ("note://vault/x:80", &[]),
            ("note://u:p@vault/x", &[]),
            ("note://[::1]/x", &[]),
            ("note://vault:80/x", &["note://vault/x"]),
            ("note://vault:", &["note://vault"]),
            ("note://u:p@vault:80?q", &["note://u:p@vault?q"]),
            ("note://vault:1:2#f", &["note://vault#f"]),
            ("note://[::1]:80/x", &["note://[::1]/x"]),
            ("note://[::1:80", &["note://["]),
            ("note://vault./x", &["note://vault/x"]),
            (
                "note://vault.:80/x",
                &["note://vault./x", "note://vault:80/x"],
            ),
            (
                "my_app://b\u{fc}cher/x",
                &["my_app://xn--bcher-kva/x", "my_app://b\u{fc}cher/x"],
            ),
            (
                "note://XN--Bcher-kva/x",
                &["note://xn--bcher-kva/x", "note://b\u{fc}cher/x"],
            ),
            (
                "note://vault\u{3002}:1/x",
                &[
                    "note://vault\u{3002}/x",
                    "note://vault.:1/x",
                    "note://vault.:1/x",
                ],
            ),
            ("note://\u{ff11}27.0.0.1/x", &["note://127.0.0.1/x"]),
            ("note://xn--\u{fc}/x", &[]),
        ] {
            assert_eq!(other_hosts(uri).collect::<Vec<_>>(), expected, "{uri}");
        }
    }

    /// F12: hosts that no name server has are not converted.
    #[test]
    fn long_hosts_are_found() {
        let letters = |count| format!("note://{}:80/x", "\u{fc}".repeat(count));
        assert!(!has_long_host(&letters(MAX_HOST)) && has_long_host(&letters(MAX_HOST + 1)));
        assert!(has_long_host(&format!(
            "note://xn--{}",
            "a".repeat(MAX_HOST)
        )));
        assert!(!has_long_host(&format!(
            "note://{}/{}",
            "a".repeat(1000),
            letters(1000)
        )));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), authority in "[\\[\\]:@.\u{fc}x/-]{0,12}") {
            let _ = (other_hosts(&text).count(), other_hosts(&format!("a://{authority}")).count());
        }
    }
}
