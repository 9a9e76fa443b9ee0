//! Classes of request header names.

use super::forwarded::is_forwarded;
use crate::hop_by_hop::is_hop_by_hop;

/// The prefix of headers that only the gateway may set.
pub(super) const GATEWAY_PREFIX: &str = "x-portcullis-";

/// Returns whether some servers read the name as that of another header.
///
/// Servers that follow CGI (RFC 3875 section 4.1.18) read an underscore as a hyphen, and some of
/// them every other character, so that `x_portcullis_subject` and `x.portcullis.subject` look like
/// identity headers. `Mcp-Param-*` names are exempt, because the schemas of tools choose them.
pub(super) fn is_ambiguous(name: &str) -> bool {
    !is_plain(name) && !name.starts_with("mcp-param-")
}

/// Returns whether the name has only letters, digits and hyphens.
pub(super) fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Returns whether some web frameworks take the path or the method of the request from this header,
/// instead of those that were authorized.
pub(super) fn is_override(name: &str) -> bool {
    matches!(
        name,
        "x-original-url"
            | "x-original-uri"
            | "x-rewrite-url"
            | "x-http-method"
            | "x-http-method-override"
            | "x-method-override"
    )
}

/// Returns whether the header may be configured as an identity header.
pub(super) fn may_carry_identity(name: &str) -> bool {
    const RESERVED: [&str; 14] = [
        "accept",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "dpop",
        "expect",
        "host",
        "proxy-authorization",
        "traceparent",
        "tracestate",
        "via",
        "x-request-id",
    ];
    is_plain(name)
        && !name.starts_with("mcp-")
        && !is_hop_by_hop(name)
        && !is_forwarded(name)
        && !is_override(name)
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L2: names that servers read in different ways are ambiguous, except for those of tool
    /// parameters.
    #[test]
    fn ambiguous_names() {
        for name in [
            "x_portcullis_subject",
            "x.portcullis.subject",
            "x-portcullis_subject",
            "a~b",
            "mcp_param-x",
        ] {
            assert!(is_ambiguous(name), "{name}");
        }
        for name in ["x-request-id", "mcp-param-user_id", "a1"] {
            assert!(!is_ambiguous(name), "{name}");
        }
    }

    /// L2: a header that has another meaning cannot carry the identity.
    #[test]
    fn identity_names() {
        for name in [
            "x-portcullis-subject",
            "x-user-email",
            "remote-user",
            "x-forwarded-user",
        ] {
            assert!(may_carry_identity(name), "{name}");
        }
        for name in [
            "authorization",
            "cookie",
            "host",
            "x-request-id",
            "connection",
            "forwarded",
            "x-forwarded-for",
            "x-real-ip",
            "x-http-method-override",
            "mcp-session-id",
            "x_user",
        ] {
            assert!(!may_carry_identity(name), "{name}");
        }
    }
}
