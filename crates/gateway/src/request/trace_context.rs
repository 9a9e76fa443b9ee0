//! W3C trace context.

use http::{HeaderMap, HeaderName};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Whether the headers contain one well-formed `traceparent`. Otherwise neither `traceparent` nor `tracestate` is forwarded.
pub(crate) fn is_valid(headers: &HeaderMap) -> bool {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    parents.next().is_some_and(|parent| is_traceparent(parent.as_bytes())) && parents.next().is_none()
}

/// `version "-" trace-id "-" parent-id "-" trace-flags`, in lower-case hexadecimal, no identifier all zeros. Versions
/// after 00 may append further fields; version ff is invalid.
fn is_traceparent(value: &[u8]) -> bool {
    let Some((fields, rest)) = value.split_first_chunk::<55>() else { return false };
    let [version, trace, parent, flags] = [&fields[..2], &fields[3..35], &fields[36..52], &fields[53..]];
    let hyphens = [fields[2], fields[35], fields[52]] == *b"---";
    let rest_fits = rest.is_empty() || (version != b"00" && rest.starts_with(b"-"));
    hyphens
        && rest_fits
        && [version, trace, parent, flags].into_iter().all(is_hex)
        && version != b"ff"
        && [trace, parent].into_iter().all(|id| id.iter().any(|&b| b != b'0'))
}

fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn valid(parents: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
        }
        is_valid(&headers)
    }

    /// L2: a valid trace context is forwarded, an invalid one is removed.
    #[test]
    fn valid_contexts_only() {
        assert!(valid(&[VALID]));
        assert!(valid(&[&VALID.replacen("00", "cc", 1)]));
        assert!(valid(&[&format!("{}-what-will-be", VALID.replacen("00", "cc", 1))]));
        let invalid = [
            String::new(),
            VALID.to_uppercase(),
            VALID.replacen("00", "ff", 1),
            VALID[..54].to_owned(),
            format!("{VALID}-more"),
            format!("{}x", VALID.replacen("00", "cc", 1)),
            VALID.replace('-', "_"),
            VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            VALID.replace("01", "0g"),
        ];
        for parent in invalid {
            assert!(!valid(&[&parent]), "{parent}");
        }
        assert!(!valid(&[VALID, VALID]));
        assert!(!valid(&[]));
    }
}
