//! The Debian package: the static program without the development commands, units, manual pages and
//! completions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    binaries::{self, Features},
    formula::fill,
    manual,
    release::{FileMode, Release, install, install_content},
    report::Step,
    shell,
    target::Target,
};

/// Where the completions are on Debian, in the order of [`manual::COMPLETIONS`].
const COMPLETIONS: [&str; 3] = [
    "usr/share/bash-completion/completions/portcullis",
    "usr/share/zsh/vendor-completions/_portcullis",
    "usr/share/fish/vendor_completions.d/portcullis.fish",
];

/// Builds the package, if `dpkg-deb` is installed. Fails when a file cannot be read or written, or
/// `dpkg-deb` fails.
pub(crate) fn build(release: &Release, target: &Target) -> anyhow::Result<Step> {
    if !shell::exists("dpkg-deb") {
        return Ok(Step::NotRun("dpkg-deb is not installed".to_owned()));
    }
    let folder = release.stage("deb")?;
    install(
        &binaries::path(release, target, Features::Server),
        &folder.join("usr/bin/portcullis"),
        FileMode::Program,
    )?;
    install(
        &release.deploy("portcullis.toml"),
        &folder.join("etc/portcullis/portcullis.toml"),
        FileMode::Data,
    )?;
    for unit in ["portcullis.service", "portcullis.socket"] {
        let from = release.deploy("systemd").join(unit);
        install(
            &from,
            &folder.join("lib/systemd/system").join(unit),
            FileMode::Data,
        )?;
    }
    write_manual(release, &folder)?;
    write_documents(release, &folder)?;
    write_control(release, target, &folder)?;
    let file = path(release, target);
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&folder)
        .arg(&file);
    shell::output(dpkg.env("SOURCE_DATE_EPOCH", release.time.to_string()))?;
    Ok(Step::Built(vec![file]))
}

/// Writes compressed manual pages, and the completions.
fn write_manual(release: &Release, folder: &Path) -> anyhow::Result<()> {
    let manual = manual::write(release, Features::Server)?;
    for entry in fs::read_dir(manual.join("man"))? {
        let entry = entry?;
        let page = folder.join("usr/share/man/man1").join(entry.file_name());
        install(&entry.path(), &page, FileMode::Data)?;
        gzip(&page)?;
    }
    for ((_, from), to) in manual::COMPLETIONS.into_iter().zip(COMPLETIONS) {
        install(
            &manual.join("completions").join(from),
            &folder.join(to),
            FileMode::Data,
        )?;
    }
    Ok(())
}

/// Writes the first steps, the copyright file, the changelogs, and which tags of lintian do not
/// apply.
fn write_documents(release: &Release, folder: &Path) -> anyhow::Result<()> {
    let documents = folder.join("usr/share/doc/portcullis");
    let copyright = fs::read_to_string(release.deploy("debian/copyright"))?;
    let license = indented(&fs::read_to_string(release.root.join("LICENSE-MIT"))?);
    let copyright = fill(&copyright, &[("@MIT@", &license)])?;
    install_content(
        copyright.as_bytes(),
        &documents.join("copyright"),
        FileMode::Data,
    )?;
    install(
        &release.deploy("debian/README.Debian"),
        &documents.join("README.Debian"),
        FileMode::Data,
    )?;
    let changes = documents.join("CHANGELOG.md");
    install(&release.root.join("CHANGELOG.md"), &changes, FileMode::Data)?;
    gzip(&changes)?;
    let mut date = Command::new("date");
    let date = shell::output(
        date.args(["--utc", "--rfc-email"])
            .arg(format!("--date=@{}", release.time)),
    )?;
    let changelog = documents.join("changelog");
    let entry = changelog_entry(&release.version, &release.maintainer, date.trim());
    install_content(entry.as_bytes(), &changelog, FileMode::Data)?;
    gzip(&changelog)?;
    let overrides = folder.join("usr/share/lintian/overrides/portcullis");
    install(
        &release.deploy("debian/lintian-overrides"),
        &overrides,
        FileMode::Data,
    )
}

