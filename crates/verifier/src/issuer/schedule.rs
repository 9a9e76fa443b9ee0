//! The times at which keys are fetched again.

use std::time::Duration;

use http::{HeaderMap, header};

/// How long a key set is fresh if its response has no `max-age`.
pub(crate) const DEFAULT_MAX_AGE: Duration = Duration::from_secs(10 * 60);
const MIN_MAX_AGE: Duration = Duration::from_secs(60);
const MAX_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

/// Returns how long the keys of a response are fresh: its `max-age` (RFC 9111 section 5.2.2.1), limited to 1 min to 24
/// h, or 10 min.
pub(crate) fn max_age(headers: &HeaderMap) -> Duration {
    headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(seconds)
        .map_or(DEFAULT_MAX_AGE, |seconds| seconds.clamp(MIN_MAX_AGE, MAX_MAX_AGE))
}

fn seconds(directive: &str) -> Option<Duration> {
    let (name, value) = directive.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("max-age") {
        return None;
    }
    let digits = value.trim().trim_matches('"');
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A number that does not fit is limited like any large number.
    Some(Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}

/// Returns the delay after a successful fetch. It is shorter than the maximum age, so that keys do not become stale
/// while the issuer is available.
pub(crate) fn refresh_after(max_age: Duration) -> Duration {
    max_age.mul_f64(0.9)
}

/// Returns the delay after a number of consecutive failures. It doubles from 1 s to 1 min and is reduced by up to a
/// quarter at random, so that processes do not retry at the same time. `random` is any number.
pub(crate) fn retry_after(failures: u32, random: u32) -> Duration {
    let doubled = FIRST_RETRY.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    let full = doubled.min(MAX_RETRY);
    full - full.mul_f64(0.25 * f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (header::CACHE_CONTROL, http::HeaderValue::from_static(value))).collect()
    }

    /// C10: the response's `max-age` is used, limited to 1 min to 24 h, and 10 min without one.
    #[test]
    fn max_age_is_limited() {
        for (values, seconds) in [
            (&[][..], 600),
            (&["no-store"], 600),
            (&["max-age=0"], 60),
            (&["max-age=59"], 60),
            (&["public, Max-Age=3600"], 3600),
            (&["public", "max-age=\"120\""], 120),
            (&["max-age=999999999"], 86_400),
            (&["max-age=99999999999999999999999999"], 86_400),
            (&["max-age=-5"], 600),
            (&["max-age=+5"], 600),
            (&["max-age="], 600),
            (&["s-maxage=120"], 600),
            (&["x-max-age=120"], 600),
        ] {
            assert_eq!(max_age(&headers(values)), Duration::from_secs(seconds), "{values:?}");
        }
    }

    /// C10: keys are refreshed before they become stale.
    #[test]
    fn keys_are_refreshed_early() {
        assert_eq!(refresh_after(Duration::from_secs(600)), Duration::from_secs(540));
        assert!(refresh_after(MAX_MAX_AGE) < MAX_MAX_AGE);
    }

    /// C10: the delay of retries grows from 1 s to 1 min.
    #[test]
    fn retry_delays_grow() {
        let without_jitter: Vec<u64> = (1..=8).map(|failures| retry_after(failures, 0).as_secs()).collect();
        assert_eq!(without_jitter, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(retry_after(u32::MAX, 0), MAX_RETRY);
        assert_eq!(retry_after(1, u32::MAX), Duration::from_millis(750));
    }
}
