//! A type check of the crates for the targets that have no packages yet: Windows and macOS.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    release::Release,
    report::Step,
    shell,
    toolchain::{Zig, missing_standard_library},
};

/// The targets.
pub(crate) const TRIPLES: [&str; 3] = ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The published crates in the order of their layers. The first that does not compile is named.
const CRATES: [&str; 17] = [
    "portcullis-metadata",
    "portcullis-mcp",
    "portcullis-files",
    "portcullis-http1",
    "portcullis-discovery",
    "portcullis-session",
    "portcullis-jose",
    "portcullis-verifier",
    "portcullis-client",
    "portcullis-devidp",
    "portcullis-store",
    "portcullis-guard",
    "portcullis-bridge",
    "portcullis-endpoint",
    "portcullis-gateway",
    "portcullis-doctor",
    "portcullis",
];

/// Where Debian has the headers of OpenSSL: those of all architectures, and in the multiarch folders two of this one.
const HEADERS: &str = "/usr/include";

/// Checks each crate. Crates that do not compile are the result, and no failure: there are no packages for these targets.
///
/// # Errors
/// Fails when the headers of OpenSSL cannot be copied.
pub(crate) fn check(release: &Release, triple: &str) -> anyhow::Result<Step> {
    if let Some(reason) = missing_standard_library(triple) {
        return Ok(Step::NotRun(reason));
    }
    let zig = match Zig::new(release) {
        Ok(zig) => zig,
        Err(reason) => return Ok(Step::NotRun(reason)),
    };
    let headers = openssl_headers(release)?;
    let failed: Vec<&str> =
        CRATES.into_iter().filter(|package| !compiles(&zig, package, triple, headers.as_deref())).collect();
    Ok(Step::Checked(match failed.as_slice() {
        [] => "all crates compile".to_owned(),
        failed => {
            format!("{} of {} crates compile; not {}", CRATES.len() - failed.len(), CRATES.len(), failed.join(", "))
        }
    }))
}

/// Copies the headers of OpenSSL into one folder and returns it, if they are installed. A type check reads their version. It
/// links nothing, but the libraries must exist: here they are empty.
fn openssl_headers(release: &Release) -> anyhow::Result<Option<PathBuf>> {
    let common = Path::new(HEADERS).join("openssl");
    if !common.join("opensslv.h").exists() {
        return Ok(None);
    }
    let folder = release.stage("openssl-headers")?;
    let mut copy = Command::new("cp");
    copy.arg("--recursive").arg(&common);
    for entry in fs::read_dir(HEADERS)? {
        let of_architecture = entry?.path().join("openssl");
        if of_architecture.join("opensslconf.h").exists() {
            copy.arg(of_architecture);
        }
    }
    shell::run(copy.arg(&folder))?;
    for library in ["libcrypto.a", "libssl.a"] {
        fs::write(folder.join(library), "")?;
    }
    Ok(Some(folder))
}

/// Returns whether a crate compiles for this target.
fn compiles(zig: &Zig, package: &str, triple: &str, headers: Option<&Path>) -> bool {
    let mut cargo = zig.cargo("check");
    cargo.args(["--quiet", "--locked", "--package", package, "--target", triple]);
    if package == "portcullis" {
        cargo.args(["--no-default-features", "--features=dev,redis"]);
    }
    if let Some(headers) = headers {
        cargo.env("OPENSSL_NO_VENDOR", "1").env("OPENSSL_INCLUDE_DIR", headers).env("OPENSSL_LIB_DIR", headers);
    }
    shell::run(&mut cargo).is_ok()
}
