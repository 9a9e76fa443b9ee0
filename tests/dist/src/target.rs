//! The targets of the packages, with their names in each kind of package.

use anyhow::Context as _;

use crate::binaries::Features;

/// A target for which programs are built.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name for rustc.
    pub(crate) triple: &'static str,
    /// The name for Debian and for container images.
    pub(crate) debian: &'static str,
    /// The name of the npm package.
    pub(crate) npm: &'static str,
    /// The name of the processor for npm.
    pub(crate) npm_cpu: &'static str,
    /// The oldest glibc with which the program runs; `None` for a static program.
    pub(crate) glibc: Option<&'static str>,
}

/// The glibc of Debian 11, Ubuntu 20.04 and RHEL 9 is as new or newer.
const GLIBC: Option<&str> = Some("2.31");

/// All targets.
pub(crate) const TARGETS: &[Target] = &[
    Target { triple: "x86_64-unknown-linux-musl", debian: "amd64", npm: "linux-x64", npm_cpu: "x64", glibc: None },
    Target { triple: "aarch64-unknown-linux-musl", debian: "arm64", npm: "linux-arm64", npm_cpu: "arm64", glibc: None },
    Target { triple: "x86_64-unknown-linux-gnu", debian: "amd64", npm: "linux-x64", npm_cpu: "x64", glibc: GLIBC },
    Target { triple: "aarch64-unknown-linux-gnu", debian: "arm64", npm: "linux-arm64", npm_cpu: "arm64", glibc: GLIBC },
];

impl Target {
    /// Returns the target with this name.
    ///
    /// # Errors
    /// Fails when there is none. The message lists the names.
    pub(crate) fn parse(triple: &str) -> anyhow::Result<&'static Self> {
        let known = || TARGETS.iter().map(|target| target.triple).collect::<Vec<_>>().join(", ");
        TARGETS.iter().find(|target| target.triple == triple).with_context(|| format!("the targets are {}", known()))
    }

    /// Returns whether the program needs no libraries.
    pub(crate) fn is_static(&self) -> bool {
        self.glibc.is_none()
    }

    /// Returns the programs that are built. The packages of the server program contain a static one.
    pub(crate) fn programs(&self) -> &'static [Features] {
        if self.is_static() { &[Features::Full, Features::Server] } else { &[Features::Full] }
    }

    /// Returns whether this machine can run the program.
    pub(crate) fn is_native(&self) -> bool {
        self.triple.starts_with(std::env::consts::ARCH)
    }

    /// Returns the name for zig's compiler, which has the version of glibc.
    pub(crate) fn for_zig(&self) -> String {
        self.glibc.map_or_else(|| self.triple.to_owned(), |version| format!("{}.{version}", self.triple))
    }
}
