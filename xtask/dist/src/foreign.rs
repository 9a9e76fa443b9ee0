//! A type check of the crates for the targets that have no packages yet: Windows and macOS.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use xtask::crate_rows::crates;

use crate::{
    release::Release,
    report::Step,
    shell,
    toolchain::{Zig, missing_standard_library},
};

/// The targets.
pub(crate) const TRIPLES: [&str; 3] = [
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-gnu",
];

/// A crate that is checked with other features than its default.
struct Exception {
    package: &'static str,
    options: &'static [&'static str],
}

/// The program does not build OpenSSL from source: a type check reads only its headers.
const EXCEPTIONS: [Exception; 1] = [Exception {
    package: "portcullis",
    options: &["--no-default-features", "--features=dev,redis"],
}];

/// Where Debian has the headers of OpenSSL: those of all architectures, and in the multiarch
/// folders two of this one.
const HEADERS: &str = "/usr/include";

/// Checks each published crate, in the order of their layers. Crates that do not compile are part
/// of the result and not a failure, because there are no packages for these targets. Fails when the
/// headers of OpenSSL cannot be copied.
pub(crate) fn check(release: &Release, triple: &str) -> anyhow::Result<Step> {
    if let Some(reason) = missing_standard_library(triple) {
        return Ok(Step::NotRun(reason));
    }
    let zig = match Zig::new(release) {
        Ok(zig) => zig,
        Err(reason) => return Ok(Step::NotRun(reason)),
    };
    let headers = openssl_headers(release)?;
    let (compiling, failed): (Vec<&str>, Vec<&str>) =
        crates().partition(|package| compiles(&zig, package, triple, headers.as_deref()));
    let all = compiling.len() + failed.len();
    Ok(Step::Checked(match failed.as_slice() {
        [] => "all crates compile".to_owned(),
        failed => format!(
            "{} of {all} crates compile; not {}",
            compiling.len(),
            failed.join(", ")
        ),
    }))
}

/// Copies the headers of OpenSSL into one folder and returns it, if they are installed. A type
/// check reads their version. It links nothing, but the libraries must exist: here they are empty.
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
    cargo.args([
        "--quiet",
        "--locked",
        "--package",
        package,
        "--target",
        triple,
    ]);
    cargo.args(options_of(package));
    if let Some(headers) = headers {
        cargo
            .env("OPENSSL_NO_VENDOR", "1")
            .env("OPENSSL_INCLUDE_DIR", headers)
            .env("OPENSSL_LIB_DIR", headers);
    }
    shell::run(&mut cargo).is_ok()
}

/// Returns the options of a crate that is an exception; none for the others.
fn options_of(package: &str) -> &'static [&'static str] {
    EXCEPTIONS
        .iter()
        .find(|exception| exception.package == package)
        .map_or(&[], |exception| exception.options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each exception is a crate that is checked.
    #[test]
    fn exceptions_are_checked_crates() {
        assert!(
            EXCEPTIONS
                .iter()
                .all(|exception| crates().any(|package| package == exception.package))
        );
        assert_eq!(options_of("portcullis").len(), 2);
        assert!(options_of("portcullis-guard").is_empty());
    }
}
