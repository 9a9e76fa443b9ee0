//! The archive of one target: the full program, manual pages, completions, the pages for users, units
//! and the example configuration.

use std::fs;

use xtask::workspace;

use crate::{
    binaries::{self, Features},
    manual,
    release::{FileMode, Release, install},
    report::Step,
    shell,
    target::Target,
};

/// The other files of the archive, with their places in the workspace.
const FILES: [(&str, &str); 7] = [
    ("README.md", "deploy/archive/README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("portcullis.toml", "deploy/portcullis.toml"),
    (
        "systemd/portcullis.service",
        "deploy/systemd/portcullis.service",
    ),
    (
        "systemd/portcullis.socket",
        "deploy/systemd/portcullis.socket",
    ),
];

/// The pages for users, which have the same places in the archive.
const PAGES: [&str; 2] = ["docs/guides", "docs/use"];

/// Packs the program, manual pages, completions and pages for this target. Fails when a file cannot be
/// read or written.
pub(crate) fn build(release: &Release, target: &Target) -> anyhow::Result<Step> {
    let name = format!("portcullis-{}-{}", release.version, target.triple);
    let staging = release.stage("archive")?;
    let folder = staging.join(&name);
    install(
        &binaries::path(release, target, Features::Full),
        &folder.join("portcullis"),
        FileMode::Program,
    )?;
    for (to, from) in FILES {
        install(&release.root.join(from), &folder.join(to), FileMode::Data)?;
    }
    for page in workspace::files(&PAGES, "md")? {
        let place = page.strip_prefix(&release.root)?;
        install(&page, &folder.join(place), FileMode::Data)?;
    }
    let manual = manual::write(release, Features::Full)?;
    for part in ["man", "completions"] {
        for entry in fs::read_dir(manual.join(part))? {
            let entry = entry?;
            install(
                &entry.path(),
                &folder.join(part).join(entry.file_name()),
                FileMode::Data,
            )?;
        }
    }
    let file = release.out.join(format!("{name}.tar.gz"));
    shell::tar_gz(&staging, &name, release.time, &file)?;
    Ok(Step::Built(vec![file]))
}
