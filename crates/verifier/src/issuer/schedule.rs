//! When the keys of an issuer are fetched again: pure functions of a response's headers and of the
//! failures so far.

use std::time::Duration;

use http::{HeaderMap, header};

/// How long a key set is fresh if its response has no `max-age`: 10 min, as in other JWKS clients.
/// A token with a new key causes an earlier fetch.
pub(crate) const DEFAULT_MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// The lower limit of `max-age`: 1 min, so that an issuer cannot demand a fetch for every token.
const MIN_MAX_AGE: Duration = Duration::from_secs(60);
/// The upper limit of `max-age`: 24 h, so that a withdrawn key is not used for longer while the
/// issuer is available.
const MAX_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The part of the maximum age after which keys are refreshed. The rest is left for the fetch and
/// for retries, so that keys do not become stale while the issuer is available.
const REFRESH_PART: f64 = 0.9;
/// The delay after the first failure: 1 s, because most failures are short.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest delay between two attempts: 1 min, so that an issuer that is available again is
/// noticed soon.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// The part of a retry delay that is random, so that processes that failed together do not retry
/// together.
const RETRY_JITTER: f64 = 0.25;

/// Returns how long the keys of a response are fresh: its `max-age` (RFC 9111 section 5.2.2.1),
/// limited to 1 min to 24 h, or 10 min if there is no valid one. Other directives, such as
/// `no-store`, are ignored.
pub(crate) fn max_age(headers: &HeaderMap) -> Duration {
    headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(parse_max_age)
        .map_or(DEFAULT_MAX_AGE, |max_age| {
            max_age.clamp(MIN_MAX_AGE, MAX_MAX_AGE)
        })
}

/// Returns the value of a `max-age` directive, or `None` for other directives and invalid values.
fn parse_max_age(directive: &str) -> Option<Duration> {
    let (name, value) = directive.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("max-age") {
        return None;
    }
    let digits = value.trim().trim_matches('"');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number that does not fit is limited like any large number (RFC 9111 section 1.2.2).
    Some(Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}

/// Returns the time from a successful fetch to the next one: 9/10 of the maximum age of the keys.
pub(crate) fn refresh_delay(max_age: Duration) -> Duration {
    max_age.mul_f64(REFRESH_PART)
}

/// Returns the time from a failed fetch to the next attempt. It doubles with each of the
/// consecutive `failures` from 1 s to 1 min, and is then reduced at random by up to a quarter.
/// `random` is any number, evenly distributed.
pub(crate) fn retry_delay(failures: u32, random: u32) -> Duration {
    let factor = 1_u32
        .checked_shl(failures.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let delay = MIN_RETRY_DELAY.saturating_mul(factor).min(MAX_RETRY_DELAY);
    let random_part = f64::from(random) / f64::from(u32::MAX);
    delay - delay.mul_f64(RETRY_JITTER * random_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&'static str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (header::CACHE_CONTROL, http::HeaderValue::from_static(value)))
            .collect()
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
            assert_eq!(
                max_age(&headers(values)),
                Duration::from_secs(seconds),
                "{values:?}"
            );
        }
    }

    /// C10: keys are refreshed before they become stale.
    #[test]
    fn keys_are_refreshed_early() {
        assert_eq!(
            refresh_delay(Duration::from_secs(600)),
            Duration::from_secs(540)
        );
        assert!(refresh_delay(MAX_MAX_AGE) < MAX_MAX_AGE);
    }

    /// C10: the delay of retries grows from 1 s to 1 min.
    #[test]
    fn retry_delays_grow() {
        let without_jitter =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 33].map(|failures| retry_delay(failures, 0).as_secs());
        assert_eq!(without_jitter, [1, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(retry_delay(u32::MAX, 0), MAX_RETRY_DELAY);
        assert_eq!(
            retry_delay(1, u32::MAX),
            Duration::from_millis(750),
            "the shortest delay"
        );
        assert_eq!(retry_delay(8, u32::MAX), Duration::from_secs(45));
    }
}
