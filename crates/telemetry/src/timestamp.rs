//! [`Timestamp`]: a time as logs and records contain it.

use std::{fmt, time::UNIX_EPOCH};

use portcullis_metadata::UnixTime;

/// A time in the notation of RFC 3339, in UTC with milliseconds, such as
/// `2026-01-31T09:05:00.250Z`. A time after the year 9999 is written as the last millisecond of
/// that year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp([u8; 24]);

/// Returns a time as it is written in logs. Each time has a notation.
pub fn timestamp(time: UnixTime) -> Timestamp {
    let since_epoch = time
        .until_year_9999()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = since_epoch.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    write_digits(&mut text[0..4], year);
    write_digits(&mut text[5..7], month);
    write_digits(&mut text[8..10], day);
    write_digits(&mut text[11..13], seconds / 3600 % 24);
    write_digits(&mut text[14..16], seconds / 60 % 60);
    write_digits(&mut text[17..19], seconds % 60);
    write_digits(&mut text[20..23], since_epoch.subsec_millis().into());
    Timestamp(text)
}

/// Returns the year, month and day of a day since 1970-01-01. Years are counted from March, so that
/// a leap day is the last day of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_BEFORE_1970;
    let day = days % DAYS_IN_400_YEARS;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (
        days / DAYS_IN_400_YEARS * 400 + year + u64::from(is_next_year),
        month,
        day_of_month,
    )
}

fn write_digits(text: &mut [u8], mut number: u64) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl Timestamp {
    /// Returns the notation.
    pub fn as_str(&self) -> &str {
        // It is ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected(time: UnixTime) -> String {
        humantime::format_rfc3339_millis(time.until_year_9999()).to_string()
    }

    #[test]
    fn days_at_the_ends_of_months_and_years() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2000-02-29T23:59:59.999Z",
            "2100-02-28T12:00:00.001Z",
        ] {
            let time = humantime::parse_rfc3339(text)
                .unwrap()
                .duration_since(UNIX_EPOCH)
                .unwrap();
            assert_eq!(
                timestamp(UnixTime::from_millis(time.as_millis() as u64)).as_str(),
                text
            );
        }
        for day in 0..150_000 {
            let time = UnixTime::from_secs(day * 86_400);
            assert_eq!(timestamp(time).as_str(), expected(time));
        }
        let last = UnixTime::from_millis(u64::MAX);
        assert_eq!(timestamp(last).as_str(), expected(last));
    }

    proptest! {
        /// Every time has the notation of humantime.
        #[test]
        fn times_are_written_like_those_of_humantime(millis in 0_u64..253_402_300_800_000) {
            let time = UnixTime::from_millis(millis);
            prop_assert_eq!(timestamp(time).to_string(), expected(time));
        }
    }
}