/// Returns the changelog in Debian's format. What has changed is in `CHANGELOG.md`.
fn changelog_entry(version: &str, maintainer: &str, date: &str) -> String {
    format!(
        "portcullis ({version}) unstable; urgency=medium\n\n  * Release {version}. The changes are in CHANGELOG.md.gz.\n\n \
         -- {maintainer}  {date}\n"
    )
}

/// Runs Debian's checks of packages. Fails when `lintian` reports an error or a warning.
pub(crate) fn lintian(release: &Release, target: &Target) -> anyhow::Result<Step> {
    if !shell::exists("lintian") {
        return Ok(Step::NotRun("lintian is not installed".to_owned()));
    }
    let mut lintian = Command::new("lintian");
    shell::run(
        lintian
            .args(["--fail-on", "error,warning"])
            .arg(path(release, target)),
    )?;
    Ok(Step::Checked("no error and no warning".to_owned()))
}

fn path(release: &Release, target: &Target) -> PathBuf {
    release.out.join(format!(
        "portcullis_{}_{}.deb",
        release.version, target.debian
    ))
}

/// Writes the files of `DEBIAN`.
fn write_control(release: &Release, target: &Target, folder: &Path) -> anyhow::Result<()> {
    // In units of 1024 bytes, as `du` counts.
    let size = shell::output(
        Command::new("du")
            .args(["--apparent-size", "--summarize", "--block-size=1024"])
            .arg(folder),
    )?;
    let size = size
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    let control = fill(
        &fs::read_to_string(release.deploy("debian/control"))?,
        &[
            ("@VERSION@", &release.version),
            ("@ARCHITECTURE@", &target.debian.to_owned()),
            ("@SIZE@", &size),
            ("@MAINTAINER@", &release.maintainer),
        ],
    )?;
    install_content(
        control.as_bytes(),
        &folder.join("DEBIAN/control"),
        FileMode::Data,
    )?;
    install(
        &release.deploy("debian/conffiles"),
        &folder.join("DEBIAN/conffiles"),
        FileMode::Data,
    )?;
    for script in ["postinst", "prerm", "postrm"] {
        install(
            &release.deploy("debian").join(script),
            &folder.join("DEBIAN").join(script),
            FileMode::Program,
        )?;
    }
    let sums = shell::output(
        Command::new("sh")
            .args([
                "-c",
                "find etc lib usr -type f | LC_ALL=C sort | xargs md5sum",
            ])
            .current_dir(folder),
    )?;
    install_content(
        sums.as_bytes(),
        &folder.join("DEBIAN/md5sums"),
        FileMode::Data,
    )
}

fn gzip(file: &Path) -> anyhow::Result<()> {
    shell::run(
        Command::new("gzip")
            .args(["-9", "--no-name", "--force"])
            .arg(file),
    )
}

/// Returns a text as a field of a control file: each line begins with a blank, and an empty line is
/// a dot.
fn indented(text: &str) -> String {
    let lines = text.trim().lines().map(|line| {
        if line.trim().is_empty() {
            " .".to_owned()
        } else {
            format!(" {line}")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changelog_has_the_format_of_debian() {
        let entry = changelog_entry(
            "1.0.0",
            "A <a@example.com>",
            "Sun, 22 Nov 2026 16:53:33 +0000",
        );
        let lines: Vec<_> = entry.lines().collect();
        assert_eq!(lines[0], "portcullis (1.0.0) unstable; urgency=medium");
        assert_eq!(
            lines[2],
            "  * Release 1.0.0. The changes are in CHANGELOG.md.gz."
        );
        assert_eq!(
            lines[4],
            " -- A <a@example.com>  Sun, 22 Nov 2026 16:53:33 +0000"
        );
    }

    #[test]
    fn a_license_becomes_a_field() {
        assert_eq!(
            indented("MIT\n\nPermission is\n"),
            " MIT\n .\n Permission is"
        );
    }
}
