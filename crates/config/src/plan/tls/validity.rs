//! The validity of a certificate.

use std::time::Duration;

use openssl::{
    asn1::{Asn1Time, Asn1TimeRef},
    x509::X509,
};
use portcullis_metadata::UnixTime;
use rustls::pki_types::CertificateDer;

/// The time before the expiry from which a certificate is reported. Those of ACME are renewed
/// earlier.
const SOON: Duration = Duration::from_secs(14 * 86_400);
const RENEW: &str = "renew it and replace the files, which the running server then reads by itself";

/// The times between which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: UnixTime,
    /// The last second.
    pub until: UnixTime,
}

/// Why a certificate is not valid, or not for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalidity {
    /// Clients reject the certificate now.
    pub is_rejected: bool,
    /// The problem, with the key of the file.
    pub text: String,
    /// What to do.
    pub fix: &'static str,
}

impl Validity {
    /// Reads the validity. `None` if the certificate is malformed, or valid from a time before
    /// 1970.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = X509::from_der(certificate).ok()?;
        Some(Self {
            from: unix_time(certificate.not_before())?,
            until: unix_time(certificate.not_after())?,
        })
    }

    /// Returns the problem at this time, and the fix. `key` is the key of the file with its value.
    pub(super) fn at(&self, now: UnixTime, key: &str) -> Option<Invalidity> {
        let from = date(self.from);
        let until = date(self.until);
        let found = |is_rejected, text, fix| {
            Some(Invalidity {
                is_rejected,
                text,
                fix,
            })
        };
        if self.until <= now {
            found(
                true,
                format!("{key} expired on {until}, so that clients reject it"),
                RENEW,
            )
        } else if self.from > now {
            let fix =
                "set the clock of this machine by NTP, or name the certificate that is valid now";
            found(
                true,
                format!(
                    "{key} is not valid before {from}, and it is {} now",
                    date(now)
                ),
                fix,
            )
        } else if self.until.saturating_duration_since(now) < SOON {
            let days = self.until.saturating_duration_since(now).as_secs() / 86_400;
            let days = if days == 1 {
                "1 day".to_owned()
            } else {
                format!("{days} days")
            };
            found(false, format!("{key} expires in {days}, on {until}"), RENEW)
        } else {
            None
        }
    }
}

fn unix_time(time: &Asn1TimeRef) -> Option<UnixTime> {
    let since = Asn1Time::from_unix(0).ok()?.diff(time).ok()?;
    let seconds = i64::from(since.days) * 86_400 + i64::from(since.secs);
    u64::try_from(seconds).ok().map(UnixTime::from_secs)
}

/// Writes a time as in `2026-11-22T14:07:55Z`.
pub fn date(time: UnixTime) -> String {
    humantime::format_rfc3339_seconds(time.until_year_9999()).to_string()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    const DAY: u64 = 86_400;

    /// F8: the dates of a certificate are read exactly.
    #[test]
    fn dates_are_read() {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let validity = Validity::of(certificate.der()).unwrap();
        assert_eq!(validity.from.as_secs(), 1_767_225_600);
        assert_eq!(validity.until.as_secs(), 1_798_761_600);
        assert_eq!(Validity::of(&CertificateDer::from(vec![0x30, 0])), None);
    }

    /// F8: an expired certificate, one that is not valid yet, and one that expires within 14 days
    /// are reported with file, date and fix.
    #[test]
    fn invalid_times_are_named() {
        let validity = Validity {
            from: UnixTime::from_secs(1_767_225_600),
            until: UnixTime::from_secs(1_798_761_600),
        };
        let at = |seconds: u64| {
            validity.at(UnixTime::from_secs(seconds), "tls.certificates = /cert.pem")
        };
        let (start, end) = (validity.from.as_secs(), validity.until.as_secs());
        assert_eq!(at(start), None);
        assert_eq!(at(end - 14 * DAY), None);

        let soon = at(end - 2 * DAY + 1).unwrap();
        assert!(!soon.is_rejected);
        assert_eq!(
            soon.text,
            "tls.certificates = /cert.pem expires in 1 day, on 2027-01-01T00:00:00Z"
        );
        let expired = at(end).unwrap();
        assert!(expired.is_rejected);
        assert!(expired.fix.starts_with("renew it"));
        assert!(
            expired
                .text
                .contains("/cert.pem expired on 2027-01-01T00:00:00Z"),
            "{}",
            expired.text
        );

        let early = at(start - 1).unwrap();
        assert!(early.is_rejected, "{}", early.text);
        assert!(
            early.text.contains("not valid before 2026-01-01T00:00:00Z"),
            "{}",
            early.text
        );
    }
}
