//! The container image, built from scratch with buildah.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, ensure};

use crate::{
    binaries::{self, Features},
    release::{FileMode, Release, install, install_content},
    report::Step,
    roots, shell,
    target::Target,
};

/// The maximum size of the files in the image.
const MAX_SIZE: u64 = 24_000_000;

/// Builds the image, runs it if this machine can, and writes it as an archive that `docker load`
/// and `podman load` read. Fails when the image cannot be built or run, or is too large.
pub(crate) fn build(release: &Release, target: &Target) -> anyhow::Result<Step> {
    let context = release.stage(&format!("image/{}", target.debian))?;
    install(
        &binaries::path(release, target, Features::Server),
        &context.join("portcullis"),
        FileMode::Program,
    )?;
    for file in ["passwd", "group"] {
        install(
            &release.deploy("container").join(file),
            &context.join(file),
            FileMode::Data,
        )?;
    }
    install_content(
        roots::pem().as_bytes(),
        &context.join("ca-certificates.crt"),
        FileMode::Data,
    )?;
    let size = size_of_files(&context)?;
    ensure!(
        size <= MAX_SIZE,
        "the image has {size} bytes, more than {MAX_SIZE}"
    );
    fs::create_dir_all(context.join("state"))?;
    if !shell::exists("buildah") {
        return Ok(Step::NotRun(
            "buildah is not installed; the build context is complete".to_owned(),
        ));
    }
    let name = format!("portcullis:{}", release.version);
    let storage = release.staging.join("storage");

    // The Docker format: that of OCI has no health check.
    let mut build = buildah(&storage);
    build.args(["build", "--quiet", "--format=docker", "--layers=false"]);
    build
        .arg(format!("--timestamp={}", release.time))
        .arg(format!("--platform=linux/{}", target.debian));
    build
        .arg("--file")
        .arg(release.deploy("container/Containerfile"))
        .args(["--tag", &name])
        .arg(&context);
    shell::output(&mut build)?;
    if target.is_native() {
        run(&storage, &name, release)?;
    }
    let file = release.out.join(format!(
        "portcullis-{}-image-{}.tar",
        release.version, target.debian
    ));
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let archive = format!("docker-archive:{}:{name}", file.display());
    shell::output(buildah(&storage).args(["push", "--quiet", &name, &archive]))?;
    Ok(Step::Built(vec![file]))
}

/// Runs the program in the image, as the user of the image: it validates the example configuration.
fn run(storage: &Path, name: &str, release: &Release) -> anyhow::Result<()> {
    let container = shell::output(buildah(storage).args(["from", "--pull-never", name]))?;
    let container = container.trim();
    let mut command = buildah(storage);
    command.args(["run", "--isolation=chroot", "--volume"]);
    command.arg(format!(
        "{}:/etc/portcullis/portcullis.toml:ro",
        release.deploy("portcullis.toml").display()
    ));
    let result = shell::output(command.args([container, "--", "/usr/bin/portcullis", "check"]));
    let removed = shell::output(buildah(storage).args(["rm", container]));
    result.context("the image does not run")?;
    removed.map(drop)
}

/// Returns a `buildah` command with its own storage, which works without overlay mounts.
fn buildah(storage: &Path) -> Command {
    let mut command = Command::new("buildah");
    command
        .arg("--root")
        .arg(storage.join("root"))
        .arg("--runroot")
        .arg(storage.join("run"));
    command.arg("--storage-driver=vfs");
    command
}

fn size_of_files(folder: &Path) -> anyhow::Result<u64> {
    let sizes = fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum()
}
