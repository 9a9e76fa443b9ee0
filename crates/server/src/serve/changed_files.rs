//! Certificates and session keys, which are read again when their files change.

use std::time::{Duration, SystemTime};

use portcullis_session::SessionStore;

use super::tls::Tls;
use crate::plan::{KeySources, Plan, TlsFiles, Written};

/// How often the files are checked for changes.
pub(super) const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// The certificate and the session keys of the running configuration.
pub(super) struct ChangedFiles {
    certificate: Option<CertificateFiles>,
    sessions: SessionStore,
    keys: Option<KeyFiles>,
}

/// The files of a certificate, and the listener that uses it.
pub(super) struct CertificateFiles {
    tls: Tls,
    files: TlsFiles,
    written: Written,
}

/// The files of the session keys.
struct KeyFiles {
    sessions: SessionStore,
    sources: KeySources,
    written: Vec<Option<SystemTime>>,
}

impl ChangedFiles {
    /// Returns the files of a plan whose certificate and keys are in use.
    pub(super) fn new(plan: &Plan, tls: Option<Tls>, sessions: SessionStore) -> Self {
        let certificate = tls.zip(plan.tls.clone()).map(|(tls, files)| CertificateFiles::new(tls, files));
        let keys = KeyFiles::of(plan, &sessions);
        Self { certificate, sessions, keys }
    }

    /// Uses the certificate and the keys of a plan with other files.
    pub(super) fn replace(&mut self, plan: &Plan) {
        if let (Some(certificate), Some(files)) = (&mut self.certificate, plan.tls.clone()) {
            certificate.tls.set_certificate(files.first());
            *certificate = CertificateFiles::new(certificate.tls.clone(), files);
        }
        if plan.session.key_sources.is_some() {
            self.sessions.set_keys(plan.session.settings.keys.clone());
        }
        self.keys = KeyFiles::of(plan, &self.sessions);
    }

    /// Uses the certificate and the keys of files that have changed. Unusable files leave them unchanged.
    pub(super) fn check(&mut self) {
        if let Some(certificate) = &mut self.certificate {
            certificate.check();
        }
        if let Some(keys) = &mut self.keys {
            keys.check();
        }
    }
}

impl CertificateFiles {
    /// Returns files whose first content is in use.
    pub(super) fn new(tls: Tls, files: TlsFiles) -> Self {
        let written = files.first().written;
        Self { tls, files, written }
    }

    /// Replaces the certificate if the files have changed. Unusable files leave it unchanged.
    pub(super) fn check(&mut self) {
        let now = self.files.written();
        if now != self.written {
            self.written = now;
            match self.files.load() {
                Ok(loaded) => {
                    self.tls.set_certificate(&loaded);
                    tracing::info!("the certificate was replaced");
                }
                Err(error) => tracing::error!("the certificate is unchanged: {error:#}"),
            }
        }
    }
}

impl KeyFiles {
    /// Returns the key files of a plan, if any. Their first content is in use.
    fn of(plan: &Plan, sessions: &SessionStore) -> Option<Self> {
        let sources = plan.session.key_sources.clone()?;
        let written = sources.written();
        Some(Self { sessions: sessions.clone(), sources, written })
    }

    /// Replaces the session keys if the files have changed. Unusable files leave them unchanged.
    fn check(&mut self) {
        // Read before the files, so that a change during the reload is noticed at the next check.
        let now = self.sources.written();
        if now != self.written {
            self.written = now;
            match self.sources.load() {
                Ok(keys) => {
                    self.sessions.set_keys(keys);
                    tracing::info!("the session keys were replaced");
                }
                Err(error) => tracing::error!("the session keys are unchanged: {error:#}"),
            }
        }
    }
}
