//! The source archive, and the Homebrew formula that builds it.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, bail, ensure};

use crate::{
    release::{Release, sha256},
    report::Step,
    shell,
};

/// Packs the files of the last commit. Fails when git fails.
pub(crate) fn source(release: &Release) -> anyhow::Result<Step> {
    let file = source_path(release);
    let mut git = Command::new("git");
    git.args([
        "-c",
        "tar.tar.gz.command=gzip -9n",
        "archive",
        "--format=tar.gz",
    ])
    .current_dir(&release.root);
    git.arg(format!("--prefix=portcullis-{}/", release.version))
        .arg("--output")
        .arg(&file)
        .arg("HEAD");
    shell::run(&mut git)?;
    Ok(Step::Built(vec![file]))
}

/// Fills in the version, the address and the checksum of the source archive. Fails when there is no
/// source archive.
pub(crate) fn formula(release: &Release) -> anyhow::Result<Step> {
    let template = fs::read_to_string(release.deploy("homebrew/portcullis.rb"))
        .context("the formula cannot be read")?;
    let values = [
        ("@VERSION@", &release.version),
        ("@URL@", &release.url),
        ("@SHA256@", &sha256(&source_path(release))?),
    ];
    let file = release.out.join("portcullis.rb");
    fs::write(&file, fill(&template, &values)?)?;
    Ok(Step::Built(vec![file]))
}

/// Replaces names in capital letters between `@` by their values. Fails when a name is not in the
/// template, or the template has a name without a value.
pub(crate) fn fill(template: &str, values: &[(&str, &String)]) -> anyhow::Result<String> {
    let mut text = template.to_owned();
    for (name, value) in values {
        ensure!(text.contains(name), "{name} is not in the template");
        text = text.replace(name, value);
    }
    match unfilled(&text) {
        Some(name) => bail!("@{name}@ has no value"),
        None => Ok(text),
    }
}

/// Returns the first name in capital letters between two `@`.
fn unfilled(text: &str) -> Option<&str> {
    let is_name = |piece: &str| {
        !piece.is_empty()
            && piece
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    let pieces: Vec<&str> = text.split('@').collect();
    let [_, between @ .., _] = pieces.as_slice() else {
        return None;
    };
    between.iter().copied().find(|piece| is_name(piece))
}

fn source_path(release: &Release) -> PathBuf {
    release
        .out
        .join(format!("portcullis-{}.tar.gz", release.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_filled_in() {
        let version = "1.0.0".to_owned();
        let url = "https://example.com".to_owned();
        let values = [("@VERSION@", &version), ("@URL@", &url)];
        assert_eq!(
            fill("@URL@/@VERSION@/@VERSION@", &values).unwrap(),
            "https://example.com/1.0.0/1.0.0"
        );
        assert!(fill("@URL@", &values).is_err(), "no version");
        assert!(
            fill("@URL@/@VERSION@/@SHA256@", &values).is_err(),
            "no checksum"
        );
        assert!(fill("@URL@/@VERSION@ of A@B.example", &values).is_ok());
    }
}
