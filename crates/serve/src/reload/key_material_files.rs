//! Certificates and session keys, which are read again when their files change.

use std::time::Duration;

use portcullis_session::SessionStore;

use crate::connection::tls::Tls;
use portcullis_config::{
    Diagnostic,
    plan::{FileVersion, KeySources, Plan, TlsFiles},
};

/// How often the files are checked for changes.
pub(crate) const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// The certificate and the session keys of the running configuration.
pub(crate) struct KeyMaterialFiles {
    certificate: Option<CertificateFiles>,
    sessions: SessionStore,
    keys: Option<KeyFiles>,
}

/// The files of a certificate, and the listener that uses it.
pub(crate) struct CertificateFiles {
    tls: Tls,
    files: TlsFiles,
    /// The versions whose content is in use, or could not be used.
    versions: [Option<FileVersion>; 2],
}

/// The files of the session keys.
struct KeyFiles {
    sessions: SessionStore,
    sources: KeySources,
    /// The versions whose content is in use, or could not be used.
    versions: Vec<Option<FileVersion>>,
}

impl KeyMaterialFiles {
    /// Returns the files of a plan whose certificate and keys are in use.
    pub(crate) fn new(plan: &Plan, tls: Option<Tls>, sessions: SessionStore) -> Self {
        let certificate = tls
            .zip(plan.tls.clone())
            .map(|(tls, files)| CertificateFiles::new(tls, files));
        let keys = KeyFiles::of(plan, &sessions);
        Self {
            certificate,
            sessions,
            keys,
        }
    }

    /// Uses the certificate and the keys of a plan with other files. `tls` is that of the listener.
    pub(crate) fn replace(&mut self, plan: &Plan, tls: Option<Tls>) {
        self.certificate = tls.zip(plan.tls.clone()).map(|(tls, files)| {
            tls.set_certificate(files.first());
            CertificateFiles::new(tls, files)
        });
        if plan.session.key_sources.is_some() {
            self.sessions.set_keys(plan.session.settings.keys.clone());
        }
        self.keys = KeyFiles::of(plan, &self.sessions);
    }

    /// Uses the certificate and the keys of files that have changed. Unusable files leave them
    /// unchanged.
    pub(crate) fn check(&mut self) {
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
    pub(crate) fn new(tls: Tls, files: TlsFiles) -> Self {
        let versions = files.first().versions;
        Self {
            tls,
            files,
            versions,
        }
    }

    /// Replaces the certificate if the files have changed. Unusable files leave it unchanged.
    pub(crate) fn check(&mut self) {
        let now = self.files.versions();
        if now != self.versions {
            self.versions = now;
            match self.files.load() {
                Ok(loaded) => {
                    self.tls.set_certificate(&loaded);
                    tracing::info!("the certificate was replaced");
                }
                Err(errors) => tracing::error!(
                    "the certificate is unchanged: {}",
                    Diagnostic::joined(&errors)
                ),
            }
        }
    }
}

impl KeyFiles {
    /// Returns the key files of a plan, if any. The content that the plan has read is in use.
    fn of(plan: &Plan, sessions: &SessionStore) -> Option<Self> {
        let sources = plan.session.key_sources.clone()?;
        let versions = plan.session.key_versions.clone();
        Some(Self {
            sessions: sessions.clone(),
            sources,
            versions,
        })
    }

    /// Replaces the session keys if the files have changed. Unusable files leave them unchanged.
    fn check(&mut self) {
        // Read before the files, so that a change during the reload is noticed at the next check.
        let now = self.sources.versions();
        if now != self.versions {
            self.versions = now;
            match self.sources.load() {
                Ok(keys) => {
                    self.sessions.set_keys(keys);
                    tracing::info!("the session keys were replaced");
                }
                Err(errors) => tracing::error!(
                    "the session keys are unchanged: {}",
                    Diagnostic::joined(&errors)
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use portcullis_config::from_text;

    /// E10: a key file that is replaced after the plan has read it is read again at the next check.
    #[test]
    fn keys_that_change_after_the_plan_are_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "a".repeat(32)).unwrap();
        let text = format!(
            "base_url = \"http://127.0.0.1:1\"\n[session]\nkeys = [{{ file = \"{}\" }}]\n[[resource]]\nauth = \"none\"\n\
             endpoint = \"/mcp\"\nupstream = \"demo\"",
            file.path().display()
        );
        let plan = Plan::new(&from_text(&text).unwrap()).unwrap();
        fs::write(file.path(), "b".repeat(64)).unwrap();
        let store = SessionStore::builder(plan.session.settings.clone()).build();
        let mut files = KeyMaterialFiles::new(&plan, None, store);
        let differs = |files: &KeyMaterialFiles| {
            let keys = files.keys.as_ref().unwrap();
            keys.versions != keys.sources.versions()
        };
        assert!(
            differs(&files),
            "the versions are those of the content that was read"
        );
        files.check();
        assert!(!differs(&files));
    }
}
