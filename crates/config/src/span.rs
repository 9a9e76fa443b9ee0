//! Durations in configuration values: `30m`, `24h`, `5s`.

use std::{borrow::Cow, cmp::Ordering, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time in the configuration, written as `250ms`, `5s`, `30m` or `24h`.
///
/// It is shown as it was written if it has one unit. Two are equal if they are equally long.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration, Unit);

/// The unit that a length of time was written with, as in [`UNITS`]. `None` if it has several.
type Unit = Option<&'static str>;

/// The units that can be written, and their lengths.
const UNITS: [(&str, Duration); 28] = {
    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(60 * 60);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    // The lengths of humantime: a year of 365.25 days, and 30.44 days.
    const MONTH: Duration = Duration::from_secs(2_630_016);
    const YEAR: Duration = Duration::from_secs(31_557_600);
    [
        ("ms", Duration::from_millis(1)),
        ("msec", Duration::from_millis(1)),
        ("s", SECOND),
        ("sec", SECOND),
        ("secs", SECOND),
        ("second", SECOND),
        ("seconds", SECOND),
        ("m", MINUTE),
        ("min", MINUTE),
        ("mins", MINUTE),
        ("minute", MINUTE),
        ("minutes", MINUTE),
        ("h", HOUR),
        ("hr", HOUR),
        ("hour", HOUR),
        ("hours", HOUR),
        ("d", DAY),
        ("day", DAY),
        ("days", DAY),
        ("w", WEEK),
        ("week", WEEK),
        ("weeks", WEEK),
        ("M", MONTH),
        ("month", MONTH),
        ("months", MONTH),
        ("y", YEAR),
        ("year", YEAR),
        ("years", YEAR),
    ]
};

impl Span {
    /// What errors name as the expected type.
    pub(crate) const EXPECTED: &str = "a duration with a unit";
    /// The fix at the end of errors about a text. The example is not that of any key.
    pub(crate) const FIX: &str = "; write a number and a unit, such as \"30m\"";

    /// Creates one that was not written.
    pub const fn new(length: Duration) -> Self {
        Self(length, None)
    }

    /// A number of seconds.
    pub const fn secs(secs: u64) -> Self {
        Self::new(Duration::from_secs(secs))
    }

    /// A number of whole days, shown in days.
    pub(crate) const fn in_days(length: Duration) -> Self {
        Self(length, Some("d"))
    }

    /// Returns the written form of a duration of ISO 8601, such as `PT8H`. Those with months and
    /// years have none, because of the length of these.
    pub(crate) fn from_iso_8601(text: &str) -> Option<String> {
        let (date, time) = match text.strip_prefix('P')?.split_once('T') {
            Some((date, time)) => (date, time),
            None => (text.strip_prefix('P')?, ""),
        };
        let of_date = parts(date, &[('W', "w"), ('D', "d")])?;
        let of_time = parts(time, &[('H', "h"), ('M', "m"), ('S', "s")])?;
        let all = [of_date, of_time].concat();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// Reads a written one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let length = humantime::parse_duration(text).ok()?;
        let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
        let mut known = UNITS.iter().map(|(name, _)| *name);
        Some(Self(length, known.find(|name| *name == unit)))
    }
}

/// Returns the numbers of a part of a duration of ISO 8601, with the units of this one.
fn parts(text: &str, units: &[(char, &str)]) -> Option<Vec<String>> {
    let each = text.split_inclusive(|c: char| !c.is_ascii_digit());
    each.map(|part| {
        let (end, digits) = part.chars().next_back().zip(part.get(..part.len() - 1))?;
        let (_, unit) = units.iter().find(|(designator, _)| *designator == end)?;
        let number: u32 = digits.parse().ok()?;
        Some(format!("{number}{unit}"))
    })
    .collect()
}

impl PartialEq for Span {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Span {}

impl PartialOrd for Span {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Span {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = UNITS.iter().find(|(name, _)| Some(*name) == self.1);
        match written {
            Some((name, unit)) => {
                let count = self.0.as_nanos() / unit.as_nanos();
                write!(f, "{count}{name}")
            }
            None => humantime::format_duration(self.0).fmt(f),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SpanVisitor)
    }
}

struct SpanVisitor;

impl de::Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Span::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        Span::parse(text).ok_or_else(|| {
            let problem = if text.trim_start().starts_with('-') {
                "must not be negative"
            } else {
                "is not a duration"
            };
            E::custom(format!("{text:?} {problem}{}", Span::FIX))
        })
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "duration", "type": "string", "pattern": "^\\s*(\\d+\\s*[a-zA-Z]+\\s*)+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        for text in [
            "250ms", "5s", "30m", "1day", "24h", "90m", "1h 30m", "90min", "0s", "0m", "7d",
            "2weeks", "1500ms", "86400s",
        ] {
            let span: Span = serde_json::from_value(text.into()).unwrap();
            assert_eq!(span.to_string(), text);
        }
    }

    /// J9: durations of ISO 8601 are read to write them in this form.
    #[test]
    fn iso_8601_is_written_with_units() {
        for (text, written) in [
            ("PT8H", Some("8h")),
            ("PT1H30M", Some("1h 30m")),
            ("P7D", Some("7d")),
            ("P1DT12H", Some("1d 12h")),
            ("P1M", None),
            ("P1Y", None),
            ("P", None),
            ("PT", None),
            ("PT8", None),
            ("PTH", None),
            ("PT8\u{e9}", None),
            ("8h", None),
        ] {
            let found = Span::from_iso_8601(text);
            assert_eq!(found.as_deref(), written, "{text}");
            if let Some(written) = written {
                assert!(Span::parse(written).is_some(), "{written}");
            }
        }
    }

    /// All units are those of the parser, and the bounds of a range do not depend on the unit.
    #[test]
    fn units_have_their_lengths() {
        for (unit, length) in UNITS {
            assert_eq!(
                humantime::parse_duration(&format!("1{unit}")).ok(),
                Some(length),
                "{unit}"
            );
        }
        let day = Span::parse("24h").unwrap();
        assert_eq!(day, Span::secs(86_400));
        assert!((Span::secs(1)..=Span::parse("1d").unwrap()).contains(&day));
    }

    #[test]
    fn negative_ones_are_refused_as_such() {
        for text in ["-1", "-1m", " -5s"] {
            let error = serde_json::from_value::<Span>(text.into()).unwrap_err();
            assert!(
                error.to_string().contains("must not be negative"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_the_fix() {
        let error = serde_json::from_value::<Span>("30".into()).unwrap_err();
        assert!(error.to_string().contains("\"30m\""), "{error}");
    }
}
