//! The names of hop-by-hop headers.

/// Returns whether the header concerns one connection only (RFC 9110 section 7.6.1). Includes
/// `Trailer`, because trailers are not forwarded.
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L1: headers of one connection, and no others.
    #[test]
    fn hop_by_hop_names() {
        for name in [
            "connection",
            "keep-alive",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ] {
            assert!(is_hop_by_hop(name), "{name}");
        }
        for name in ["", "accept", "content-length", "via", "connection-id"] {
            assert!(!is_hop_by_hop(name), "{name}");
        }
    }
}
