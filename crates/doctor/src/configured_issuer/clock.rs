use std::time::Duration;

use http::{HeaderMap, header::AGE};
use portcullis_metadata::UnixTime;

use crate::{Finding, Rule, time};

const CLOCK: Rule = Rule::new(
    "clock.difference",
    "RFC 9110 section 6.6.1, RFC 7519 section 4.1.6",
);

/// `Date` has whole seconds, and a request takes time.
const TOLERANCE: Duration = Duration::from_secs(3);
/// The difference from which tokens with a short life are affected.
const MAX_BEHIND: Duration = Duration::from_secs(60);

/// Compares the issuer's clock with this machine's. Returns nothing without a usable date, such as
/// in a cached response.
pub(super) fn check(headers: &HeaderMap, now: UnixTime, leeway: Duration) -> Option<Finding> {
    if headers.contains_key(AGE) {
        return None;
    }
    let theirs = time::date(headers)?;
    let ahead = theirs.saturating_duration_since(now);
    let behind = now.saturating_duration_since(theirs);
    Some(if ahead > leeway + TOLERANCE {
        Finding::problem(
            CLOCK,
            format!(
                "the issuer's clock is {} s ahead: its tokens are from the future and are rejected",
                ahead.as_secs()
            ),
            "set the clocks of both machines by NTP",
        )
    } else if behind > MAX_BEHIND {
        Finding::problem(
            CLOCK,
            format!(
                "the issuer's clock is {} s behind: its tokens expire early or are expired at once",
                behind.as_secs()
            ),
            "set the clocks of both machines by NTP",
        )
    } else {
        Finding::met(CLOCK, "the clocks of the issuer and this machine agree")
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::DATE};

    use super::*;
    use crate::Verdict;

    #[test]
    fn differences_are_found() {
        const DATE_TEXT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        const THEN: u64 = 784_111_777;
        let headers = HeaderMap::from_iter([(DATE, HeaderValue::from_static(DATE_TEXT))]);
        let leeway = Duration::from_secs(10);
        let verdict =
            |now| check(&headers, UnixTime::from_secs(now), leeway).map(|finding| finding.verdict);
        for (now, expected) in [
            (THEN, Verdict::Met),
            (THEN - 13, Verdict::Met),
            (THEN - 14, Verdict::Problem),
            (THEN + 60, Verdict::Met),
            (THEN + 61, Verdict::Problem),
        ] {
            assert_eq!(verdict(now), Some(expected), "{now}");
        }
        let mut cached = headers;
        cached.insert(AGE, HeaderValue::from_static("900"));
        assert!(check(&cached, UnixTime::from_secs(THEN + 900), leeway).is_none());
    }
}
