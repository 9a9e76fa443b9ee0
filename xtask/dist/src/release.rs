//! What all packages of a release have in common: version, time and folders.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use xtask::workspace;

use crate::{report::Step, shell};

/// A release of the workspace.
pub(crate) struct Release {
    pub(crate) version: String,
    /// The cargo profile of the programs.
    pub(crate) profile: String,
    /// Where the files will be published.
    pub(crate) url: String,
    pub(crate) maintainer: String,
    /// The time of the commit, in seconds since 1970. Files in packages have it, so that a build
    /// can be repeated.
    pub(crate) time: u64,
    /// The workspace.
    pub(crate) root: PathBuf,
    /// Where the packages are written.
    pub(crate) out: PathBuf,
    /// Where files are prepared for packages.
    pub(crate) staging: PathBuf,
}

impl Release {
    /// Prepares a release of the current version, and creates its folders. Fails when the workspace
    /// cannot be read, or the folders cannot be written.
    pub(crate) fn new(profile: &str, url: &str, maintainer: &str) -> anyhow::Result<Self> {
        let root = workspace::root();
        let version = version(&root)?;
        let time = shell::output(
            Command::new("git")
                .args(["log", "-1", "--format=%ct"])
                .current_dir(&root),
        )?;
        let out = workspace::metadata()?.target_directory.join("packages");
        let staging = out.join("staging");
        fs::create_dir_all(&staging)
            .with_context(|| format!("{} cannot be created", staging.display()))?;
        let time = time.trim().parse().context("git printed no time")?;
        let [profile, url, maintainer] =
            [profile, url.trim_end_matches('/'), maintainer].map(str::to_owned);
        Ok(Self {
            version,
            profile,
            url,
            maintainer,
            time,
            root,
            out,
            staging,
        })
    }

    /// Returns the path of a file of `deploy`.
    pub(crate) fn deploy(&self, file: &str) -> PathBuf {
        self.root.join("deploy").join(file)
    }

    /// Creates an empty folder for a package. Fails when it cannot be created, or the files of a
    /// former build cannot be removed.
    pub(crate) fn stage(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.staging.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{} cannot be removed", folder.display()))?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
        Ok(folder)
    }

    /// Writes `SHA256SUMS` with the files that this build has written, and no others of the folder.
    /// `sha256sum --check SHA256SUMS` verifies them. Fails when a file cannot be read.
    pub(crate) fn checksums(&self, built: &[PathBuf]) -> anyhow::Result<Step> {
        let lines: String = self
            .digests(built)?
            .iter()
            .map(|(name, digest)| format!("{digest}  {name}\n"))
            .collect();
        let sums = self.out.join("SHA256SUMS");
        fs::write(&sums, lines)?;
        Ok(Step::Built(vec![sums]))
    }

    /// Returns the names of the built files that are packages, in alphabetical order, and their
    /// SHA-256 hashes. Others, such as programs that are packed, are not in the folder of the
    /// packages. Fails when a file cannot be read.
    pub(crate) fn digests(&self, built: &[PathBuf]) -> anyhow::Result<BTreeMap<String, String>> {
        let packages = built.iter().filter(|file| file.parent() == Some(&self.out));
        packages
            .map(|file| {
                let name = file
                    .file_name()
                    .context("a file has a name")?
                    .to_string_lossy();
                Ok((name.into_owned(), sha256(file)?))
            })
            .collect()
    }
}

/// Returns the version of the workspace. Fails when `Cargo.toml` cannot be read or has none.
pub(crate) fn version(root: &Path) -> anyhow::Result<String> {
    let manifest =
        fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml cannot be read")?;
    let manifest: toml::Table = manifest.parse().context("Cargo.toml is not TOML")?;
    let version = manifest
        .get("workspace")
        .and_then(|table| table.get("package")?.get("version")?.as_str());
    Ok(version
        .context("Cargo.toml has no workspace.package.version")?
        .to_owned())
}

/// Returns the SHA-256 hash of a file in hexadecimal digits. Fails when the file cannot be read.
pub(crate) fn sha256(file: &Path) -> anyhow::Result<String> {
    let content = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(Sha256::digest(&content)
        .iter()
        .fold(String::new(), |digits, byte| {
            digits + &format!("{byte:02x}")
        }))
}

/// The permissions of a file in a package.
#[derive(Clone, Copy)]
pub(crate) enum FileMode {
    /// Everyone can read it.
    Data,
    /// Everyone can read and execute it.
    Program,
}

impl FileMode {
    fn bits(self) -> u32 {
        match self {
            Self::Data => 0o644,
            Self::Program => 0o755,
        }
    }
}

/// Copies a file, and creates its folders. Fails when a file or folder cannot be written.
pub(crate) fn install(from: &Path, to: &Path, mode: FileMode) -> anyhow::Result<()> {
    let content = fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
    install_content(&content, to, mode)
}

/// Writes a file as [`install`] does. Fails when a file or folder cannot be written.
pub(crate) fn install_content(content: &[u8], to: &Path, mode: FileMode) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    fs::write(to, content).with_context(|| format!("{} cannot be written", to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode.bits()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of former builds, and those that are not packages, are not listed.
    #[test]
    fn checksums_have_only_the_files_of_this_build() {
        let folder = tempfile::tempdir().unwrap();
        let [out, root] = ["packages", "target"].map(|name| folder.path().join(name));
        let release = Release {
            version: "1.0.0".into(),
            profile: "dist".into(),
            url: String::new(),
            maintainer: String::new(),
            time: 0,
            staging: out.join("staging"),
            root,
            out,
        };
        let [built, former, program] = [&release.out, &release.out, &release.root]
            .iter()
            .zip(["b.tar.gz", "former.tar.gz", "portcullis"])
            .map(|(folder, name)| {
                let file = folder.join(name);
                install_content(b"abc", &file, FileMode::Data).unwrap();
                file
            })
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        assert!(former.exists());
        release.checksums(&[program, built]).unwrap();
        let sums = fs::read_to_string(release.out.join("SHA256SUMS")).unwrap();
        assert_eq!(
            sums,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.tar.gz\n"
        );
    }

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        install_content(b"abc", &file, FileMode::Data).unwrap();
        assert_eq!(
            sha256(&file).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
