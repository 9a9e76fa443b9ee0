//! Numeric dates (RFC 7519 section 2): seconds since the epoch, maybe with a fraction.

use serde_json::Value;

use crate::UnixTime;

/// 9999-12-31T23:59:59Z. Nobody means a later date, and every sum with it stays far from overflow.
const LATEST: u64 = 253_402_300_799;

/// Reads a numeric date to the nearest millisecond; `None` for anything but a finite number between the
/// epoch and the year 9999.
pub(crate) fn parse(value: &Value) -> Option<UnixTime> {
    let Value::Number(number) = value else { return None };
    match number.as_u64() {
        Some(secs) => from_whole(secs),
        None => from_fraction(number.as_f64()?),
    }
}

/// The same for a number that is a whole one.
pub(crate) fn from_whole(secs: u64) -> Option<UnixTime> {
    (secs <= LATEST).then(|| UnixTime::from_secs(secs))
}

/// The same for a number with a fraction or an exponent.
pub(crate) fn from_fraction(secs: f64) -> Option<UnixTime> {
    // The comparison is false for NaN, and the range keeps the product below 2^53: the cast is exact.
    (0.0..=LATEST as f64).contains(&secs).then(|| UnixTime::from_millis((secs * 1000.0).round() as u64))
}

/// Writes a numeric date, with a fraction only where there is one.
pub(crate) fn build(time: UnixTime) -> Value {
    if time.as_millis().is_multiple_of(1000) {
        Value::from(time.as_secs())
    } else {
        Value::from(time.as_millis() as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Option<UnixTime> {
        parse(&serde_json::from_str(text).ok()?)
    }

    /// C7: fractions are fine.
    #[test]
    fn whole_and_fractional_dates_are_read() {
        assert_eq!(parsed("0"), Some(UnixTime::from_secs(0)));
        assert_eq!(parsed("1767225600"), Some(UnixTime::from_secs(1_767_225_600)));
        assert_eq!(parsed("1767225600.25"), Some(UnixTime::from_millis(1_767_225_600_250)));
        assert_eq!(parsed("1.7672256e9"), Some(UnixTime::from_secs(1_767_225_600)));
        assert_eq!(parsed("253402300799"), Some(UnixTime::from_secs(LATEST)));
    }

    /// C7: what is not a sane date is refused, not rounded into one.
    #[test]
    fn absurd_dates_are_refused() {
        for text in [
            "-1",
            "-0.5",
            "253402300800",
            "253402300799.5",
            "18446744073709551615",
            "18446744073709551616",
            "1e300",
            "1e400",
            "-1e400",
            "\"1767225600\"",
            "true",
            "null",
            "[1]",
            "{}",
            "NaN",
            "Infinity",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parse(&json!(f64::MAX)), None);
    }

    proptest! {
        #[test]
        fn what_is_built_reads_back(millis in 0..=LATEST * 1000) {
            let time = UnixTime::from_millis(millis);
            let text = build(time).to_string();
            prop_assert_eq!(parsed(&text), Some(time));
        }

        #[test]
        fn no_number_panics(number: f64) {
            let _ = parse(&json!(number));
        }
    }
}
