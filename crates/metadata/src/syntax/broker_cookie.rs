/// The beginning of the name of every cookie of the broker, after the prefix `__Host-`, if any.
pub const BROKER_COOKIE_PREFIX: &str = "portcullis-broker-";

/// Returns whether a cookie with this name may be one of the broker. It must not reach an upstream,
/// nor be set by one.
///
/// ```
/// use portcullis_metadata::syntax::is_broker_cookie;
///
/// assert!(is_broker_cookie("__Host-portcullis-broker-form"));
/// assert!(!is_broker_cookie("session"));
/// ```
pub fn is_broker_cookie(name: impl AsRef<[u8]>) -> bool {
    // Browsers compare the prefix without case in `Set-Cookie` (RFC 6265bis section 4.1.3.2).
    let name = name.as_ref();
    let name = after(name, b"__Host-").unwrap_or(name);
    after(name, BROKER_COOKIE_PREFIX.as_bytes()).is_some()
}

/// Returns what follows a prefix that is compared without case.
fn after<'n>(name: &'n [u8], prefix: &[u8]) -> Option<&'n [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_broker_are_recognized() {
        for name in [
            "portcullis-broker-",
            "__Host-portcullis-broker-form",
            "__hOST-Portcullis-BROKER-x",
        ] {
            assert!(is_broker_cookie(name), "{name}");
        }
        for name in [
            "",
            "__Host-",
            "portcullis",
            "portcullis-broker",
            "xportcullis-broker-form",
            "é__Host-portcullis-broker-",
        ] {
            assert!(!is_broker_cookie(name), "{name}");
        }
        assert!(is_broker_cookie(b"portcullis-broker-\xff".as_slice()));
    }
}
