use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, header::DATE};
use portcullis_metadata::UnixTime;

use crate::{Finding, Rule};

const CLOCK: Rule = Rule {
    id: "clock.difference",
    source: "RFC 9110 section 6.6.1, RFC 7519 section 4.1.4",
};

/// The clock difference that most verifiers tolerate.
const COMMON_LEEWAY: Duration = Duration::from_secs(60);

/// Compares the server's clock with this machine's. `None` without a valid `Date`.
pub(crate) fn check(headers: &HeaderMap, now: UnixTime) -> Option<Finding> {
    let theirs = date(headers)?;
    let (difference, side) = if theirs > now {
        (theirs.saturating_duration_since(now), "ahead of")
    } else {
        (now.saturating_duration_since(theirs), "behind")
    };
    let seconds = difference.as_secs();
    Some(if difference <= COMMON_LEEWAY {
        Finding::met(CLOCK, format!("the clocks differ by at most {seconds} s"))
    } else {
        Finding::warning(
            CLOCK,
            format!("the server's clock is {seconds} s {side} this machine's"),
            "synchronize both clocks (NTP): with such a difference, tokens are rejected as expired or not yet valid",
        )
    })
}

/// The time in a `Date` header. `None` without a valid one.
pub(crate) fn date(headers: &HeaderMap) -> Option<UnixTime> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = httpdate::parse_http_date(date).ok()?;
    Some(UnixTime::from_secs(
        date.duration_since(UNIX_EPOCH).ok()?.as_secs(),
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::Verdict;

    fn verdict(date: &'static str, now: u64) -> Option<Verdict> {
        let headers = HeaderMap::from_iter([(DATE, HeaderValue::from_static(date))]);
        check(&headers, UnixTime::from_secs(now)).map(|finding| finding.verdict)
    }

    #[test]
    fn small_differences_are_fine() {
        const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        const THEN: u64 = 784_111_777;
        for (now, expected) in [
            (THEN, Verdict::Met),
            (THEN + 60, Verdict::Met),
            (THEN - 60, Verdict::Met),
            (THEN + 61, Verdict::Warning),
            (THEN - 61, Verdict::Warning),
        ] {
            assert_eq!(verdict(DATE, now), Some(expected), "{now}");
        }
        assert_eq!(verdict("yesterday", THEN), None);
        assert_eq!(verdict("", THEN), None);
    }
}
