/// Whether a header of this name concerns one connection only (RFC 9110 section 7.6.1, and `Trailer`, since
/// trailers are not passed on).
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "trailer" | "transfer-encoding" | "upgrade"
    )
}
