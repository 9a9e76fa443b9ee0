//! The compilers: rustc's standard library for a target, and zig as C compiler and linker for all
//! of them.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use xtask::workspace;

use crate::{python, release::Release, shell};

/// The packages of PyPI that are installed into a virtual environment, with their versions and
/// hashes.
const TOOLS: &str = include_str!("../requirements/zig.txt");

/// The file in the virtual environment that lists the installed packages. It is written when all
/// are installed.
const INSTALLED: &str = "installed";

/// Returns the reason why the standard library for a target is missing; `None` if rustup has it or
/// can install it.
pub(crate) fn missing_standard_library(triple: &str) -> Option<String> {
    match install_standard_library(triple) {
        Ok(true) => None,
        Ok(false) => Some(format!("rustup installed no standard library for {triple}")),
        Err(error) => Some(format!(
            "the standard library for {triple} cannot be installed: {error:#}"
        )),
    }
}

/// Installs the standard library for a target if it is missing. Returns whether it is there.
fn install_standard_library(triple: &str) -> anyhow::Result<bool> {
    if has_standard_library(triple)? {
        return Ok(true);
    }
    shell::output(in_workspace("rustup").args(["target", "add", triple]))?;
    has_standard_library(triple)
}

fn has_standard_library(triple: &str) -> anyhow::Result<bool> {
    let sysroot = shell::output(in_workspace("rustc").args(["--print", "sysroot"]))?;
    Ok(library_folder(&sysroot, triple)?.is_dir())
}

/// Returns the folder of a target's standard library in the sysroot that rustc printed.
fn library_folder(sysroot: &str, triple: &str) -> anyhow::Result<PathBuf> {
    let sysroot = Path::new(sysroot.trim());
    anyhow::ensure!(
        sysroot.is_absolute(),
        "rustc printed no absolute path as its sysroot"
    );
    Ok(sysroot.join("lib/rustlib").join(triple))
}

/// Returns a command in the root of the workspace, where `rust-toolchain.toml` selects the
/// toolchain.
fn in_workspace(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    command
}

/// The folder of `cargo-zigbuild` and its Python, which has zig.
pub(crate) struct Zig {
    programs: PathBuf,
    /// `PATH` with the folder of the programs before all others.
    search_path: OsString,
}

impl Zig {
    /// Returns zig, and installs it if necessary. Fails with the reason why it cannot be installed
    /// or used.
    pub(crate) fn new(release: &Release) -> Result<Self, String> {
        Self::in_environment(&release.staging.join("zig"), install)
            .map_err(|error| format!("{error:#}"))
    }

    /// Returns zig in a virtual environment, which `install` creates unless it has all packages.
    fn in_environment(
        environment: &Path,
        install: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let programs = environment.join("bin");
        let search_path = search_path(&programs, env::var_os("PATH"))?;
        let marker = environment.join(INSTALLED);
        if fs::read_to_string(&marker).ok().as_deref() != Some(TOOLS) {
            install(environment).context("zig cannot be installed")?;
            fs::write(&marker, TOOLS)
                .with_context(|| format!("{} cannot be written", marker.display()))?;
        }
        Ok(Self {
            programs,
            search_path,
        })
    }

    /// Returns a cargo command that compiles C and links with zig, such as `zigbuild` and `check`.
    pub(crate) fn cargo(&self, command: &str) -> Command {
        let mut cargo = in_workspace(self.programs.join("cargo-zigbuild"));
        // cargo-zigbuild starts the first `python3` of the path to run zig.
        cargo.arg(command).env("PATH", &self.search_path);
        // With it, the build would link the OpenSSL of this machine. The target needs one that is
        // built for it.
        cargo.env_remove("OPENSSL_NO_VENDOR");
        cargo
    }
}

/// Returns `PATH` with a folder before all others. Fails if the folder's path has the separator of
/// `PATH`.
fn search_path(first: &Path, path: Option<OsString>) -> anyhow::Result<OsString> {
    let path = path.unwrap_or_default();
    let folders = [first.to_owned()]
        .into_iter()
        .chain(env::split_paths(&path));
    env::join_paths(folders)
        .with_context(|| format!("{} cannot be a folder of PATH", first.display()))
}

/// Creates a virtual environment with the packages, and replaces an existing one.
fn install(environment: &Path) -> anyhow::Result<()> {
    python::install(environment, TOOLS)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_sysroot_is_an_absolute_path() {
        let folder = library_folder("/rust\n", "wasm32-unknown-unknown").unwrap();
        assert_eq!(
            folder,
            Path::new("/rust/lib/rustlib/wasm32-unknown-unknown")
        );
        for sysroot in ["", "\n", "lib"] {
            assert!(library_folder(sysroot, "x").is_err(), "{sysroot:?}");
        }
    }

    #[test]
    fn the_programs_come_first_in_the_path() {
        let path = search_path(Path::new("/tools/bin"), Some("/usr/bin:/bin".into())).unwrap();
        assert_eq!(path, "/tools/bin:/usr/bin:/bin");
        let error = search_path(Path::new("/a:b/bin"), Some("/usr/bin".into())).unwrap_err();
        assert_eq!(error.to_string(), "/a:b/bin cannot be a folder of PATH");
    }

    #[test]
    fn zig_is_installed_once() {
        let folder = tempfile::tempdir().unwrap();
        let environment = folder.path().join("zig");
        let error = Zig::in_environment(&environment, |_| bail!("no network"))
            .err()
            .unwrap();
        assert_eq!(format!("{error:#}"), "zig cannot be installed: no network");
        let error = Zig::in_environment(&environment, |_| Ok(())).err().unwrap();
        assert!(
            error
                .to_string()
                .ends_with("zig/installed cannot be written"),
            "{error}"
        );

        let create = |environment: &Path| Ok(fs::create_dir_all(environment)?);
        Zig::in_environment(&environment, create).ok().unwrap();
        let zig = Zig::in_environment(&environment, |_| bail!("installed again"))
            .ok()
            .unwrap();
        let cargo = zig.cargo("check");
        assert_eq!(cargo.get_program(), environment.join("bin/cargo-zigbuild"));
        assert_eq!(cargo.get_current_dir(), Some(workspace::root().as_path()));

        fs::write(environment.join(INSTALLED), "ziglang==0.1.0").unwrap();
        assert!(Zig::in_environment(&environment, |_| bail!("other versions")).is_err());
    }
}
