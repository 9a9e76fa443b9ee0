//! The names of hop-by-hop headers.

/// Whether the header concerns one connection only (RFC 9110 section 7.6.1). Includes `Trailer`, because trailers are not
/// forwarded.
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "trailer" | "transfer-encoding" | "upgrade"
    )
}
