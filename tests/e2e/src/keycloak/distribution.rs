//! The Keycloak distribution: downloaded, checked, unpacked and built once, and copied for each
//! run.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use http::{Method, StatusCode};
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use portcullis_metadata::syntax::hexadecimal;
use sha2::{Digest as _, Sha256};

use super::{addresses::Addresses, instance::Instance};
use crate::{expect, progress::Progress};

const VERSION: &str = "26.7.3";
const ARCHIVE: &str = "https://repo.maven.apache.org/maven2/org/keycloak/keycloak-quarkus-dist/26.7.3/keycloak-quarkus-dist-26.7.3.tar.gz";
/// The hash that the repository publishes.
const SHA_256: &str = "77657f30b7e90d70f727712ce1c967f430fd6a5e9f458d32d8c6df0635345f47";
const SIZE: u64 = 176_448_763;
/// The time limit of the download, at 0.2 MB a second.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(15 * 60);
const UNPACK_LIMIT: Duration = Duration::from_secs(2 * 60);
/// The progress of a download is printed after this number of bytes.
const STEP: u64 = SIZE / 10 + 1;

/// Returns the folder of a built Keycloak with an empty database.
pub(super) async fn prepared(
    target: &Path,
    ready_within: Duration,
    progress: &mut Progress,
) -> anyhow::Result<PathBuf> {
    progress.step("Java is installed", async { java() }).await?;
    let finished = target.join(format!("keycloak-{VERSION}"));
    if finished.exists() {
        return Ok(finished);
    }
    let unfinished = target.join(format!("keycloak-{VERSION}.part"));
    fs::create_dir_all(&unfinished)
        .with_context(|| format!("{} cannot be created", unfinished.display()))?;
    let archive = unfinished.join("keycloak.tar.gz");
    progress
        .step_within(
            DOWNLOAD_LIMIT,
            "Keycloak is downloaded and checked",
            download(&archive),
        )
        .await?;
    progress
        .step_within(
            UNPACK_LIMIT,
            "Keycloak is unpacked",
            unpack(&archive, &unfinished),
        )
        .await?;
    let home = unfinished.join(format!("keycloak-{VERSION}"));
    progress
        .step_within(
            ready_within,
            "Keycloak builds itself at its first start",
            first_start(&home, &unfinished),
        )
        .await?;
    fs::rename(&home, &finished)?;
    fs::remove_dir_all(&unfinished)?;
    Ok(finished)
}

/// Copies a built Keycloak.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("{} cannot be created", to.display()))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to)
                .with_context(|| format!("{} cannot be created", to.display()))?;
        }
    }
    Ok(())
}

/// Finds Java where `kc.sh` does.
fn java() -> anyhow::Result<()> {
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let java = home.map_or_else(|| PathBuf::from("java"), |home| home.join("bin/java"));
    match Command::new(&java).arg("-version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => bail!("{} -version ended with {}", java.display(), output.status),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("Keycloak needs Java 17 or newer: install it, or set JAVA_HOME to its folder")
        }
        Err(error) => Err(error).with_context(|| format!("{} does not start", java.display())),
    }
}

/// Downloads the archive, and checks its size and its hash.
async fn download(archive: &Path) -> anyhow::Result<()> {
    let mut file = File::create(archive)
        .with_context(|| format!("{} cannot be created", archive.display()))?;
    let fetch = HttpFetch::new(Default::default())?;
    let request = FetchRequest::new(Method::GET, ARCHIVE.parse()?, UrlPolicy::Operator);
    let mut response = fetch
        .open(request)
        .await
        .context("Maven Central does not respond")?;
    expect::equal("status of the archive", StatusCode::OK, response.status)?;
    let mut hash = Sha256::new();
    let mut size = 0;
    let mut printed = 0;
    while let Some(chunk) = response.body.next().await {
        let chunk = chunk.context("the download was interrupted")?;
        size += chunk.len() as u64;
        ensure!(
            size <= SIZE,
            "the archive is longer than the {SIZE} bytes expected"
        );
        hash.update(&chunk);
        file.write_all(&chunk)?;
        if size >= printed + STEP || size == SIZE {
            printed = size;
            eprintln!("        {:>4} of {} MB", size / 1_000_000, SIZE / 1_000_000);
        }
    }
    expect::equal(
        "SHA-256 of the archive",
        SHA_256,
        hexadecimal(&hash.finalize()),
    )
}

/// Unpacks the archive into a folder.
async fn unpack(archive: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut tar = tokio::process::Command::new("tar");
    tar.arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder)
        .kill_on_drop(true);
    let status = tar.status().await.context("tar does not start")?;
    ensure!(status.success(), "tar ended with {status}");
    Ok(())
}

/// Starts Keycloak once, which compiles its options, and removes the database.
async fn first_start(home: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut instance = Instance::start(home, &Addresses::choose()?, "first-start", folder)?;
    instance.ready().await?;
    instance.stop().await?;
    fs::remove_dir_all(home.join("data"))
        .context("the database of the first start cannot be removed")
}
