//! The npm packages: one with the launcher, and one with the program for each platform, which npm
//! installs where it fits.

use std::{fs, path::Path, process::Command};

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::{
    binaries::{self, Features},
    formula::fill,
    release::{FileMode, Release, install, install_content},
    report::Step,
    shell,
    target::{NpmPlatform, TARGETS, Target},
};

/// Packs the package with the launcher. Fails when a file cannot be read or written, or npm fails.
pub(crate) fn launcher(release: &Release) -> anyhow::Result<Step> {
    let folder = release.stage("npm/portcullis-mcp")?;
    let manifest = fs::read_to_string(release.deploy("npm/package.json"))
        .context("package.json cannot be read")?;
    let platforms = TARGETS.iter().filter_map(|target| Some(target.npm?.suffix));
    let manifest = manifest_of_launcher(&manifest, &release.version, platforms)?;
    install_content(
        manifest.as_bytes(),
        &folder.join("package.json"),
        FileMode::Data,
    )?;
    install(
        &release.deploy("npm/bin/portcullis-mcp.js"),
        &folder.join("bin/portcullis-mcp.js"),
        FileMode::Program,
    )?;
    install(
        &release.deploy("npm/README.md"),
        &folder.join("README.md"),
        FileMode::Data,
    )?;
    pack(release, &folder)
}

/// Packs the package with the program for one platform. Fails when a file cannot be read or
/// written, or npm fails.
pub(crate) fn platform(
    release: &Release,
    target: &Target,
    npm: NpmPlatform,
) -> anyhow::Result<Step> {
    let NpmPlatform { suffix, cpu } = npm;
    let folder = release.stage(&format!("npm/{suffix}"))?;
    let template = fs::read_to_string(release.deploy("npm/platform.json"))
        .context("platform.json cannot be read")?;
    let values = [
        ("@PLATFORM@", &suffix.to_owned()),
        ("@OS@", &"linux".to_owned()),
        ("@CPU@", &cpu.to_owned()),
    ];
    let mut manifest: Map<String, Value> = serde_json::from_str(&fill(&template, &values)?)?;
    manifest.insert("version".to_owned(), release.version.as_str().into());
    install_content(
        serde_json::to_string_pretty(&manifest)?.as_bytes(),
        &folder.join("package.json"),
        FileMode::Data,
    )?;
    install(
        &binaries::path(release, target, Features::Full),
        &folder.join("bin/portcullis"),
        FileMode::Program,
    )?;
    pack(release, &folder)
}

/// Returns the manifest of the launcher, which depends on a package of each platform.
fn manifest_of_launcher<'a>(
    manifest: &str,
    version: &str,
    platforms: impl Iterator<Item = &'a str>,
) -> anyhow::Result<String> {
    let mut manifest: Map<String, Value> = serde_json::from_str(manifest)?;
    let packages: Map<_, _> = platforms
        .map(|name| (format!("portcullis-mcp-{name}"), version.into()))
        .collect();
    manifest.insert("version".to_owned(), version.into());
    manifest.insert("optionalDependencies".to_owned(), packages.into());
    Ok(serde_json::to_string_pretty(&manifest)?)
}

/// Packs the npm package in this folder.
fn pack(release: &Release, folder: &Path) -> anyhow::Result<Step> {
    if !shell::exists("npm") {
        return Ok(Step::NotRun("npm is not installed".to_owned()));
    }
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
        .arg(&release.out)
        .current_dir(folder);
    let name = shell::output(&mut npm)?;
    Ok(Step::Built(vec![release.out.join(name.trim())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_depends_on_its_own_version_of_each_platform() {
        let manifest = r#"{"name":"portcullis-mcp","version":"0.0.0","optionalDependencies":{}}"#;
        let manifest =
            manifest_of_launcher(manifest, "1.2.3", ["linux-x64", "linux-arm64"].into_iter())
                .unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["version"], "1.2.3");
        let expected = serde_json::json!({ "portcullis-mcp-linux-x64": "1.2.3", "portcullis-mcp-linux-arm64": "1.2.3" });
        assert_eq!(manifest["optionalDependencies"], expected);
    }
}
