use http::{HeaderMap, HeaderName};

/// Whether a header of this name concerns one connection only (RFC 9110 section 7.6.1, and `Trailer`, since
/// trailers are not passed on).
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "trailer" | "transfer-encoding" | "upgrade"
    )
}

/// Removes every header whose name `is_dropped` says so of.
pub(crate) fn remove_where(headers: &mut HeaderMap, is_dropped: impl Fn(&str) -> bool) {
    let dropped: Vec<HeaderName> = headers.keys().filter(|name| is_dropped(name.as_str())).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
}
