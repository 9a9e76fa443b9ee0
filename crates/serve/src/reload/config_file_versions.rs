//! [`ConfigFileVersions`]: whether files have changed, without reading them.

use portcullis_config::{Config, plan::FileVersion};
use std::path::{Path, PathBuf};

/// The versions of files. Two values are equal if no file has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConfigFileVersions(Vec<VersionedFile>);

/// A file and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionedFile {
    path: PathBuf,
    /// `None` if the file cannot be read.
    version: Option<FileVersion>,
}

impl ConfigFileVersions {
    /// Returns the versions of the configuration file and of the files that a configuration names,
    /// apart from certificates and session keys.
    pub(super) fn of(file: &Path, config: &Config) -> Self {
        let named = config.files().into_iter().map(Path::to_owned);
        Self(
            std::iter::once(file.to_owned())
                .chain(named)
                .map(VersionedFile::now)
                .collect(),
        )
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
        Self(self.0.iter().map(VersionedFile::again).collect())
    }
}

impl VersionedFile {
    pub(super) fn now(path: PathBuf) -> Self {
        let version = FileVersion::of(&path);
        Self { path, version }
    }

    /// Returns the same file with its present version.
    pub(super) fn again(&self) -> Self {
        Self::now(self.path.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use portcullis_config::from_text;

    /// J10: a file that is written, replaced, removed or created has another version.
    #[test]
    fn changed_files_have_other_versions() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("portcullis.toml");
        let keys = directory.path().join("keys");
        let other = directory.path().join("other");
        let text = format!(
            "base_url = 'http://127.0.0.1:3000'\n[[issuer]]\nissuer = 'https://a.example'\njwks_file = '{}'\n[[resource]]\n\
             endpoint = '/mcp'\nupstream = 'demo'",
            keys.display()
        );
        fs::write(&file, &text).unwrap();
        fs::write(&other, "12").unwrap();
        let config = from_text(&text).unwrap();
        let mut versions = ConfigFileVersions::of(&file, &config);
        assert_eq!(versions.now(), versions);

        let steps: [(&str, &dyn Fn()); 4] = [
            ("created", &|| fs::write(&keys, "1").unwrap()),
            ("written", &|| fs::write(&keys, "22").unwrap()),
            ("replaced by a file of the same length", &|| {
                fs::rename(&other, &keys).unwrap()
            }),
            ("removed", &|| fs::remove_file(&keys).unwrap()),
        ];
        for (name, change) in steps {
            change();
            let now = versions.now();
            assert_ne!(now, versions, "{name}");
            versions = now;
        }
        let earlier = versions.clone();
        fs::write(&file, "changed").unwrap();
        assert_eq!(
            ConfigFileVersions::of(&file, &config).with_first_of(&earlier),
            earlier
        );
    }
}
