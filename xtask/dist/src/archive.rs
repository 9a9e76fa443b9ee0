//! The archive of one target: the full program, manual pages, completions, the pages for users,
//! units and the example configuration.

use std::fs;

use xtask::workspace;

use crate::{
    binaries::{self, Features},
    manual,
    release::{FileMode, Release, install, install_content},
    report::Step,
    shell,
    target::Target,
};

/// The other files of the archive, with their places in the workspace.
const FILES: [(&str, &str); 6] = [
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

/// Packs the program, manual pages, completions and pages for this target. Fails when a file cannot
/// be read or written.
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
    install_content(
        readme(&fs::read_to_string(release.deploy("archive/README.md"))?).as_bytes(),
        &folder.join("README.md"),
        FileMode::Data,
    )?;
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

/// Returns the README with links to the pages as the archive has them, and without the marks for
/// the tests of pages.
fn readme(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("<!--"));
    let lines = lines.map(|line| line.replace("](../../", "](").replace(",not-run", "") + "\n");
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_readme_lead_to_the_archive() {
        let text =
            "<!-- not run: a reason -->\n```console,not-run\n```\n[a](../../docs/use/a.md)\n";
        assert_eq!(readme(text), "```console\n```\n[a](docs/use/a.md)\n");
    }
}
