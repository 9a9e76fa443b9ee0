//! The compilers: rustc's standard library for a target, and zig as C compiler and linker for all of them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{release::Release, shell};

/// The packages of PyPI that are installed into a virtual environment.
const TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];

/// Returns the reason why the standard library for a target is missing; `None` if rustup has it or can install it.
pub(crate) fn missing_standard_library(triple: &str) -> Option<String> {
    let has = || {
        let sysroot = shell::output(Command::new("rustc").args(["--print", "sysroot"])).unwrap_or_default();
        Path::new(sysroot.trim()).join("lib/rustlib").join(triple).is_dir()
    };
    if has() {
        return None;
    }
    match shell::output(Command::new("rustup").args(["target", "add", triple])) {
        Ok(_) if has() => None,
        Ok(_) => Some(format!("rustup installed no standard library for {triple}")),
        Err(error) => Some(format!("the standard library for {triple} cannot be installed: {error:#}")),
    }
}

/// The folder of `cargo-zigbuild` and its Python, which has zig.
pub(crate) struct Zig {
    programs: PathBuf,
}

impl Zig {
    /// Returns zig, and installs it if necessary.
    ///
    /// # Errors
    /// Fails with the reason why it cannot be installed.
    pub(crate) fn new(release: &Release) -> Result<Self, String> {
        let environment = release.staging.join("zig");
        let installed = environment.join("installed");
        let wanted = TOOLS.join(" ");
        if fs::read_to_string(&installed).ok().as_ref() != Some(&wanted) {
            install(&environment).map_err(|error| format!("zig cannot be installed: {error:#}"))?;
            fs::write(&installed, wanted).map_err(|error| error.to_string())?;
        }
        Ok(Self { programs: environment.join("bin") })
    }

    /// Returns a cargo command that compiles C and links with zig, such as `zigbuild` and `check`. The folder with the
    /// programs is before all others.
    pub(crate) fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(self.programs.join("cargo-zigbuild"));
        let paths = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
        let paths = env::join_paths([self.programs.clone()].into_iter().chain(paths)).unwrap_or_default();
        cargo.arg(command).current_dir(xtask::workspace::root()).env("PATH", paths);
        // OpenSSL is built for the target. That of this machine is for this machine.
        cargo.env_remove("OPENSSL_NO_VENDOR");
        cargo
    }
}

fn install(environment: &Path) -> anyhow::Result<()> {
    shell::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    shell::output(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(TOOLS))?;
    Ok(())
}
