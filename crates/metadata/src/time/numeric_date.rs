//! Numeric dates (RFC 7519 section 2): seconds since the epoch, possibly with a fraction.

use serde_json::Value;

use crate::time::UnixTime;

/// 9999-12-31T23:59:59Z, the latest date that is accepted.
const LATEST: u64 = 253_402_300_799;

/// Parses a numeric date, rounded to milliseconds. Returns `None` unless the value is a number from
/// the epoch to the year 9999.
pub(crate) fn parse(value: &Value) -> Option<UnixTime> {
    let Value::Number(number) = value else {
        return None;
    };
    match number.as_u64() {
        Some(secs) => from_integer(secs),
        None => from_float(number.as_f64()?),
    }
}

/// Converts an integer number of seconds. Returns `None` if the date is out of range.
pub(crate) fn from_integer(secs: u64) -> Option<UnixTime> {
    (secs <= LATEST).then(|| UnixTime::from_secs(secs))
}

/// Converts a number of seconds with a fraction or an exponent. Returns `None` if the date is out
/// of range.
pub(crate) fn from_float(secs: f64) -> Option<UnixTime> {
    // `contains` is false for NaN. In this range the product is below 2^53, so the cast is exact.
    (0.0..=LATEST as f64)
        .contains(&secs)
        .then(|| UnixTime::from_millis((secs * 1000.0).round() as u64))
}

/// Serializes a numeric date, with a fraction only if it is not zero.
pub(crate) fn to_value(time: UnixTime) -> Value {
    if time.as_millis().is_multiple_of(1000) {
        Value::from(time.as_secs())
    } else {
        Value::from(time.as_millis() as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_json(text: &str) -> Option<UnixTime> {
        parse(&serde_json::from_str(text).ok()?)
    }

    /// C7: integers and fractions are accepted.
    #[test]
    fn integers_and_fractions_are_accepted() {
        assert_eq!(parse_json("0"), Some(UnixTime::from_secs(0)));
        assert_eq!(
            parse_json("1767225600"),
            Some(UnixTime::from_secs(1_767_225_600))
        );
        assert_eq!(
            parse_json("1767225600.25"),
            Some(UnixTime::from_millis(1_767_225_600_250))
        );
        assert_eq!(
            parse_json("1.7672256e9"),
            Some(UnixTime::from_secs(1_767_225_600))
        );
        assert_eq!(
            parse_json("253402300799"),
            Some(UnixTime::from_secs(LATEST))
        );
    }

    /// C7: values that are not a date in range are rejected, not clamped.
    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "-1",
            "-0.5",
            "253402300800",
            "253402300799.5",
            "18446744073709551615",
            "18446744073709551616",
            "1e300",
            "\"1767225600\"",
            "true",
            "null",
            "[1]",
            "{}",
        ] {
            assert_eq!(parse_json(text), None, "{text}");
        }
        for number in [f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(from_float(number), None, "{number}");
        }
    }

    proptest! {
        #[test]
        fn dates_round_trip(millis in 0..=LATEST * 1000) {
            let time = UnixTime::from_millis(millis);
            let text = to_value(time).to_string();
            prop_assert_eq!(parse_json(&text), Some(time));
        }

        #[test]
        fn numbers_are_dates_in_range_only(number: f64) {
            prop_assert_eq!(from_float(number).is_some(), number >= 0.0 && number <= LATEST as f64);
        }
    }
}
