//! Files whose content is read again when they change.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use portcullis_session::SessionStore;

use super::tls::Tls;
use crate::{
    config::Config,
    plan::{KeySources, Plan, TlsFiles, Written},
};

/// How often the files are checked for changes.
pub(super) const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// The versions of files, each `None` if the file cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions(Vec<(PathBuf, Option<Version>)>);

/// A file's modification time, length and inode.
type Version = (SystemTime, u64, u64);

impl Versions {
    /// Returns the versions of the configuration file and of the files that a configuration names, apart from
    /// certificates and session keys.
    pub(super) fn of(file: &Path, config: &Config) -> Self {
        let named = config.files().into_iter().map(Path::to_owned);
        Self(std::iter::once(file.to_owned()).chain(named).map(with_version).collect())
    }

    /// Returns these versions, with an earlier one of the configuration file.
    pub(super) fn with_first_of(mut self, earlier: &Self) -> Self {
        if let (Some(first), Some(earlier)) = (self.0.first_mut(), earlier.0.first()) {
            first.clone_from(earlier);
        }
        self
    }

    /// Returns the present versions of the same files.
    pub(super) fn now(&self) -> Self {
        Self(self.0.iter().map(|(file, _)| with_version(file.clone())).collect())
    }
}

fn with_version(file: PathBuf) -> (PathBuf, Option<Version>) {
    let metadata = fs::metadata(&file).ok();
    let version = metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len(), metadata.ino())));
    (file, version)
}

/// The certificate and the session keys of the running configuration.
pub(super) struct ChangedFiles {
    certificate: Option<CertificateFiles>,
    sessions: SessionStore,
    keys: Option<KeyFiles>,
}

/// The files of the certificate.
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
