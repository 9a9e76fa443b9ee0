use http::HeaderName;

use super::{
    header_names::{GATEWAY_PREFIX, is_override, is_plain},
    identity::IdentityHeader,
};
use crate::{error::UpstreamSettingsError, hop_by_hop::is_hop_by_hop};

/// Checks that all listed headers may be forwarded from clients. The error names the first that
/// cannot, with the reason.
pub(super) fn check(
    names: &[HeaderName],
    identity: &[IdentityHeader],
) -> Result<(), UpstreamSettingsError> {
    for name in names {
        let is_identity = name.as_str().starts_with(GATEWAY_PREFIX)
            || identity.iter().any(|header| header.name == *name);
        let reason = if is_identity {
            Some("it carries the identity of the caller")
        } else {
            rejection_reason(name.as_str())
        };
        if let Some(reason) = reason {
            return Err(UpstreamSettingsError::ForwardHeader(name.clone(), reason));
        }
    }
    Ok(())
}

/// Returns why a header cannot be forwarded, or `None` if it can.
fn rejection_reason(name: &str) -> Option<&'static str> {
    Some(match name {
        "authorization" | "proxy-authorization" | "dpop" => {
            "it carries a credential that was issued for this service"
        }
        "cookie" => "it carries a credential; `forward_cookies = true` forwards cookies",
        "content-length" | "content-type" | "content-encoding" | "expect" | "host" => {
            "it frames the request, and the gateway writes it"
        }
        "forwarded" | "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto" | "via"
        | "x-request-id" => "the gateway writes it",
        _ if is_hop_by_hop(name) => "it concerns one connection only",
        _ if name.starts_with("mcp-") || name.ends_with("-session-id") => {
            "it belongs to the session or the protocol"
        }
        _ if is_override(name) => "it names another path or method than the one that is authorized",
        _ if !is_plain(name) => "it has characters other than letters, digits and hyphens",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::IdentitySource;

    fn checked(name: &str) -> Result<(), UpstreamSettingsError> {
        let identity = [IdentityHeader::new(
            HeaderName::from_static("x-team"),
            IdentitySource::Subject,
        )];
        check(
            &[HeaderName::from_static("x-real-ip"), name.parse().unwrap()],
            &identity,
        )
    }

    /// L8, L2: no credential, identity, session, framing or hop-by-hop header can be forwarded by
    /// its name.
    #[test]
    fn rejected_names() {
        for name in [
            "authorization",
            "proxy-authorization",
            "cookie",
            "dpop",
            "x-portcullis-subject",
            "x-team",
            "mcp-session-id",
            "mcp-method",
            "acme-session-id",
            "content-length",
            "content-type",
            "content-encoding",
            "transfer-encoding",
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "host",
            "via",
            "x-request-id",
            "forwarded",
            "x-forwarded-for",
            "x-http-method-override",
            "x_user",
        ] {
            let error = checked(name).expect_err(name);
            let text = error.to_string();
            assert!(text.contains("forward_headers"), "{text}");
            assert!(text.contains(name), "{text}");
            assert!(text.contains("remove it"), "{text}");
            assert_eq!(error.code(), "upstream.forward_header");
        }
        for name in [
            "x-user",
            "x-forwarded-user",
            "cf-connecting-ip",
            "client-cert",
            "x-custom",
        ] {
            assert_eq!(checked(name), Ok(()), "{name}");
        }
    }
}
