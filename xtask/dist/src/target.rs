//! [`Target`]: what programs are built for, with its names in each type of package.

use anyhow::Context as _;

use crate::binaries::Features;

/// A target for which programs are built.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name for rustc.
    pub(crate) triple: &'static str,
    /// The name for Debian and for container images.
    pub(crate) debian: &'static str,
    /// `None` if npm gets no program: its packages contain the static ones.
    pub(crate) npm: Option<NpmPlatform>,
    /// The oldest glibc with which the program runs; `None` for a static program.
    pub(crate) glibc: Option<&'static str>,
}

/// A platform for npm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NpmPlatform {
    /// The end of the name of the package.
    pub(crate) suffix: &'static str,
    /// The name of the processor.
    pub(crate) cpu: &'static str,
}

/// The oldest supported glibc: that of Debian 11 and Ubuntu 20.04. RHEL 9 has a newer one.
const GLIBC: Option<&str> = Some("2.31");

/// All targets.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        npm: Some(NpmPlatform {
            suffix: "linux-x64",
            cpu: "x64",
        }),
        glibc: None,
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        npm: Some(NpmPlatform {
            suffix: "linux-arm64",
            cpu: "arm64",
        }),
        glibc: None,
    },
    Target {
        triple: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        npm: None,
        glibc: GLIBC,
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        npm: None,
        glibc: GLIBC,
    },
];

impl Target {
    /// Returns the target with this name. Fails when there is none. The message lists the names.
    pub(crate) fn parse(triple: &str) -> anyhow::Result<&'static Self> {
        let known = || {
            TARGETS
                .iter()
                .map(|target| target.triple)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let unknown = || format!("{triple:?} is not a target; the targets are {}", known());
        TARGETS
            .iter()
            .find(|target| target.triple == triple)
            .with_context(unknown)
    }

    /// Returns whether the program needs no libraries.
    pub(crate) fn is_static(&self) -> bool {
        self.glibc.is_none()
    }

    /// Returns the programs that are built. The packages of the server program contain a static
    /// one.
    pub(crate) fn programs(&self) -> &'static [Features] {
        if self.is_static() {
            &[Features::Full, Features::Server]
        } else {
            &[Features::Full]
        }
    }

    /// Returns whether this machine can run the program: it has the system and the processor. The
    /// version of its glibc is not compared.
    pub(crate) fn is_native(&self) -> bool {
        // All targets are for Linux.
        let (processor, _) = self.triple.split_once('-').unwrap_or((self.triple, ""));
        cfg!(target_os = "linux") && processor == std::env::consts::ARCH
    }

    /// Returns the name for zig's compiler, which has the version of glibc.
    pub(crate) fn for_zig(&self) -> String {
        self.glibc.map_or_else(
            || self.triple.to_owned(),
            |version| format!("{}.{version}", self.triple),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_by_name() {
        for target in TARGETS {
            assert_eq!(Target::parse(target.triple).unwrap().triple, target.triple);
        }
        let error = Target::parse("riscv64gc-unknown-linux-gnu")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "\"riscv64gc-unknown-linux-gnu\" is not a target; the targets are x86_64-"
            ),
            "{error}"
        );
    }

    #[test]
    fn zig_gets_the_version_of_glibc() {
        let of = |triple| Target::parse(triple).unwrap().for_zig();
        assert_eq!(of("x86_64-unknown-linux-musl"), "x86_64-unknown-linux-musl");
        assert_eq!(
            of("aarch64-unknown-linux-gnu"),
            "aarch64-unknown-linux-gnu.2.31"
        );
    }

    #[test]
    fn only_static_programs_are_packed_for_npm() {
        assert!(
            TARGETS
                .iter()
                .all(|target| target.npm.is_some() == target.is_static())
        );
    }

    #[test]
    fn native_programs_have_the_system_and_the_processor() {
        let native = TARGETS.iter().filter(|target| target.is_native());
        let expected = if cfg!(target_os = "linux") { 2 } else { 0 };
        assert!(
            native
                .clone()
                .all(|target| target.triple.starts_with(std::env::consts::ARCH))
        );
        if matches!(std::env::consts::ARCH, "x86_64" | "aarch64") {
            assert_eq!(native.count(), expected);
        }
    }
}
