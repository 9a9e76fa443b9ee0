//! The programs: one cross build for each target and set of features.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, ensure};

use crate::{
    release::{Release, install},
    report::Step,
    shell,
    target::Target,
    toolchain::{Zig, missing_standard_library},
};

/// What the program contains.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// Everything, with the development authorization server and the demonstration.
    Full,
    /// Everything else.
    Server,
}

impl Features {
    /// Returns the arguments of cargo.
    pub(crate) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Full => &[],
            Self::Server => &["--no-default-features", "--features=redis,vendored"],
        }
    }

    /// Returns the name in the paths of programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Server => "server",
        }
    }
}

/// Returns where the program is after it was built.
pub(crate) fn path(release: &Release, target: &Target, features: Features) -> PathBuf {
    release.staging.join("programs").join(target.triple).join(features.name()).join("portcullis")
}

/// Builds the program.
///
/// # Errors
/// Fails when the build fails.
pub(crate) fn build(release: &Release, target: &Target, features: Features) -> anyhow::Result<Step> {
    if let Some(reason) = missing_standard_library(target.triple) {
        return Ok(Step::NotRun(reason));
    }
    let zig = match Zig::new(release) {
        Ok(zig) => zig,
        Err(reason) => return Ok(Step::NotRun(reason)),
    };
    let mut cargo = zig.cargo("rustc");
    cargo.args(["--locked", "--package=portcullis", "--bin=portcullis", "--profile", &release.profile]);
    cargo.arg("--target").arg(target.for_zig()).args(features.arguments());
    // Benchmarks with the same profile keep the names of functions. A package needs none.
    cargo.args(["--", "-Cstrip=symbols"]);
    if target.is_static() {
        // Zig ignores rustc's `-static-pie`, and would link a program with fixed addresses.
        cargo.arg("-Clink-arg=-pie");
    }
    shell::run(&mut cargo)?;
    let folder = if release.profile == "dev" { "debug" } else { &release.profile };
    let target_directory = release.out.parent().context("the packages are in the target folder")?;
    let built = target_directory.join(target.triple).join(folder).join("portcullis");
    let program = path(release, target, features);
    install(&built, &program, true)?;
    let content = fs::read(&program)?;
    let elf =
        Elf::parse(&content).with_context(|| format!("the program for {} is not a 64-bit ELF file", target.triple))?;
    ensure!(elf.is_static || !target.is_static(), "the program for {} is not static", target.triple);
    ensure!(elf.is_position_independent, "the program for {} is not position-independent", target.triple);
    Ok(Step::Built(vec![program]))
}

/// Properties of an ELF program.
#[derive(Debug, PartialEq, Eq)]
struct Elf {
    /// It names no interpreter (a program header of type `PT_INTERP`).
    is_static: bool,
    /// Its type is `ET_DYN`, so that the kernel loads it at a random address.
    is_position_independent: bool,
}

impl Elf {
    /// Returns `None` for anything else than a complete 64-bit little-endian ELF file with program headers.
    fn parse(program: &[u8]) -> Option<Self> {
        const PT_INTERP: usize = 3;
        const ET_DYN: usize = 3;
        let number = |at: usize, length: usize| -> Option<usize> {
            let bytes = program.get(at..at.checked_add(length)?)?;
            Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
        };
        if !program.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (start, length, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let headers = (0..count).map(|header| number(start.checked_add(header * length)?, 4));
        let types: Vec<usize> = headers.collect::<Option<_>>()?;
        Some(Self { is_static: !types.contains(&PT_INTERP), is_position_independent: number(16, 2)? == ET_DYN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 64-bit ELF header of this type with one program header of this type.
    fn program(file: u8, header: u8) -> Vec<u8> {
        let mut program = b"\x7fELF\x02\x01".to_vec();
        program.resize(120, 0);
        program[16] = file;
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        program[64] = header;
        program
    }

    #[test]
    fn programs_are_static_and_position_independent() {
        let elf = |is_static, is_position_independent| Some(Elf { is_static, is_position_independent });
        assert_eq!(Elf::parse(&program(3, 1)), elf(true, true));
        assert_eq!(Elf::parse(&program(3, 3)), elf(false, true));
        assert_eq!(Elf::parse(&program(2, 1)), elf(true, false));
        assert_eq!(Elf::parse(&program(3, 1)[..64]), None, "cut off");
        assert_eq!(Elf::parse(b"#!/bin/sh"), None);
    }
}
