//! The cross build of the program for a target and a set of features.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, ensure};

use crate::{
    release::{FileMode, Release, install},
    report::Step,
    shell,
    target::Target,
    toolchain::{Zig, missing_standard_library},
};

/// What the program contains.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// Everything.
    Full,
    /// Everything but the development authorization server and the demonstration.
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
    release
        .staging
        .join("programs")
        .join(target.triple)
        .join(features.name())
        .join("portcullis")
}

/// Builds the program. Fails when the build fails.
pub(crate) fn build(
    release: &Release,
    target: &Target,
    features: Features,
) -> anyhow::Result<Step> {
    if let Some(reason) = missing_standard_library(target.triple) {
        return Ok(Step::NotRun(reason));
    }
    let zig = match Zig::new(release) {
        Ok(zig) => zig,
        Err(reason) => return Ok(Step::NotRun(reason)),
    };
    let mut cargo = zig.cargo("rustc");
    cargo.args([
        "--locked",
        "--package=portcullis",
        "--bin=portcullis",
        "--profile",
        &release.profile,
    ]);
    cargo
        .arg("--target")
        .arg(target.for_zig())
        .args(features.arguments());

    // Benchmarks with the same profile keep the names of functions. A package needs none.
    cargo.args(["--", "-Cstrip=symbols"]);
    shell::run(&mut cargo)?;
    let folder = if release.profile == "dev" {
        "debug"
    } else {
        &release.profile
    };
    let target_directory = release
        .out
        .parent()
        .context("the packages are in the target folder")?;
    let built = target_directory
        .join(target.triple)
        .join(folder)
        .join("portcullis");
    let program = path(release, target, features);
    install(&built, &program, FileMode::Program)?;
    if target.is_static() {
        ensure!(
            is_static(&fs::read(&program)?),
            "the program for {} is not static",
            target.triple
        );
    }
    Ok(Step::Built(vec![program]))
}

/// Returns whether a 64-bit ELF program has program headers, none of which names an interpreter
/// (type `PT_INTERP`), and so is static.
fn is_static(program: &[u8]) -> bool {
    let number = |at: usize, length: usize| -> Option<usize> {
        let bytes = program.get(at..at.checked_add(length)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| (number << 8) | usize::from(*byte)),
        )
    };
    let headers = || Some((number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let Some((start, length, count)) =
        headers().filter(|_| program.starts_with(b"\x7fELF\x02\x01"))
    else {
        return false;
    };
    let kind = |header: usize| number(start.checked_add(header * length)?, 4);
    count > 0 && (0..count).all(|header| kind(header).is_some_and(|kind| kind != 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 64-bit ELF header with one program header of this type.
    fn program(header: u8) -> Vec<u8> {
        let mut program = b"\x7fELF\x02\x01".to_vec();
        program.resize(120, 0);
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        program[64] = header;
        program
    }

    #[test]
    fn a_static_program_has_no_interpreter() {
        assert!(is_static(&program(1)));
        assert!(!is_static(&program(3)));
        assert!(!is_static(&program(1)[..64]), "cut off");
        let mut headerless = program(1);
        headerless[56] = 0;
        assert!(!is_static(&headerless), "no program headers");
        let mut outside = program(1);
        outside[32..40].fill(0xff);
        assert!(!is_static(&outside), "program headers beyond any file");
        assert!(!is_static(b"#!/bin/sh"));
    }
}
