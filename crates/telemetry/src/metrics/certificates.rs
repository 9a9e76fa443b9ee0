//! The expiry of the certificates in use.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use portcullis_metadata::UnixTime;

use super::{exposition::Exposition, family};

/// When a certificate in use expires, in seconds since 1970; 0 if it is unknown. Clones share the
/// value.
#[derive(Clone, Debug, Default)]
pub struct Expiry(Arc<AtomicU64>);

impl Expiry {
    /// Sets the time, which is unknown at first.
    pub fn set(&self, expires: Option<UnixTime>) {
        self.0
            .store(expires.map_or(0, UnixTime::as_secs), Ordering::Relaxed);
    }
}

/// The certificates in use, each with the table that configures it.
#[derive(Debug, Default)]
pub(super) struct Certificates(Mutex<Vec<(&'static str, Expiry)>>);

impl Certificates {
    /// Sets the certificate of a table, in place of a former one.
    pub(super) fn set(&self, table: &'static str, expiry: Option<Expiry>) {
        let mut certificates = self.0.lock();
        certificates.retain(|(other, _)| *other != table);
        certificates.extend(expiry.map(|expiry| (table, expiry)));
    }

    pub(super) fn write(&self, out: &mut Exposition) {
        for (table, expiry) in self.0.lock().iter() {
            let expires = expiry.0.load(Ordering::Relaxed);
            if expires > 0 {
                out.value(&family::CERTIFICATE_EXPIRY, &[("table", table)], expires);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F8, J7: a renewed certificate changes its expiry; an unknown one is left out.
    #[test]
    fn the_expiry_follows_the_certificate() {
        let certificates = Certificates::default();
        let expiry = Expiry::default();
        for current in [Expiry::default(), expiry.clone()] {
            certificates.set("tls", Some(current));
        }
        let text = || {
            let mut out = Exposition::default();
            certificates.write(&mut out);
            out.finish()
        };
        assert_eq!(text(), "");

        for expires in [1_800_000_000, 1_900_000_000] {
            expiry.set(Some(UnixTime::from_secs(expires)));
            let sample = format!(
                "portcullis_certificate_expiry_timestamp_seconds{{table=\"tls\"}} {expires}\n"
            );
            assert!(text().ends_with(&sample), "{}", text());
        }
        certificates.set("tls", None);
        assert_eq!(text(), "");
    }
}
